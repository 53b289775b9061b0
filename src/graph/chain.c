/* chain.c: making, reading and freeing a chain.
 *
 * Invariant: a chain is one block. No number in it is negative, and neither the sizes nor the times
 * add up to 2^62.
 *
 * Cost: linear in the stages and their names. */
#include "graph/chain.h"

#include "graph/digest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* As in a remat-chain file: the stages of the network are counted from 0 there. */
static void place_of(char *buffer, size_t size, uint32_t stage, uint32_t n_stages,
                     const char *field)
{
    if (stage == 0) snprintf(buffer, size, "input.%s", field);
    else if (stage > n_stages) snprintf(buffer, size, "loss.%s", field);
    else snprintf(buffer, size, "stages[%u].%s", stage - 1, field);
}

static remat_status check_stage(remat_ctx *ctx, const remat_stage *s, uint32_t stage,
                                uint32_t n_stages, int64_t *bytes, int64_t *time)
{
    const struct {
        const char *name;
        int64_t x;
        int64_t *sum;
    } fields[] = {{"a", s->a, bytes},   {"abar", s->abar, bytes}, {"delta", s->delta, bytes},
                  {"of", s->of, bytes}, {"ob", s->ob, bytes},     {"keep", s->keep, bytes},
                  {"tf", s->tf, time},  {"tb", s->tb, time}};
    for (size_t k = 0; k < RM_LEN(fields); k++) {
        const bool negative = fields[k].x < 0;
        if (!negative && rm_add_to_sum(fields[k].sum, fields[k].x)) continue;
        char place[80];
        place_of(place, sizeof place, stage, n_stages, fields[k].name);
        if (negative) return rm_fail_at(ctx, REMAT_E_INPUT, place, "must not be negative");
        return rm_fail_at(ctx, REMAT_E_INPUT, place, "the %s add up to 2^62 or more",
                          fields[k].sum == bytes ? "sizes" : "times");
    }
    return REMAT_OK;
}

static void warn_of_small_abar(remat_ctx *ctx, const remat_stage *stages, uint32_t n_stages)
{
    char place[80];
    for (uint32_t i = 1; i <= n_stages; i++) {
        if (stages[i].abar >= stages[i].a) continue;
        place_of(place, sizeof place, i, n_stages, "abar");
        rm_warn(ctx,
                "%s: abar is smaller than a, which it contains: the numbers are used as they are, "
                "and no plan that runs a stage forward again is called optimal",
                place);
        return;
    }
}

static remat_status check(remat_ctx *ctx, const remat_stage *stages, uint32_t n_stages)
{
    if (n_stages == 0)
        return rm_fail_at(ctx, REMAT_E_INPUT, "stages", "a chain needs at least one stage");
    int64_t bytes = 0, time = 0;
    for (uint32_t i = 0; i <= n_stages + 1; i++)
        TRY(check_stage(ctx, &stages[i], i, n_stages, &bytes, &time));
    warn_of_small_abar(ctx, stages, n_stages);
    return REMAT_OK;
}

/* Puts a copy at *to, and moves *to behind it. */
static const char *copy_text(char **to, const char *text)
{
    const size_t n = strlen(text) + 1;
    char *copied = memcpy(*to, text, n);
    *to += n;
    return copied;
}

remat_status rm_chain_new(remat_ctx *ctx, const remat_chain *head, const remat_stage *stages,
                          remat_chain **out)
{
    const uint32_t n = head->n_stages + 2;
    TRY(check(ctx, stages, head->n_stages));
    size_t text_size = strlen(head->name) + strlen(head->size_unit) + strlen(head->cost_unit) + 3;
    for (uint32_t i = 0; i < n; i++) text_size += strlen(stages[i].name) + 1;
    const size_t size = sizeof *head + n * sizeof *stages + text_size;
    remat_chain *c = rm_alloc(ctx, size);
    if (!c) return REMAT_E_MEMORY;
    *c = (remat_chain){.heap = ctx->own_heap, .block_size = size, .n_stages = head->n_stages};
    memcpy(c->stages, stages, n * sizeof *stages);
    /* An input has nothing else. */
    c->stages[0] = (remat_stage){.a = stages[0].a, .delta = stages[0].delta};
    char *text = (char *)(c->stages + n);
    c->name = copy_text(&text, head->name);
    c->size_unit = copy_text(&text, head->size_unit);
    c->cost_unit = copy_text(&text, head->cost_unit);
    for (uint32_t i = 0; i < n; i++) c->stages[i].name = copy_text(&text, stages[i].name);
    assert(text == (char *)c + size);
    rm_chain_digest(c, c->digest);
    *out = c;
    return REMAT_OK;
}

/* As for graphs (digest.c). Sizes only: to measure a chain's times again does not void a plan. */
void rm_chain_digest(const remat_chain *c, char digest[80])
{
    static const char head[] = "remat-chain digest 1\n";
    rm_sha256 s;
    rm_sha256_begin(&s);
    rm_sha256_add(&s, head, strlen(head));
    rm_digest_int(&s, c->n_stages);
    for (uint32_t i = 0; i <= c->n_stages + 1; i++) {
        const remat_stage *x = &c->stages[i];
        const int64_t sizes[] = {x->a, x->abar, x->delta, x->of, x->ob, x->keep};
        for (size_t k = 0; k < RM_LEN(sizes); k++) rm_digest_int(&s, sizes[k]);
    }
    rm_digest_text(&s, digest);
}

bool rm_chain_is_plain(const remat_chain *c)
{
    for (uint32_t l = 1; l <= c->n_stages; l++)
        if (c->stages[l].abar < c->stages[l].a || c->stages[l].delta != c->stages[l].a)
            return false;
    return c->stages[0].delta == c->stages[0].a;
}

bool rm_chain_never_grows(const remat_chain *c)
{
    for (uint32_t l = 1; l <= c->n_stages; l++)
        if (c->stages[l].a > c->stages[l - 1].a) return false;
    return true;
}

bool rm_chain_can_be_planned(const remat_chain *c)
{
    int64_t forward = 0, backward = 0, all; /* the first two stay below 2^62: see `check` */
    for (uint32_t l = 1; l <= c->n_stages + 1; l++) {
        forward += c->stages[l].tf;
        backward += c->stages[l].tb;
    }
    return !rm_mul_overflows(forward, (int64_t)c->n_stages + 2, &all) &&
           !rm_add_overflows(all, backward, &all) && all < RM_MAX_SUM;
}

/* The input of stage l, and a^0, which is stored. */
static int64_t least_input(const remat_chain *c, uint32_t l)
{
    const remat_stage *before = &c->stages[l - 1];
    if (l == 1) return before->a;
    return c->stages[0].a + (before->a < before->abar ? before->a : before->abar);
}

int64_t rm_chain_need(const remat_chain *c, uint32_t *stage)
{
    int64_t need = 0, kept = 0;
    *stage = 1;
    for (uint32_t l = 1; l <= c->n_stages + 1; l++) {
        const remat_stage *s = &c->stages[l], *before = s - 1;
        const int64_t input = least_input(c, l);
        kept += s->keep;
        const int64_t backward = input + s->delta + s->abar + before->delta + s->ob + kept,
                      forward = input + s->abar + s->of + kept;
        const int64_t most = backward > forward ? backward : forward;
        if (most > need) {
            need = most;
            *stage = l;
        }
    }
    return need;
}

void remat_chain_free(remat_chain *chain)
{
    if (!chain) return;
    const remat_alloc heap = chain->heap;
    rm_release(&heap, chain, chain->block_size);
}

const char *remat_chain_digest(const remat_chain *chain) { return chain->digest; }
const char *remat_chain_name(const remat_chain *chain) { return chain->name; }
const char *remat_chain_size_unit(const remat_chain *chain) { return chain->size_unit; }
const char *remat_chain_cost_unit(const remat_chain *chain) { return chain->cost_unit; }
uint32_t remat_chain_n_stages(const remat_chain *chain) { return chain->n_stages; }
const remat_stage *remat_chain_stage(const remat_chain *chain, uint32_t stage)
{
    return stage <= chain->n_stages + 1 ? &chain->stages[stage] : NULL;
}
