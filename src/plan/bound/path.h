/* path.h: parts of path.c: when ops surely run, in every order, and which storages can be kept
 * instead of others there. */
#ifndef RM_PATH_H
#define RM_PATH_H

#include "plan/bound/gaps.h"

static inline bool rm_is_on_path(rm_window w) { return w.after > w.by; }

/* Up to where a storage is surely wanted, if such an op reads it. */
static inline uint32_t rm_wanted_to(rm_window w) { return rm_is_on_path(w) ? w.by : w.after; }

/* Does a reader like x want a storage longer than one like y? Of equals, the one that must have run
 * first counts for more. */
static inline bool rm_wants_longer(rm_window x, rm_window y)
{
    if (rm_wanted_to(x) != rm_wanted_to(y)) return rm_wanted_to(x) > rm_wanted_to(y);
    return x.by < y.by;
}

typedef struct rm_holders { /* arrays live in scratch */
    /* By storage: as if an op with this window read it, if something made from it counts for it.
     * {0, 0}: nothing does. */
    rm_window *reader;
    uint32_t *begin, *heirs; /* CSR by storage: for whom it is a holder */
} rm_holders;

/* holders.c. gs: its path. windows: by op. on: false, and nothing is a holder. */
remat_status rm_holders_find(remat_ctx *ctx, const rm_gaps *gs, const rm_window *windows, bool on,
                             rm_holders *out);

#endif
