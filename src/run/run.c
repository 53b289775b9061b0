/* run.c: the loop that runs a plan.
 *
 * Problem: a step must cost no more than the call of the caller's function, and nothing may be
 * allocated while a plan runs.
 *
 * Method: operands are one array, in the order of the steps. When the arena or a resident storage
 * is (re)placed, all pointers are found at once; a step is then a slice of that array.
 *
 * Invariant: offsets are those of a placement that has passed the overlap check, so what a step
 * gets overlaps nothing that is alive.
 *
 * Cost: O(operands) to resolve, O(1) a step besides the caller's function. */
#include "run/run.h"

#include <inttypes.h>

static remat_status resolve(remat_ctx *ctx, remat_run *run)
{
    if (!run->arena && remat_run_arena_bytes(run) > 0)
        return rm_fail(ctx, REMAT_E_USAGE, "there is no arena: call remat_run_arena first");
    for (uint32_t v = 0; v < run->n_values; v++) {
        const uint32_t slot = run->slot[v];
        if (slot == REMAT_NONE || run->needed_by[slot] == REMAT_NONE || run->residents[slot])
            continue;
        return rm_fail(ctx, REMAT_E_USAGE,
                       "step %" PRIu32 " reads resident value %" PRIu32
                       ", of which remat_run_resident was not told",
                       run->needed_by[slot], v);
    }
    for (size_t i = 0; i < run->n_operands; i++) {
        const rm_where where = run->where[i];
        run->pointers[i] = where >= 0 ? run->arena + where : run->residents[~where];
    }
    run->is_resolved = true;
    return REMAT_OK;
}

/* What the caller's function answers. */
static int call(const remat_run *run, const rm_run_step *s, size_t t, const remat_hooks *h)
{
    if (s->step.kind == REMAT_OFFLOAD)
        return h->offload(h->user, s->step.index, run->pointers[s->in], s->bytes);
    if (s->step.kind == REMAT_FETCH)
        return h->fetch(h->user, s->step.index, run->pointers[s->out], s->bytes);
    const bool works = s->workspace != REMAT_ABSENT;
    const remat_call c = {.op = s->step.index,
                          .step = (uint32_t)t,
                          .n_in = s->n_in,
                          .n_out = s->n_out,
                          .in = run->pointers + s->in,
                          .out = run->pointers + s->out,
                          .workspace = works ? run->arena + s->workspace : NULL,
                          .workspace_bytes = works ? s->workspace_bytes : 0};
    return h->compute(h->user, &c);
}

static remat_status check_hooks(remat_ctx *ctx, const remat_run *run, const remat_hooks *h)
{
    for (size_t t = 0; t < run->n_steps; t++) {
        const uint32_t kind = run->steps[t].step.kind;
        const bool there = kind == REMAT_OFFLOAD ? h->offload != NULL
                           : kind == REMAT_FETCH ? h->fetch != NULL
                                                 : h->compute != NULL;
        if (there) continue;
        return rm_fail(ctx, REMAT_E_USAGE, "step %zu: there is no function to %s", t,
                       kind == REMAT_OFFLOAD ? "offload"
                       : kind == REMAT_FETCH ? "fetch"
                                             : "compute");
    }
    return REMAT_OK;
}

static void note_high_water(remat_run *run, const rm_run_step *s, const remat_statement *list)
{
    if (s->workspace != REMAT_ABSENT && s->workspace + s->workspace_bytes > run->high_water)
        run->high_water = s->workspace + s->workspace_bytes;
    for (size_t i = s->first; i < s->end && list[i].kind != REMAT_COMPUTE; i++) {
        const rm_register *r = &run->registers[list[i].reg];
        if (r->offset + r->bytes > run->high_water) run->high_water = r->offset + r->bytes;
    }
}

static remat_status run_step(remat_ctx *ctx, remat_run *run, size_t t, const remat_hooks *hooks)
{
    const rm_run_step *s = &run->steps[t];
    if (run->modes & REMAT_RUN_POISON) rm_poison_before(run, t);
    if (run->modes & REMAT_RUN_TRACE) run->times[2 * t] = rm_clock_ns();
    const int answer = call(run, s, t, hooks);
    if (run->modes & REMAT_RUN_TRACE) {
        run->times[2 * t + 1] = rm_clock_ns();
        run->n_timed = t + 1;
    }
    if (answer != 0)
        return rm_fail(ctx, REMAT_E_CALLBACK, "step %zu, %s %" PRIu32 ": the function answers %d",
                       t, s->step.kind == REMAT_RUN ? "op" : "value", s->step.index, answer);
    return run->modes & REMAT_RUN_POISON ? rm_poison_after(ctx, run, t) : REMAT_OK;
}

remat_status rm_run_all(remat_ctx *ctx, remat_run *run, const remat_hooks *hooks)
{
    size_t n;
    const remat_statement *list = remat_program_statements(run->program, &n);
    TRY(check_hooks(ctx, run, hooks));
    if (!run->is_resolved) TRY(resolve(ctx, run));
    run->high_water = 0;
    run->n_timed = 0;
    if (run->modes & REMAT_RUN_POISON) rm_poison_begin(run);
    for (size_t t = 0; t < run->n_steps; t++) {
        note_high_water(run, &run->steps[t], list);
        TRY(run_step(ctx, run, t, hooks));
    }
    return REMAT_OK;
}
