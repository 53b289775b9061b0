/* moves.h: moves of whole recomputations, for searches over sequences. */
#ifndef RM_MOVES_H
#define RM_MOVES_H

#include "plan/search/search.h"

/* Each makes edits of one move and says how many; 0: refused, and nothing has changed. */
uint32_t rm_move_recompute(
    rm_search *s,
    int64_t limit); /* where memory, without residents, is over the limit, if anywhere */
uint32_t rm_move_forget(rm_search *s);
uint32_t rm_move_carry(rm_search *s); /* a step to elsewhere, and if later, what only it reads */

#endif
