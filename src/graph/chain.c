/* chain.c: making, reading and freeing a chain. */
#include "graph/chain.h"

#include "graph/digest.h"

#include <stdio.h>
#include <string.h>

static const char *place_of(char *buffer, size_t size, uint32_t stage, uint32_t n_stages,
                            const char *field)
{
    if (stage == 0) snprintf(buffer, size, "input.%s", field);
    else if (stage > n_stages) snprintf(buffer, size, "loss.%s", field);
    else snprintf(buffer, size, "stages[%u].%s", stage - 1, field);
    return buffer;
}

static remat_status check(remat_ctx *ctx, const remat_stage *stages, uint32_t n_stages)
{
    char place[80];
    int64_t bytes = 0, time = 0;
    if (n_stages == 0)
        return rm_fail_at(ctx, REMAT_E_INPUT, "stages", "a chain needs at least one stage");
    for (uint32_t i = 0; i <= n_stages + 1; i++) {
        const remat_stage *s = &stages[i];
        const struct {
            const char *name;
            int64_t x;
            int64_t *sum;
        } fields[] = {{"a", s->a, &bytes},   {"abar", s->abar, &bytes}, {"delta", s->delta, &bytes},
                      {"of", s->of, &bytes}, {"ob", s->ob, &bytes},     {"keep", s->keep, &bytes},
                      {"tf", s->tf, &time},  {"tb", s->tb, &time}};
        for (size_t k = 0; k < RM_LEN(fields); k++) {
            if (fields[k].x < 0)
                return rm_fail_at(ctx, REMAT_E_INPUT,
                                  place_of(place, sizeof place, i, n_stages, fields[k].name),
                                  "must not be negative");
            if (fields[k].x >= RM_MAX_SUM || (*fields[k].sum += fields[k].x) >= RM_MAX_SUM)
                return rm_fail_at(
                    ctx, REMAT_E_INPUT, place_of(place, sizeof place, i, n_stages, fields[k].name),
                    "the %s add up to 2^62 or more", fields[k].sum == &bytes ? "sizes" : "times");
        }
    }
    for (uint32_t i = 1; i <= n_stages; i++)
        if (stages[i].abar < stages[i].a) {
            rm_warn(ctx,
                    "%s: abar is smaller than a, which it contains: the numbers are used as they "
                    "are, and no plan is called "
                    "optimal",
                    place_of(place, sizeof place, i, n_stages, "abar"));
            break;
        }
    return REMAT_OK;
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
    c->stages[0] =
        (remat_stage){.a = stages[0].a, .delta = stages[0].delta}; /* an input has nothing else */
    char *text = (char *)(c->stages + n);
    const struct {
        const char **to;
        const char *from;
    } heads[] = {
        {&c->name, head->name}, {&c->size_unit, head->size_unit}, {&c->cost_unit, head->cost_unit}};
    for (size_t i = 0; i < RM_LEN(heads) + n; i++) {
        const char **to = i < RM_LEN(heads) ? heads[i].to : &c->stages[i - RM_LEN(heads)].name;
        const char *from = i < RM_LEN(heads) ? heads[i].from : stages[i - RM_LEN(heads)].name;
        const size_t length = strlen(from) + 1;
        *to = memcpy(text, from, length);
        text += length;
    }
    rm_chain_digest(c, c->digest);
    *out = c;
    return REMAT_OK;
}

/* The same way as graphs (digest.c): sizes only, since re-timing a chain does not void a plan. */
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
    int64_t forward = 0, backward = 0, all; /* below 2^62: rm_chain_new has checked it */
    for (uint32_t l = 1; l <= c->n_stages + 1; l++)
        forward += c->stages[l].tf, backward += c->stages[l].tb;
    return !rm_mul_overflows(forward, (int64_t)c->n_stages + 2, &all) &&
           !rm_add_overflows(all, backward, &all) && all < RM_MAX_SUM;
}

int64_t rm_chain_need(const remat_chain *c, uint32_t *stage)
{
    int64_t need = 0, kept = 0;
    *stage = 1;
    for (uint32_t l = 1; l <= c->n_stages + 1; l++) {
        const remat_stage *s = &c->stages[l], *before = s - 1;
        const int64_t input =
            l == 1 ? before->a
                   : c->stages[0].a + (before->a < before->abar ? before->a : before->abar);
        kept += s->keep;
        const int64_t backward = input + s->delta + s->abar + before->delta + s->ob + kept,
                      forward = input + s->abar + s->of + kept;
        const int64_t most = backward > forward ? backward : forward;
        if (most > need) need = most, *stage = l;
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
