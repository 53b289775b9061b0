/* heeds.h: which option each strategy heeds. */
#ifndef CLI_HEEDS_H
#define CLI_HEEDS_H

#include "session.h"

/* A usage error where an option was given that none of the strategies "a,b,c" heeds, but others do.
 * NULL: all strategies. */
int heeds_check(session *s, const char *strategies);
label heeds_flags(size_t strategy); /* "--slots --max-slots": what it heeds, as flags */

#endif
