/* unknown.h: keys of a file that no reader knows. */
#ifndef RM_UNKNOWN_H
#define RM_UNKNOWN_H

#include "import/input.h"

typedef struct rm_unknown {
    struct {
        const char *list, *key; /* list: "nodes"; NULL: the file's own members */
    } items[4];                 /* the first ones */
    uint32_t n;
    bool more; /* than that */
} rm_unknown;

/* Notes the members of this object that stand in neither list. Both end with NULL, or are NULL. */
void rm_unknown_note(rm_unknown *u, const rm_fields *f, const char *const *known,
                     const char *const *more_known);
void rm_unknown_warn(remat_ctx *ctx, const rm_unknown *u); /* one line, if there are any */

#endif
