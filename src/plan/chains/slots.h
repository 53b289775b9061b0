/* slots.h: memory cut into slots, so that it can be the index of a table; and how the schedules of
 * such a table are offered. */
#ifndef RM_SLOTS_H
#define RM_SLOTS_H

#include "plan/planner.h"

typedef struct rm_slots {
    uint32_t n;       /* slots in the largest budget */
    uint32_t beyond;  /* slots behind it that a table has as well; 0 if nothing is rounded */
    int64_t per_slot; /* bytes of a slot, if nothing is rounded; else 0 */
    int64_t budget_bytes;
} rm_slots;

/* Slots of so many bytes, in which every size is a whole number of slots. */
rm_slots rm_slots_of_unit(int64_t unit, int64_t budget_bytes);

/* One more than the last index of a table. */
static inline uint32_t rm_slots_width(const rm_slots *x) { return x->n + x->beyond + 1; }
/* Rounded up. What a table cannot hold is its width. */
uint32_t rm_slots_up(const rm_slots *x, int64_t bytes);
/* Rounded down, as far as a table goes. */
uint32_t rm_slots_down(const rm_slots *x, int64_t bytes);
/* a^0 .. a^n and abar^0 .. abar^n of a chain in slots: a row of stages is rounded as a whole. */
void rm_slots_of_chain(const rm_slots *x, const remat_chain *c, uint32_t *a, uint32_t *abar);

/* What a table takes: for each slot, and anyhow. */
typedef struct rm_slot_price {
    double bytes_a_slot, bytes;
    double work_a_slot, work;
    double most_work; /* where nobody asked for so many slots */
} rm_slot_price;

/* How many slots a table gets: as the options slots and epsilon ask, or a default. Fewer if memory
 * or the limits allow no more. 0: none at all, since there is no time for it. REMAT_E_APPLIES: it
 * would take too much memory, or too much for the promise of epsilon. */
remat_status rm_slots_choose(const rm_chain_problem *p, const rm_slot_price *price, rm_slots *out);

/* A table over slots that can write down its schedules. m: slots besides a^0. */
typedef struct rm_slot_table {
    const rm_slots *slots;
    const void *table;
    uint32_t input; /* a^0 in slots */
    bool (*has)(const void *table, uint32_t m);
    remat_status (*trace)(remat_ctx *ctx, const void *table, int64_t m, rm_schedule *out);
} rm_slot_table;

/* Offers, for every budget, the cheapest schedule of the table that fits it by its true sizes; and
 * those of the least memory, if the problem asks for the lowest peak. */
remat_status rm_slots_answer(const rm_chain_problem *p, const rm_slot_table *t,
                             rm_chain_result *results);

#endif
