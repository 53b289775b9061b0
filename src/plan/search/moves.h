/* moves.h: moves of whole recomputations, for searches over sequences. */
#ifndef RM_MOVES_H
#define RM_MOVES_H

#include "plan/search/search.h"

/* Each makes the edits of one move and says how many. 0: refused, and nothing has changed. */

/* Makes a value again that spans a slot where memory, without residents, is over the limit; any
 * slot if it is nowhere over it. */
uint32_t rm_move_recompute(rm_search *s, int64_t limit);
/* Takes a second run out, and what only it needed. */
uint32_t rm_move_forget(rm_search *s);
/* Slides a step. If it goes later, what only it reads goes with it. If it goes earlier, those go
 * with it that alone read what it makes. */
uint32_t rm_move_carry(rm_search *s);
/* Takes a value off a slot where memory is over the limit (as in rm_move_recompute), by order
 * alone: what reads it next goes before the slot, or what made it goes behind. */
uint32_t rm_move_clear(rm_search *s, int64_t limit);

#endif
