/* poison.c: does every step write what it makes, and nothing else?
 *
 * Method: what is free is filled with one byte. What is alive has a sum. Before a step its outputs
 * and its workspace must be free. After it, everything must be as it was, but for its outputs and
 * its workspace: each register that was alive by its sum, every gap between registers by that byte.
 * Then what dies is filled again. So a step that reads what is not alive gets bytes that are no
 * numbers, and one that writes where it must not is blamed at once. A register that the step makes
 * something else in may be written, and stays alive. The bytes up to the next
 * multiple of the alignment are a gap, too, and guard the end of a register.
 *
 * Invariant: `alive` lists the live registers that have bytes, by offset.
 *
 * Cost: O(bytes of the arena) a step. */
#include "run/run.h"

#include <inttypes.h>
#include <string.h>

enum { POISON = 0xff };

static uint64_t sum_of(const char *from, int64_t bytes)
{
    uint64_t sum = UINT64_C(0x9e3779b97f4a7c15), word;
    for (; bytes >= 8; bytes -= 8, from += 8) {
        memcpy(&word, from, 8);
        sum = (sum ^ word) * UINT64_C(0xff51afd7ed558ccd);
        sum ^= sum >> 32;
    }
    for (; bytes > 0; bytes--, from++) sum = (sum ^ (unsigned char)*from) * UINT64_C(0x100000001b3);
    return sum;
}

static bool is_poison(const char *from, int64_t bytes)
{
    const uint64_t all = UINT64_MAX;
    assert(bytes >= 0);
    for (; bytes >= 8; bytes -= 8, from += 8)
        if (memcmp(from, &all, 8) != 0) return false;
    return bytes == 0 || memcmp(from, &all, (size_t)bytes) == 0;
}

static void fill(remat_run *run, int64_t offset, int64_t bytes)
{
    if (bytes > 0) memset(run->arena + offset, POISON, (size_t)bytes);
}

void rm_poison_begin(remat_run *run)
{
    run->n_alive = 0;
    fill(run, 0, remat_run_arena_bytes(run));
}

static void enter(remat_run *run, uint32_t reg)
{
    uint32_t at = run->n_alive;
    if (run->registers[reg].bytes == 0) return;
    for (; at > 0 && run->registers[run->alive[at - 1]].offset > run->registers[reg].offset; at--)
        run->alive[at] = run->alive[at - 1];
    run->alive[at] = reg;
    run->n_alive++;
}

static void leave(remat_run *run, uint32_t reg)
{
    const rm_register *r = &run->registers[reg];
    uint32_t at = 0;
    if (r->bytes == 0) return;
    while (run->alive[at] != reg) at++;
    for (run->n_alive--; at < run->n_alive; at++) run->alive[at] = run->alive[at + 1];
    fill(run, r->offset, r->bytes);
}

/* Is every gap as it was filled? All gaps are looked at, from the ground up. */
static bool gaps_are_poison(const remat_run *run)
{
    int64_t from = 0;
    for (uint32_t i = 0; i <= run->n_alive; i++) {
        const bool last = i == run->n_alive;
        const rm_register *r = last ? NULL : &run->registers[run->alive[i]];
        const int64_t to = last ? remat_run_arena_bytes(run) : r->offset;
        if (!is_poison(run->arena + from, to - from)) return false;
        if (!last) from = r->offset + r->bytes;
    }
    return true;
}

/* The step makes these registers: they are alive from now on, and may be written. */
void rm_poison_before(remat_run *run, size_t step)
{
    const rm_run_step *s = &run->steps[step];
    size_t n;
    const remat_statement *list = remat_program_statements(run->program, &n);
    for (size_t i = s->first; i < s->end && list[i].kind != REMAT_COMPUTE; i++) {
        run->registers[list[i].reg].made_by = step;
        if (list[i].kind == REMAT_ALLOCATE) enter(run, list[i].reg);
    }
}

/* Of a register that the step has made, sets the sum; of another, compares it. */
static remat_status check_registers(remat_ctx *ctx, remat_run *run, size_t step)
{
    const rm_run_step *s = &run->steps[step];
    for (uint32_t i = 0; i < run->n_alive; i++) {
        const uint32_t reg = run->alive[i];
        rm_register *r = &run->registers[reg];
        const uint64_t sum = sum_of(run->arena + r->offset, r->bytes);
        if (r->made_by == step) r->sum = sum;
        else if (r->sum != sum)
            return rm_fail(ctx, REMAT_E_CALLBACK,
                           "step %zu, op %" PRIu32 ": it has written into register %" PRIu32
                           ", which it does not make",
                           step, s->step.index, reg);
    }
    return REMAT_OK;
}

remat_status rm_poison_after(remat_ctx *ctx, remat_run *run, size_t step)
{
    const rm_run_step *s = &run->steps[step];
    size_t n;
    const remat_statement *list = remat_program_statements(run->program, &n);
    if (s->workspace != REMAT_ABSENT) fill(run, s->workspace, s->workspace_bytes);
    TRY(check_registers(ctx, run, step));
    if (!gaps_are_poison(run))
        return rm_fail(ctx, REMAT_E_CALLBACK,
                       "step %zu, op %" PRIu32 ": it has written where nothing is allocated", step,
                       s->step.index);
    for (size_t i = s->first; i < s->end; i++)
        if (list[i].kind == REMAT_DEALLOCATE) leave(run, list[i].reg);
    return REMAT_OK;
}
