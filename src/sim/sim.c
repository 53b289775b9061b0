/* sim.c: the incremental simulator.
 *
 * For every value: the sorted slots that make it and the sorted slots that read it. A storage instance is known by its root
 * value and the slot that makes it; it lives from there to its end: the last read, before the next make, of the value or of
 * any view made from this instance, or the last slot if it is a graph output's newest. Lives are ranges added to a profile
 * of memory over slots (algo/profile.c), which knows its maximum.
 *
 * Putting a step into a slot or taking it out (the same routine: toggle) can only change the ends of few instances: those
 * that its inputs refer to at that slot, those that its outputs referred to just before it, and those it makes. Their
 * lives are taken out of the profile, the slot lists are changed, and the lives are put back.
 *
 * Cost of an edit: O(slots / 64) for each such instance, plus its view reads where it has views, plus the moving of the slot
 * lists (short: the reads of one value). Invariant: the profile holds exactly the lives and workspaces of the steps present. */
#include "sim/sim.h"

#include <string.h>

#include "algo/profile.h"

enum { EMPTY = UINT32_MAX };

typedef RM_VEC(uint32_t) slot_vec;
typedef struct instance {
    uint32_t root, slot;
} instance;

struct rm_sim {
    remat_ctx *ctx;
    const remat_graph *g;
    uint32_t n_slots;
    remat_step *at; /* by slot; kind EMPTY: none */
    rm_profile memory;
    slot_vec *makes, *reads;  /* by value */
    slot_vec *offloads;       /* by value */
    uint32_t *source;         /* by value: whose instance it takes when its op runs; REMAT_NONE: a new storage */
    uint8_t *has_views;       /* by value: is it the source of another? */
    uint32_t *runs;           /* by op */
    slot_vec pinned;          /* slots that hold pinned ops */
    RM_VEC(instance) touched; /* scratch of an edit */
    int64_t cost, host_bytes;
    size_t n_steps;
    uint32_t n_unrun, n_pinned_again, n_pinned_swaps; /* faults: ops without a run, extra runs, neighbours in the wrong order */
    int64_t n_missing, n_bad_fetches;                 /* reads before any make, fetches before any offload */
};

/* ---- sorted slots ---- */

static size_t first_at_least(const slot_vec *v, uint32_t slot)
{
    size_t lo = 0, hi = v->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (v->items[mid] < slot) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static bool has_slot(const slot_vec *v, uint32_t slot)
{
    const size_t i = first_at_least(v, slot);
    return i < v->n && v->items[i] == slot;
}

/* There is room: edits reserve it first. A slot that is there already stays: inputs may be listed twice. */
static void put_slot(slot_vec *v, uint32_t slot)
{
    const size_t i = first_at_least(v, slot);
    if (i < v->n && v->items[i] == slot) return;
    memmove(v->items + i + 1, v->items + i, (v->n - i) * sizeof *v->items);
    v->items[i] = slot;
    v->n++;
}

static void drop_slot(slot_vec *v, uint32_t slot)
{
    const size_t i = first_at_least(v, slot);
    if (i == v->n || v->items[i] != slot) return;
    v->n--;
    memmove(v->items + i, v->items + i + 1, (v->n - i) * sizeof *v->items);
}

static uint32_t newest_before(const slot_vec *v, uint32_t slot)
{
    const size_t i = first_at_least(v, slot);
    return i ? v->items[i - 1] : EMPTY;
}

static uint32_t next_after(const rm_sim *s, const slot_vec *v, uint32_t slot)
{
    const size_t i = first_at_least(v, slot + 1);
    return i < v->n ? v->items[i] : s->n_slots;
}

/* ---- instances ---- */

static bool is_output_of(const remat_graph *g, uint32_t value, uint32_t other)
{
    return g->producer[value] != REMAT_NONE && g->producer[value] == g->producer[other];
}

/* The storage instance behind the instance of `value` that `slot` makes; root REMAT_NONE: resident, or something is missing. */
static instance root_at(const rm_sim *s, uint32_t value, uint32_t slot)
{
    for (;;) {
        if (slot == EMPTY) return (instance){REMAT_NONE, EMPTY};
        const uint32_t from = s->source[value];
        if (from == REMAT_NONE) return (instance){value, slot};
        if (s->g->producer[from] == REMAT_NONE) return (instance){REMAT_NONE, EMPTY};
        if (!is_output_of(s->g, value, from)) slot = newest_before(&s->makes[from], slot);
        value = from;
    }
}

static instance root_before(const rm_sim *s, uint32_t value, uint32_t slot)
{
    if (s->g->producer[value] == REMAT_NONE) return (instance){REMAT_NONE, EMPTY};
    return root_at(s, value, newest_before(&s->makes[value], slot));
}

static uint32_t end_of(const rm_sim *s, uint32_t value, uint32_t slot);

/* The latest end among views that the op in `slot` makes from `value`. */
static uint32_t end_of_views(const rm_sim *s, uint32_t value, uint32_t slot, uint32_t end)
{
    const remat_graph *g = s->g;
    if (s->at[slot].kind != REMAT_RUN) return end;
    const uint32_t op = s->at[slot].index;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1] && end < s->n_slots - 1; k++)
        if (g->out_source[k] == value) {
            const uint32_t view_end = end_of(s, g->out[k], slot);
            if (view_end > end) end = view_end;
        }
    return end;
}

/* The last slot that needs the instance of `value` made by `slot`, itself or through views. Recursion is as deep as views of
 * views. */
static uint32_t end_of(const rm_sim *s, uint32_t value, uint32_t slot)
{
    const uint32_t next = next_after(s, &s->makes[value], slot);
    if (next == s->n_slots && s->g->is_output[value]) return s->n_slots - 1;
    const slot_vec *reads = &s->reads[value];
    size_t i = first_at_least(reads, next);
    uint32_t end = i && reads->items[i - 1] > slot ? reads->items[i - 1] : slot;
    if (!s->has_views[value]) return end;
    end = end_of_views(s, value, slot, end); /* another output of the same run may be a view of this one */
    while (i > 0 && reads->items[i - 1] > slot && end < s->n_slots - 1) end = end_of_views(s, value, reads->items[--i], end);
    return end;
}

/* ---- edits ---- */

static void touch(rm_sim *s, instance x)
{
    if (x.root == REMAT_NONE) return;
    for (size_t i = 0; i < s->touched.n; i++)
        if (s->touched.items[i].root == x.root && s->touched.items[i].slot == x.slot) return;
    s->touched.items[s->touched.n++] = x;
}

/* The values that a step reads and makes. */
typedef struct effect {
    const uint32_t *in, *out;
    uint32_t n_in, n_out;
} effect;

static effect effect_of(const remat_graph *g, const remat_step *step)
{
    const uint32_t x = step->index;
    if (step->kind == REMAT_OFFLOAD) return (effect){&step->index, NULL, 1, 0};
    if (step->kind == REMAT_FETCH) return (effect){NULL, &step->index, 0, 1};
    return (effect){g->in + g->in_begin[x], g->out + g->out_begin[x], g->in_begin[x + 1] - g->in_begin[x],
                    g->out_begin[x + 1] - g->out_begin[x]};
}

static void collect(rm_sim *s, const effect *e, uint32_t slot)
{
    s->touched.n = 0;
    for (uint32_t k = 0; k < e->n_in; k++) touch(s, root_before(s, e->in[k], slot));
    for (uint32_t k = 0; k < e->n_out; k++) {
        touch(s, root_before(s, e->out[k], slot));
        if (s->source[e->out[k]] == REMAT_NONE) touch(s, (instance){e->out[k], slot});
    }
}

static void add_lives(rm_sim *s, int64_t sign)
{
    for (size_t i = 0; i < s->touched.n; i++) {
        const instance x = s->touched.items[i];
        if (has_slot(&s->makes[x.root], x.slot))
            rm_profile_add(&s->memory, &(rm_range){x.slot, end_of(s, x.root, x.slot), sign * s->g->storage[x.root]}, 1);
    }
}

static int64_t missing_reads(const rm_sim *s, uint32_t value)
{
    const slot_vec *makes = &s->makes[value];
    return (int64_t)first_at_least(&s->reads[value], makes->n ? makes->items[0] : s->n_slots);
}

static int64_t bad_fetches(const rm_sim *s, uint32_t value)
{
    const uint32_t from = s->offloads[value].n ? s->offloads[value].items[0] : s->n_slots;
    int64_t n = 0;
    for (size_t i = 0; i < s->makes[value].n && s->makes[value].items[i] < from; i++)
        n += s->at[s->makes[value].items[i]].kind == REMAT_FETCH;
    return n;
}

static void count_faults(rm_sim *s, const remat_step *step, const effect *e, int64_t sign)
{
    for (uint32_t k = 0; k < e->n_in + e->n_out; k++) {
        const uint32_t v = k < e->n_in ? e->in[k] : e->out[k - e->n_in];
        bool again = false; /* an input listed twice counts once */
        for (uint32_t j = 0; j < k && k < e->n_in && !again; j++) again = e->in[j] == v;
        if (!again && s->g->producer[v] != REMAT_NONE) s->n_missing += sign * missing_reads(s, v);
    }
    if (step->kind != REMAT_RUN) s->n_bad_fetches += sign * bad_fetches(s, step->index);
}

static uint32_t pinned_swaps_near(const rm_sim *s, size_t i)
{
    uint32_t n = 0;
    for (size_t k = i ? i : 1; k <= i + 1 && k < s->pinned.n; k++)
        n += s->at[s->pinned.items[k - 1]].index > s->at[s->pinned.items[k]].index;
    return n;
}

static void toggle_run(rm_sim *s, uint32_t slot, uint32_t op, bool in)
{
    const remat_graph *g = s->g;
    if (in ? s->runs[op]++ == 0 : --s->runs[op] == 0) s->n_unrun += in ? UINT32_MAX : 1;
    s->cost += in ? g->cost[op] : -g->cost[op];
    rm_profile_add(&s->memory, &(rm_range){slot, slot, in ? g->workspace[op] : -g->workspace[op]}, 1);
    if (!g->pinned[op]) return;
    const size_t i = first_at_least(&s->pinned, slot);
    if (in) {
        if (s->runs[op] > 1) s->n_pinned_again++;
        if (i > 0 && i < s->pinned.n)
            s->n_pinned_swaps -= s->at[s->pinned.items[i - 1]].index > s->at[s->pinned.items[i]].index;
        put_slot(&s->pinned, slot);
        s->n_pinned_swaps += pinned_swaps_near(s, i);
    } else {
        if (s->runs[op] > 0) s->n_pinned_again--;
        s->n_pinned_swaps -= pinned_swaps_near(s, i);
        drop_slot(&s->pinned, slot);
        if (i > 0 && i < s->pinned.n)
            s->n_pinned_swaps += s->at[s->pinned.items[i - 1]].index > s->at[s->pinned.items[i]].index;
    }
}

static void toggle_transfer(rm_sim *s, uint32_t slot, const remat_step *step, int64_t cost, bool in)
{
    slot_vec *offloads = &s->offloads[step->index];
    s->cost += in ? cost : -cost;
    if (step->kind != REMAT_OFFLOAD) return;
    const bool was = offloads->n > 0;
    (in ? put_slot : drop_slot)(offloads, slot);
    s->host_bytes += ((int64_t)(offloads->n > 0) - (int64_t)was) * s->g->storage[step->index];
}

static void toggle(rm_sim *s, uint32_t slot, remat_step step, int64_t transfer_cost, bool in)
{
    const effect e = effect_of(s->g, &step);
    collect(s, &e, slot);
    add_lives(s, -1);
    count_faults(s, &step, &e, -1);
    if (!in && step.kind == REMAT_RUN)
        toggle_run(s, slot, step.index, false); /* looks at pinned neighbours, this slot included */
    if (in) s->at[slot] = step;
    for (uint32_t k = 0; k < e.n_in; k++)
        if (s->g->producer[e.in[k]] != REMAT_NONE) (in ? put_slot : drop_slot)(&s->reads[e.in[k]], slot);
    for (uint32_t k = 0; k < e.n_out; k++) (in ? put_slot : drop_slot)(&s->makes[e.out[k]], slot);
    if (step.kind != REMAT_RUN) toggle_transfer(s, slot, &step, transfer_cost, in);
    if (in && step.kind == REMAT_RUN) toggle_run(s, slot, step.index, true);
    if (!in) s->at[slot].kind = EMPTY;
    count_faults(s, &step, &e, 1);
    add_lives(s, 1);
    s->n_steps += in ? 1 : SIZE_MAX;
}

remat_status rm_sim_insert(rm_sim *s, uint32_t slot, remat_step step)
{
    const remat_graph *g = s->g;
    int64_t transfer_cost = 0;
    if (slot >= s->n_slots || s->at[slot].kind != EMPTY)
        return rm_fail(s->ctx, REMAT_E_USAGE, "slot %u is taken or past the end", slot);
    if (step.kind > REMAT_FETCH || step.index >= (step.kind == REMAT_RUN ? g->n_ops : g->n_values))
        return rm_fail(s->ctx, REMAT_E_USAGE, "there is no such step");
    if (step.kind != REMAT_RUN) {
        if (g->root[step.index] != step.index || rm_is_resident(g, step.index))
            return rm_fail(s->ctx, REMAT_E_USAGE, "value %u cannot be moved: it is a view or resident", step.index);
        TRY(rm_transfer_cost(s->ctx, g->storage[step.index], &transfer_cost));
        TRY(RM_RESERVE(s->ctx, s->offloads[step.index], 1));
    }
    const effect e = effect_of(g, &step);
    for (uint32_t k = 0; k < e.n_in; k++) TRY(RM_RESERVE(s->ctx, s->reads[e.in[k]], 1));
    for (uint32_t k = 0; k < e.n_out; k++) TRY(RM_RESERVE(s->ctx, s->makes[e.out[k]], 1));
    TRY(RM_RESERVE(s->ctx, s->pinned, 1));
    s->touched.n = 0;
    TRY(RM_RESERVE(s->ctx, s->touched, (size_t)e.n_in + 2 * (size_t)e.n_out));
    toggle(s, slot, step, transfer_cost, true);
    return REMAT_OK;
}

void rm_sim_remove(rm_sim *s, uint32_t slot)
{
    const remat_step step = s->at[slot];
    int64_t transfer_cost = 0;
    if (step.kind != REMAT_RUN)
        (void)rm_transfer_cost(s->ctx, s->g->storage[step.index], &transfer_cost); /* it succeeded when inserted */
    toggle(s, slot, step, transfer_cost, false);                                   /* room in `touched` was made for it then */
}

remat_status rm_sim_move(rm_sim *s, uint32_t from, uint32_t to)
{
    const remat_step step = s->at[from];
    if (to >= s->n_slots || s->at[to].kind != EMPTY)
        return rm_fail(s->ctx, REMAT_E_USAGE, "slot %u is taken or past the end", to);
    rm_sim_remove(s, from);
    return rm_sim_insert(s, to, step); /* cannot fail: every list has had this step before */
}

/* ---- whole schedules ---- */

remat_status rm_sim_load(rm_sim *s, const remat_step *steps, size_t n_steps)
{
    if (n_steps >= s->n_slots) return rm_fail(s->ctx, REMAT_E_USAGE, "%zu steps do not fit into %u slots", n_steps, s->n_slots);
    for (uint32_t slot = 0; slot < s->n_slots && s->n_steps; slot++)
        if (s->at[slot].kind != EMPTY) rm_sim_remove(s, slot);
    for (size_t i = 0; i < n_steps; i++) TRY(rm_sim_insert(s, (uint32_t)((i + 1) * s->n_slots / (n_steps + 1)), steps[i]));
    return REMAT_OK;
}

remat_status rm_sim_steps(const rm_sim *s, rm_schedule *out)
{
    for (uint32_t slot = 0; slot < s->n_slots; slot++)
        if (s->at[slot].kind != EMPTY) TRY(RM_PUSH(s->ctx, *out, s->at[slot]));
    return REMAT_OK;
}

static remat_status allocate(rm_sim *s)
{
    const remat_graph *g = s->g;
    const struct {
        void **to;
        size_t n, size;
    } arrays[] = {
        {(void **)&s->at, s->n_slots, sizeof *s->at},          {(void **)&s->makes, g->n_values, sizeof *s->makes},
        {(void **)&s->reads, g->n_values, sizeof *s->reads},   {(void **)&s->offloads, g->n_values, sizeof *s->offloads},
        {(void **)&s->source, g->n_values, sizeof *s->source}, {(void **)&s->has_views, g->n_values, sizeof *s->has_views},
        {(void **)&s->runs, g->n_ops, sizeof *s->runs}};
    for (size_t i = 0; i < RM_LEN(arrays); i++)
        if (!(*arrays[i].to = rm_alloc(s->ctx, arrays[i].n * arrays[i].size))) return REMAT_E_MEMORY;
    return rm_profile_new(s->ctx, s->n_slots, &s->memory);
}

remat_status rm_sim_new(remat_ctx *ctx, const remat_graph *g, uint32_t n_slots, rm_sim **out)
{
    rm_sim *s = rm_alloc(ctx, sizeof *s);
    if (!s) return REMAT_E_MEMORY;
    s->ctx = ctx;
    s->g = g;
    s->n_slots = n_slots ? n_slots : 1;
    s->n_unrun = g->n_ops;
    const remat_status status = allocate(s);
    if (status != REMAT_OK) {
        rm_sim_free(s);
        return status;
    }
    for (uint32_t slot = 0; slot < s->n_slots; slot++) s->at[slot].kind = EMPTY;
    for (uint32_t v = 0; v < g->n_values; v++) s->source[v] = REMAT_NONE;
    for (uint32_t k = 0; k < g->n_out; k++) {
        s->source[g->out[k]] = g->out_source[k];
        if (g->out_source[k] != REMAT_NONE) s->has_views[g->out_source[k]] = 1;
    }
    *out = s;
    return REMAT_OK;
}

void rm_sim_free(rm_sim *s)
{
    if (!s) return;
    const remat_alloc heap = s->ctx->heap;
    for (uint32_t v = 0; v < s->g->n_values; v++) {
        if (s->makes) RM_VEC_FREE(&heap, s->makes[v]);
        if (s->reads) RM_VEC_FREE(&heap, s->reads[v]);
        if (s->offloads) RM_VEC_FREE(&heap, s->offloads[v]);
    }
    rm_release(&heap, s->at, s->n_slots * sizeof *s->at);
    rm_release(&heap, s->makes, s->g->n_values * sizeof *s->makes);
    rm_release(&heap, s->reads, s->g->n_values * sizeof *s->reads);
    rm_release(&heap, s->offloads, s->g->n_values * sizeof *s->offloads);
    rm_release(&heap, s->source, s->g->n_values * sizeof *s->source);
    rm_release(&heap, s->has_views, s->g->n_values * sizeof *s->has_views);
    rm_release(&heap, s->runs, s->g->n_ops * sizeof *s->runs);
    if (s->memory.n_blocks) rm_profile_free(&heap, &s->memory);
    RM_VEC_FREE(&heap, s->pinned);
    RM_VEC_FREE(&heap, s->touched);
    rm_release(&heap, s, sizeof *s);
}

bool rm_sim_is_full(const rm_sim *s, uint32_t slot) { return slot < s->n_slots && s->at[slot].kind != EMPTY; }
remat_step rm_sim_at(const rm_sim *s, uint32_t slot) { return s->at[slot]; }
int64_t rm_sim_peak(const rm_sim *s) { return s->g->resident_bytes + s->memory.max; }
int64_t rm_sim_cost(const rm_sim *s) { return s->cost; }
int64_t rm_sim_host_bytes(const rm_sim *s) { return s->host_bytes; }
bool rm_sim_is_valid(const rm_sim *s)
{
    return !(s->n_missing || s->n_unrun || s->n_pinned_again || s->n_pinned_swaps || s->n_bad_fetches);
}
