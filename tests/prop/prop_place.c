/* prop_place.c: placement on random spans against brute force, and placements of random schedules.
 *
 * - Few spans: the height is the least of all orders of stacking, it is proved (outcome optimal),
 *   and one byte less is proved impossible.
 * - Spans cut from a full rectangle: there is a placement without waste, and it is found.
 * - Bricks: such a rectangle, a thousand times as high, on a low one that is cut into small spans,
 *   the times of which are shuffled. Whatever is found is a placement, mostly one without waste.
 * - Programs: registers and workspaces of random schedules, aligned, do not overlap by a check that
 *   looks at all pairs, and lie within the height; its load is the schedule's peak.
 * - Plans that carry their offsets: a file gives them back, byte for byte, and the verifier agrees
 *   with them, and they are a placement again. After a change to one of them it agrees if and only
 * if all pairs are still apart.
 *
 * Usage: prop_place N SEED */
#include "check.h"

#include <string.h>

#include "place_brute.h"
#include "graph/plan.h"
#include "random_graph.h"
#include "text.h"

enum { MOST = 60 };

static remat_ctx *ctx;
static int64_t n_moved, n_moved_wrongly; /* plans with an offset changed; those it made invalid */
static int64_t n_bricks, n_full_bricks;  /* cases of bricks; those without waste */
static int64_t n_in_place;
static int64_t n_above_load; /* cases of few spans in which no placement is as low as the load */

#define OK(call) CHECK((call) == REMAT_OK, "%s", remat_ctx_error(ctx))

/* All pairs: as plain as can be. */
static bool are_apart(const remat_span *s, const int64_t *offsets, size_t n, int64_t height)
{
    int64_t top = 0;
    for (size_t i = 0; i < n; i++) {
        if (offsets[i] < 0) return false;
        if (offsets[i] + s[i].bytes > top) top = offsets[i] + s[i].bytes;
        for (size_t k = 0; k < i; k++) {
            const bool in_time = s[i].begin < s[k].end && s[k].begin < s[i].end;
            const bool in_space = offsets[i] < offsets[k] + s[k].bytes &&
                                  offsets[k] < offsets[i] + s[i].bytes && s[i].bytes && s[k].bytes;
            if (in_time && in_space) return false;
        }
    }
    return top == height;
}

static void check_apart(const remat_span *s, const int64_t *offsets, size_t n, int64_t height)
{
    CHECK(are_apart(s, offsets, n, height), "%zu spans overlap, or the height is not %" PRId64, n,
          height);
}

static remat_packing place(const remat_span *spans, size_t n, int64_t capacity, int64_t *offsets)
{
    remat_packing p = REMAT_PACKING_INIT;
    OK(remat_spans_place(ctx, spans, n, capacity, offsets, &p));
    check_apart(spans, offsets, n, p.height_bytes);
    OK(remat_spans_verify(ctx, spans, n, offsets, 1, p.height_bytes));
    return p;
}

/* Anything, spans of no bytes too. */
static size_t any_spans(random_source *r, remat_span *spans)
{
    const size_t n = random_below(r, PLACE_BRUTE_MOST + 1);
    const uint32_t times = 1 + random_below(r, 9), sizes = 1 + random_below(r, 12);
    for (size_t i = 0; i < n; i++) {
        const int64_t begin = (int64_t)random_below(r, times) - 3;
        spans[i] = (remat_span){begin, begin + 1 + random_below(r, times), random_below(r, sizes)};
    }
    return n;
}

/* The same bytes are needed at every time: some spans end, and others begin with as many bytes.
 * Often there is no placement without waste. */
static size_t full_spans(random_source *r, remat_span *spans)
{
    int64_t free_bytes = 3 + random_below(r, 4), time = 0;
    size_t n = 0;
    for (; n < PLACE_BRUTE_MOST; time++) {
        for (; free_bytes && n < PLACE_BRUTE_MOST; n++) {
            const int64_t most = free_bytes < 3 ? free_bytes : 3;
            spans[n] = (remat_span){time, INT64_MAX, 1 + random_below(r, (uint32_t)most)};
            free_bytes -= spans[n].bytes;
        }
        for (size_t i = 0; i < n; i++) {
            if (spans[i].end != INT64_MAX || random_chance(r, 60)) continue;
            spans[i].end = time + 1;
            free_bytes += spans[i].bytes;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (spans[i].end == INT64_MAX) spans[i].end = time + 1;
    return n;
}

static void few_spans(random_source *r)
{
    remat_span spans[PLACE_BRUTE_MOST];
    int64_t offsets[PLACE_BRUTE_MOST];
    const size_t n = random_chance(r, 50) ? any_spans(r, spans) : full_spans(r, spans);
    const int64_t least = place_brute(spans, n);
    const remat_packing p = place(spans, n, REMAT_BUDGET_NONE, offsets);
    CHECK(p.height_bytes == least, "height %" PRId64 ", least %" PRId64, p.height_bytes, least);
    CHECK(p.outcome == REMAT_OPTIMAL && p.bound_bytes == least, "outcome %d", (int)p.outcome);
    n_above_load += least > p.load_bytes;
    CHECK(place(spans, n, least, offsets).height_bytes == least, "at the least capacity");
    if (least == 0) return;
    const remat_packing under = place(spans, n, least - 1, offsets);
    CHECK(under.outcome == REMAT_INFEASIBLE, "outcome %d below the least", (int)under.outcome);
    CHECK(under.bound_bytes >= least, "bound %" PRId64, under.bound_bytes);
}

/* Cuts rectangles out of one, as by a guillotine: the pieces fill it without waste. */
static size_t cut(random_source *r, remat_span *spans, size_t n, int64_t begin, int64_t end,
                  int64_t bytes)
{
    const bool can_cut_time = end - begin > 1, can_cut_bytes = bytes > 1;
    if (n >= MOST - 2 || (!can_cut_time && !can_cut_bytes) || random_chance(r, 15)) {
        spans[n] = (remat_span){begin, end, bytes};
        return n + 1;
    }
    if (can_cut_time && (!can_cut_bytes || random_chance(r, 50))) {
        const int64_t middle = begin + 1 + random_below(r, (uint32_t)(end - begin - 1));
        n = cut(r, spans, n, begin, middle, bytes);
        return n < MOST ? cut(r, spans, n, middle, end, bytes) : n;
    }
    const int64_t lower = 1 + random_below(r, (uint32_t)(bytes - 1));
    n = cut(r, spans, n, begin, end, lower);
    return n < MOST ? cut(r, spans, n, begin, end, bytes - lower) : n;
}

static void full_rectangle(random_source *r)
{
    remat_span spans[MOST + 1];
    int64_t offsets[MOST + 1];
    const int64_t bytes = 20 + random_below(r, 80), times = 4 + random_below(r, 12);
    const size_t n = cut(r, spans, 0, 0, times, bytes);
    const remat_packing p = place(spans, n, REMAT_BUDGET_NONE, offsets);
    CHECK(p.load_bytes <= bytes, "load %" PRId64, p.load_bytes);
    CHECK(p.height_bytes == p.load_bytes && p.outcome == REMAT_OPTIMAL,
          "%zu spans: height %" PRId64 ", load %" PRId64 ", stopped %d", n, p.height_bytes,
          p.load_bytes, (int)p.stopped);
}

/* Small spans keep their bytes and their lives, and begin at any time: at full times they must
 * share what bricks leave. */
static void bricks(random_source *r)
{
    remat_span spans[2 * MOST + 2];
    int64_t offsets[2 * MOST + 2];
    const int64_t times = 8 + random_below(r, 30), scale = 1000 + random_below(r, 1000);
    const size_t n = cut(r, spans, 0, 0, times, 4 + random_below(r, 8));
    for (size_t i = 0; i < n; i++) spans[i].bytes *= scale;
    const size_t n_small = cut(r, spans + n, 0, 0, times, 4 + random_below(r, 60));
    for (size_t i = n; i < n + n_small && random_chance(r, 80); i++) {
        const int64_t life = spans[i].end - spans[i].begin;
        spans[i].begin = random_below(r, (uint32_t)(times - life) + 1);
        spans[i].end = spans[i].begin + life;
    }
    const remat_packing p = place(spans, n + n_small, REMAT_BUDGET_NONE, offsets);
    n_bricks++;
    n_full_bricks += p.height_bytes == p.load_bytes;
}

static int64_t peak_of(const remat_graph *g, const random_schedule *s, int64_t resident)
{
    int64_t *memory = calloc(s->n_steps + 1, sizeof *memory), peak = resident;
    OK(remat_steps_memory(ctx, g, s->steps, s->n_steps, memory));
    for (size_t t = 0; t < s->n_steps; t++)
        if (memory[t] > peak) peak = memory[t];
    free(memory);
    return peak - resident;
}

static void check_program(const remat_graph *g, const random_schedule *s, int64_t align,
                          int64_t load)
{
    remat_program *program = NULL;
    remat_placement *placement = NULL;
    OK(remat_lower(ctx, g, s->steps, s->n_steps, &program));
    OK(remat_place(ctx, program, align, &placement));
    size_t n, n_statements, workspaces = 0;
    uint32_t n_regs = 0;
    const remat_span *spans = remat_placement_spans(placement, &n);
    const remat_statement *statements = remat_program_statements(program, &n_statements);
    int64_t *offsets = calloc(n + 1, sizeof *offsets);
    for (size_t i = 0; i < n_statements; i++) n_regs += statements[i].kind == REMAT_ALLOCATE;
    for (uint32_t reg = 0; reg < n_regs; reg++)
        offsets[reg] = remat_placement_register(placement, reg);
    for (size_t i = 0; i < n_statements; i++) {
        if (statements[i].kind != REMAT_COMPUTE || !statements[i].bytes) continue;
        const int64_t at = remat_placement_workspace(placement, statements[i].step_index);
        offsets[n_regs + workspaces++] = at;
    }
    CHECK(n == n_regs + workspaces, "%zu spans", n);
    for (size_t i = 0; i < n; i++)
        CHECK(offsets[i] % align == 0 && spans[i].bytes % align == 0, "span %zu is not aligned", i);
    const remat_packing *p = remat_placement_packing(placement);
    check_apart(spans, offsets, n, p->height_bytes);
    CHECK(p->load_bytes == load, "load %" PRId64 ", peak %" PRId64, p->load_bytes, load);
    free(offsets);
    remat_placement_free(placement);
    remat_program_free(program);
}

static bool is_valid(const remat_graph *g, const remat_plan *plan)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    OK(remat_plan_verify(ctx, g, plan, &v));
    CHECK(v.valid == !*v.reason, "valid %d: %s", v.valid, v.reason);
    return v.valid;
}

/* What a placed plan names: storages in the order in which they are made, then workspaces. */
typedef struct named {
    remat_span *spans;
    size_t *before; /* by storage: the one in whose place it is made, or itself */
    size_t n_storages, n;
} named;

static named named_by(const remat_program *program, int64_t align)
{
    size_t n;
    const remat_statement *x = remat_program_statements(program, &n);
    const int64_t n_steps = n ? x[n - 1].step_index + 1 : 0;
    named out = {.spans = calloc(n + 1, sizeof *out.spans),
                 .before = calloc(n + 1, sizeof *out.before)};
    size_t *newest = calloc(n + 1, sizeof *newest); /* by register */
    for (size_t i = 0; i < n; i++) {
        const int64_t step = x[i].step_index;
        if (x[i].kind == REMAT_COMPUTE) continue;
        remat_span *old = &out.spans[newest[x[i].reg]];
        if (x[i].kind == REMAT_DEALLOCATE) old->end = step + 1;
        if (x[i].kind == REMAT_DEALLOCATE) continue;
        out.before[out.n] = out.n;
        if (x[i].kind == REMAT_REUSE) {
            old->end = step;
            out.before[out.n] = newest[x[i].reg];
            n_in_place++;
        }
        newest[x[i].reg] = out.n;
        out.spans[out.n++] = (remat_span){step, n_steps, (x[i].bytes + align - 1) / align * align};
    }
    out.n_storages = out.n;
    for (size_t i = 0; i < n; i++)
        if (x[i].kind == REMAT_COMPUTE && x[i].bytes)
            out.spans[out.n++] = (remat_span){x[i].step_index, x[i].step_index + 1,
                                              (x[i].bytes + align - 1) / align * align};
    free(newest);
    return out;
}

/* Does all that is made in place lie where what it replaces did? */
static bool are_in_place(const named *x, const int64_t *offsets)
{
    for (size_t i = 0; i < x->n_storages; i++)
        if (x->spans[i].bytes && offsets[i] != offsets[x->before[i]]) return false;
    return true;
}

/* Moves one offset. The verifier must say what looking at all pairs says. */
static void move_one(random_source *r, const remat_graph *g, remat_plan *plan, const named *x)
{
    rm_plan_placement *p = &plan->placement;
    const size_t n = p->n_storages + p->n_workspaces;
    if (n == 0) return;
    const size_t i = random_below(r, (uint32_t)n);
    const int64_t steps = (int64_t)random_below(r, 5) - 2, old = p->offsets[i].offset;
    int64_t *offsets = calloc(n, sizeof *offsets);
    p->offsets[i].offset += steps * (random_chance(r, 10) ? 1 : p->align);
    if (p->offsets[i].offset < 0) p->offsets[i].offset = 0; /* files cannot say less */
    for (size_t k = 0; k < n; k++) offsets[k] = p->offsets[k].offset;
    CHECK(n == x->n, "%zu spans in the plan, %zu in the program", n, x->n);
    const bool good = offsets[i] % p->align == 0 && are_in_place(x, offsets) &&
                      are_apart(x->spans, offsets, n, p->arena_bytes);
    CHECK(is_valid(g, plan) == good, "span %zu at %" PRId64, i, offsets[i]);
    n_moved += good;
    n_moved_wrongly += !good;
    p->offsets[i].offset = old;
    free(offsets);
}

/* One more, one less, or another instance: none of them is a placement, unless nothing is lost. */
static void spoil_one(random_source *r, const remat_graph *g, remat_plan *plan,
                      const remat_span *spans)
{
    rm_plan_placement *p = &plan->placement;
    if (p->n_storages == 0) return;
    const size_t i = random_below(r, (uint32_t)p->n_storages);
    const rm_offset old = p->offsets[i];
    p->offsets[i].instance += 1 + random_below(r, 3);
    CHECK(!is_valid(g, plan), "another instance of span %zu", i);
    p->offsets[i] = old;
    p->offsets[i].index = remat_graph_n_values(g);
    CHECK(!is_valid(g, plan), "no value at span %zu", i);
    p->offsets[i] = old;
    if (p->n_workspaces) return;
    p->n_storages--; /* the last is not named */
    const bool had_bytes = spans[p->n_storages].bytes > 0;
    const int64_t top = p->offsets[p->n_storages].offset + spans[p->n_storages].bytes;
    if (had_bytes || top < p->arena_bytes)
        CHECK(is_valid(g, plan) == !had_bytes, "without the last span");
    p->n_storages++;
}

/* The placement that a plan carries is the one it was given, in whatever order the file has it. */
static void check_carried(random_source *r, const remat_graph *g, remat_plan *plan,
                          const remat_placement *given)
{
    rm_plan_placement *p = &plan->placement;
    remat_placement *carried = NULL;
    for (size_t i = p->n_storages; i > 1; i--) {
        const size_t k = random_below(r, (uint32_t)i);
        const rm_offset moved = p->offsets[k];
        p->offsets[k] = p->offsets[i - 1];
        p->offsets[i - 1] = moved;
    }
    OK(remat_plan_placement(ctx, g, plan, &carried));
    const remat_packing *a = remat_placement_packing(carried), *b = remat_placement_packing(given);
    CHECK(a->height_bytes == b->height_bytes && a->load_bytes == b->load_bytes, "other numbers");
    CHECK(a->bound_bytes == a->load_bytes, "bound %" PRId64, a->bound_bytes);
    for (uint32_t reg = 0; reg < p->n_storages; reg++)
        CHECK(remat_placement_register(carried, reg) == remat_placement_register(given, reg),
              "register %" PRIu32, reg);
    for (size_t t = 0; t < plan->n_steps; t++)
        CHECK(remat_placement_workspace(carried, t) == remat_placement_workspace(given, t),
              "workspace of step %zu", t);
    remat_placement_free(carried);
}

static void plan_with_offsets(random_source *r, const remat_graph *g, const random_schedule *s,
                              int64_t align)
{
    remat_plan *plan = NULL, *placed = NULL, *read = NULL;
    remat_input *input = NULL;
    remat_program *program = NULL;
    remat_placement *placement = NULL;
    text first = {0}, second = {0};
    OK(remat_plan_of_steps(ctx, g, s->steps, s->n_steps, NULL, REMAT_BUDGET_NONE, 0, &plan));
    OK(remat_plan_place(ctx, g, plan, align, &placed));
    OK(remat_plan_write(ctx, placed, REMAT_JSON, into_text, &first));
    OK(remat_input_parse(ctx, "plan", first.bytes, first.n, &input));
    OK(remat_plan_read(ctx, input, &read));
    OK(remat_plan_write(ctx, read, REMAT_JSON, into_text, &second));
    CHECK(first.n == second.n && memcmp(first.bytes, second.bytes, first.n) == 0, "other bytes");
    CHECK(is_valid(g, read) && remat_plan_arena_bytes(plan) == REMAT_ABSENT, "as it was read");
    OK(remat_lower(ctx, g, s->steps, s->n_steps, &program));
    OK(remat_place(ctx, program, align, &placement));
    named x = named_by(program, align);
    CHECK(remat_plan_arena_bytes(read) == remat_placement_packing(placement)->height_bytes,
          "arena %" PRId64, remat_plan_arena_bytes(read));
    for (int i = 0; i < 3; i++) move_one(r, g, read, &x);
    spoil_one(r, g, read, x.spans);
    check_carried(r, g, read, placement);
    free(x.spans), free(x.before);
    free(first.bytes);
    free(second.bytes);
    remat_placement_free(placement), remat_program_free(program), remat_input_free(input);
    remat_plan_free(read), remat_plan_free(placed), remat_plan_free(plan);
}

static void program_of_schedule(random_source *r)
{
    remat_graph *g = random_graph(ctx, r), *aligned = NULL;
    CHECK(g, "%s", remat_ctx_error(ctx));
    random_schedule s = {0};
    random_schedule_make(&s, g, r, random_chance(r, 30));
    remat_info info = REMAT_INFO_INIT;
    OK(remat_graph_info(ctx, g, &info));
    const int64_t align = (int64_t)1 << random_below(r, 7);
    OK(remat_graph_align(ctx, g, align, &aligned));
    check_program(g, &s, 1, peak_of(g, &s, info.resident_bytes));
    check_program(g, &s, align, peak_of(aligned, &s, info.resident_bytes));
    check_program(aligned, &s, align, peak_of(aligned, &s, info.resident_bytes));
    plan_with_offsets(r, g, &s, align);
    random_schedule_free(&s);
    remat_graph_free(aligned);
    remat_graph_free(g);
}

int main(int argc, char **argv)
{
    const int64_t n = cases_asked_for(argc, argv);
    ctx = remat_ctx_new(NULL);
    if (!ctx) return 1;
    for (int64_t i = 0; i < n; i++, case_seed++) {
        random_source r = {case_seed};
        few_spans(&r);
        if (i % 10 == 0) full_rectangle(&r);
        if (i % 10 == 5) bricks(&r);
        program_of_schedule(&r);
    }
    remat_ctx_free(ctx);
    CHECK(n < 1000 || n_above_load > 0, "the search has proved nothing in any case");
    CHECK(n < 1000 || n_in_place > 0, "nothing was made in place");
    CHECK(n < 1000 || (n_moved > 0 && n_moved_wrongly > 0), "offsets were moved for nothing");
    CHECK(n < 1000 || n_full_bricks * 10 > n_bricks * 9, "%" PRId64 " of %" PRId64 " bricks placed",
          n_full_bricks, n_bricks);
    printf("prop_place: %" PRId64 " cases, waste unavoidable in %" PRId64 "; %" PRId64
           " of %" PRId64 " with bricks full; %" PRId64 " offsets moved, %" PRId64
           " of them wrongly; %" PRId64 " storages in place of others\n",
           n, n_above_load, n_full_bricks, n_bricks, n_moved + n_moved_wrongly, n_moved_wrongly,
           n_in_place);
    return 0;
}
