/* lower_c.h: a lowered schedule as a C function. */
#ifndef CLI_LOWER_C_H
#define CLI_LOWER_C_H

#include "session.h"

remat_status lower_c(session *s, const remat_program *program, out *to);

#endif
