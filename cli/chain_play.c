/* chain_play.c: a chain's schedule as lives of what it stores, for charts, pictures and pages.
 *
 * The rules are Rotor's (docs/model.md). A forward makes a^l, or abar^l if it stores all; a copy
 * that was there is replaced. The first forward makes what the stage keeps, too. `Fnone` and `B`
 * eat a plain a^{l-1}; `B` eats delta^l, abar^l and what was kept, and makes delta^{l-1}. What a
 * step eats or replaces is in memory while it runs. Invariant: the bytes of the lives at a step and
 * the overhead of its operation are the memory of that step. Cost: linear. */
#include "chain_play.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"

typedef struct player {
    const remat_chain *chain;
    chain_life *lives;
    uint32_t n_lives;
    uint32_t *open; /* by item: its life; REMAT_NONE: it is not stored */
    bool *seen;     /* by stage: it had its first forward */
} player;

uint32_t chain_n_items(const remat_chain *chain)
{
    return CHAIN_WHATS * (remat_chain_n_stages(chain) + 2);
}

uint32_t chain_item(uint32_t stage, chain_what what) { return CHAIN_WHATS * stage + what; }

int64_t chain_item_bytes(const remat_chain *chain, uint32_t item)
{
    const remat_stage *stage = remat_chain_stage(chain, item / CHAIN_WHATS);
    const int64_t bytes[CHAIN_WHATS] = {stage->a, stage->abar, stage->delta, stage->keep};
    return bytes[item % CHAIN_WHATS];
}

int64_t chain_step_overhead(const remat_chain *chain, const remat_step *step)
{
    const remat_stage *stage = remat_chain_stage(chain, step->index);
    return step->kind == REMAT_B ? stage->ob : stage->of;
}

static void end_life(player *p, uint32_t item, size_t step)
{
    if (p->open[item] == REMAT_NONE) return;
    p->lives[p->open[item]].end = (uint32_t)step;
    p->open[item] = REMAT_NONE;
}

static void begin_life(player *p, uint32_t item, size_t step, size_t n_steps)
{
    end_life(p, item, step);
    if (chain_item_bytes(p->chain, item) == 0) return;
    p->open[item] = p->n_lives;
    p->lives[p->n_lives++] = (chain_life){item, (uint32_t)step, (uint32_t)n_steps - 1};
}

static void play(player *p, const remat_step *step, size_t t, size_t n_steps)
{
    const uint32_t l = step->index;
    const bool is_backward = step->kind == REMAT_B;
    if (is_backward) {
        begin_life(p, chain_item(l - 1, CHAIN_DELTA), t, n_steps);
        end_life(p, chain_item(l, CHAIN_DELTA), t);
        end_life(p, chain_item(l, CHAIN_ABAR), t);
        end_life(p, chain_item(l, CHAIN_KEEP), t);
    } else {
        const chain_what made = step->kind == REMAT_F_ALL ? CHAIN_ABAR : CHAIN_A;
        begin_life(p, chain_item(l, made), t, n_steps);
        if (!p->seen[l]) begin_life(p, chain_item(l, CHAIN_KEEP), t, n_steps);
        p->seen[l] = true;
    }
    if (is_backward || step->kind == REMAT_F_NONE) end_life(p, chain_item(l - 1, CHAIN_A), t);
}

chain_life *chain_lives(const remat_chain *chain, const remat_step *steps, size_t n_steps,
                        uint32_t *n_lives)
{
    const uint32_t n_items = chain_n_items(chain);
    player p = {.chain = chain,
                .lives = out_resize(NULL, 2 * n_steps + 1, sizeof *p.lives),
                .open = out_resize(NULL, n_items, sizeof *p.open),
                .seen = out_resize(NULL, n_items, sizeof *p.seen)};
    for (uint32_t i = 0; i < n_items; i++) p.open[i] = REMAT_NONE;
    memset(p.seen, 0, n_items * sizeof *p.seen);
    if (n_steps > 0) begin_life(&p, chain_item(0, CHAIN_A), 0, n_steps);
    for (size_t t = 0; t < n_steps; t++) play(&p, &steps[t], t, n_steps);
    free(p.open);
    free(p.seen);
    *n_lives = p.n_lives;
    return p.lives;
}
