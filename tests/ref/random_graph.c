/* random_graph.c: see random_graph.h. */
#include "random_graph.h"

#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t random_below(random_source *r, uint32_t n)
{
    return n ? (uint32_t)(rm_random_next(r) % n) : 0;
}
bool random_chance(random_source *r, uint32_t percent) { return random_below(r, 100) < percent; }

/* ---- what works in place ---- */

static uint32_t root_of(const remat_builder *b, uint32_t value)
{
    while (b->values.items[value].alias != REMAT_NONE) value = b->values.items[value].alias;
    return value;
}

static bool is_made(const remat_builder *b, uint32_t value)
{
    for (size_t i = 0; i < b->ops.n; i++)
        for (uint32_t k = 0; k < b->ops.items[i].n_out; k++)
            if (b->lists.items[b->ops.items[i].out_begin + k] == value) return true;
    return false;
}

void random_inplace(remat_builder *b, random_source *r)
{
    const uint32_t percent = random_chance(r, 40) ? 25 + random_below(r, 70) : 0;
    for (uint32_t op = 0; op < b->ops.n && percent && b->status == REMAT_OK; op++) {
        const rm_op_record o = b->ops.items[op];
        const uint32_t *in = b->lists.items + o.in_begin, *out = b->lists.items + o.out_begin;
        uint32_t taken[8], n_taken = 0;
        for (uint32_t k = 0; k < o.n_out && o.n_in && n_taken < 8; k++) {
            const uint32_t i = random_below(r, o.n_in), root = root_of(b, in[i]);
            bool is_free = root_of(b, out[k]) == out[k] && is_made(b, root);
            for (uint32_t other = 0; other < n_taken; other++) is_free &= taken[other] != root;
            for (uint32_t other = 0; other < o.n_out; other++)
                is_free &= root_of(b, out[other]) != root;
            if (!is_free || !random_chance(r, percent)) continue;
            taken[n_taken++] = root;
            const int64_t size = b->values.items[root].size,
                          storage = b->values.items[root].storage;
            remat_builder_value_set(b, out[k], REMAT_VALUE_SIZE, size);
            remat_builder_value_set(b, out[k], REMAT_VALUE_STORAGE, storage);
            remat_builder_op_inplace(b, op, k, i);
        }
    }
}

/* ---- graphs ---- */

enum { MAX_VALUES = 400, MAX_IN = 6, MAX_OUT = 4, MAX_EARLY = 4 };

typedef struct state {
    remat_builder *b;
    random_source *r;
    int64_t unit;               /* all sizes are multiples of it */
    uint32_t root[MAX_VALUES];  /* by value */
    uint32_t known[MAX_VALUES]; /* the values that ops may read, in the order they are made */
    uint32_t n_values, n_known;
    uint32_t early[MAX_EARLY], n_early; /* made by no op yet, though their index is low */
    uint32_t early_views[MAX_EARLY], n_early_views;
} state;

static int64_t random_bytes(state *s)
{
    if (random_chance(s->r, 12)) return 0;
    return s->unit * (1 + random_below(s->r, 12));
}

static uint32_t add_value(state *s)
{
    char name[16];
    snprintf(name, sizeof name, "v%u", s->n_values);
    const int64_t size = random_bytes(s);
    const uint32_t v = remat_builder_value(s->b, random_chance(s->r, 80) ? name : NULL, size);
    if (random_chance(s->r, 20))
        remat_builder_value_set(s->b, v, REMAT_VALUE_STORAGE, size + random_bytes(s));
    if (random_chance(s->r, 30))
        remat_builder_value_tensor(s->b, v, "float32", (const int64_t[]){size / 4, 1}, 2);
    s->root[s->n_values++] = v;
    return v;
}

static uint32_t add_view(state *s, uint32_t base)
{
    const uint32_t v =
        remat_builder_view(s->b, NULL, random_bytes(s) * (random_chance(s->r, 15) ? 10 : 1), base);
    s->root[s->n_values++] = s->root[base];
    return v;
}

static void add_op(state *s, uint32_t index, uint32_t n_ops)
{
    random_source *r = s->r;
    uint32_t in[MAX_IN], out[MAX_OUT], n_in = 0, n_out = 0;
    const uint32_t known = s->n_known, recent = known < 6 ? known : 6;
    if (known)
        for (uint32_t n = random_below(r, 4); n_in < n;)
            in[n_in++] = s->known[random_chance(r, 60) ? known - 1 - random_below(r, recent)
                                                       : random_below(r, known)];
    if (n_in && random_chance(r, 10)) in[n_in] = in[random_below(r, n_in)], n_in++;
    const uint32_t wanted = random_chance(r, 6)    ? 0
                            : random_chance(r, 75) ? 1
                                                   : 2 + random_below(r, 2);
    const bool all_views = n_in && random_chance(r, 22);
    while (n_out < wanted) {
        if (n_in &&
            (all_views ||
             random_chance(r, 12))) { /* declared on the input or on its root; both mean the same */
            const uint32_t base = in[random_below(r, n_in)];
            if (s->n_early_views && s->root[s->early_views[s->n_early_views - 1]] == s->root[base])
                out[n_out] = s->early_views[--s->n_early_views];
            else out[n_out] = add_view(s, random_chance(r, 60) ? base : s->root[base]);
        } else if (n_out && random_chance(r, 15)) {
            out[n_out] = add_view(s, out[random_below(r, n_out)]);
        } else if (s->n_early && random_chance(r, 20)) {
            out[n_out] = s->early[--s->n_early];
        } else {
            out[n_out] = add_value(s);
        }
        n_out++;
    }
    for (uint32_t k = 0; k < n_out; k++) s->known[s->n_known++] = out[k];
    char name[16];
    snprintf(name, sizeof name, "op%u", index);
    const uint32_t op =
        remat_builder_op(s->b, random_chance(r, 90) ? name : NULL, in, n_in, out, n_out);
    if (random_chance(r, 85))
        remat_builder_op_set(s->b, op, REMAT_OP_COST,
                             random_chance(r, 15) ? 0 : random_below(r, 30));
    if (random_chance(r, 50))
        remat_builder_op_set(s->b, op, REMAT_OP_FLOPS,
                             (int64_t)random_below(r, 1000000) * random_below(r, 1000));
    if (random_chance(r, 20)) remat_builder_op_set(s->b, op, REMAT_OP_WORKSPACE, random_bytes(s));
    if (random_chance(r, 8)) remat_builder_op_set(s->b, op, REMAT_OP_PINNED, 1);
    if (random_chance(r, 60)) remat_builder_op_set(s->b, op, REMAT_OP_CLASS, random_below(r, 4));
    if (random_chance(r, 5)) remat_builder_op_set(s->b, op, REMAT_OP_CLASS, REMAT_CLASS_RANDOM);
    if (random_chance(r, 30)) remat_builder_op_set(s->b, op, REMAT_OP_REPLAY, 1);
    if (random_chance(r, n_in == 1 && n_out == 1 ? 40 : 10))
        remat_builder_op_target(s->b, op,
                                random_chance(r, 80) ? "aten.detach.default" : "aten.mm.default");
    if (n_ops % 3)
        remat_builder_op_set(s->b, op, REMAT_OP_PHASE,
                             index * 2 < n_ops ? REMAT_FORWARD : REMAT_BACKWARD);
}

/* A view that no op made would be a resident alias of a value that some op may make: one last op
 * makes what is left. */
static void finish_early(state *s)
{
    while (s->n_early_views) {
        const uint32_t view = s->early_views[--s->n_early_views], root = s->root[view];
        remat_builder_op(s->b, "late view", &root, 1, &view, 1);
        s->known[s->n_known++] = view;
    }
}

remat_graph *random_graph(remat_ctx *ctx, random_source *r)
{
    state s = {.b = remat_builder_new(ctx, "random"),
               .r = r,
               .unit = random_chance(r, 90) ? 1 : (int64_t)1 << 40};
    if (!s.b) return NULL;
    const uint32_t n_residents = random_below(r, 4);
    for (uint32_t i = 0; i < n_residents; i++) {
        const uint32_t v =
            i && random_chance(r, 10) ? add_view(&s, random_below(r, i)) : add_value(&s);
        remat_builder_value_set(s.b, v, REMAT_VALUE_KIND, random_below(r, 5));
        s.known[s.n_known++] = v;
    }
    while (s.n_early < MAX_EARLY && random_chance(r, 25)) s.early[s.n_early++] = add_value(&s);
    const uint32_t n_early = s.n_early;
    for (uint32_t i = 0; i < n_early; i++)
        if (random_chance(r, 50)) s.early_views[s.n_early_views++] = add_view(&s, s.early[i]);
    const uint32_t n_ops = random_chance(r, 3)   ? 60
                           : random_chance(r, 1) ? 0
                                                 : 1 + random_below(r, 14);
    for (uint32_t i = 0; i < n_ops; i++) add_op(&s, i, n_ops);
    finish_early(&s);
    for (uint32_t v = 0; v < s.n_values; v++)
        if (random_chance(r, v + 3 > s.n_values ? 40 : 8)) remat_builder_output(s.b, v);
    random_inplace(s.b, r);
    remat_graph *graph = NULL;
    if (remat_builder_finish(s.b, &graph) != REMAT_OK) graph = NULL;
    remat_builder_free(s.b);
    return graph;
}

remat_graph *random_training_graph(remat_ctx *ctx, random_source *r)
{
    remat_builder *b = remat_builder_new(ctx, "training");
    uint32_t values[40], roots[40], n_values = 0, n_stores = 0;
    const uint32_t n_forward = 3 + random_below(r, 4), n_ops = n_forward + 2 + random_below(r, 3),
                   most = 1 + random_below(r, 4);
    const bool shrinks = random_chance(r, 50);
    if (random_chance(r, 30))
        values[n_values] = roots[n_values] = remat_builder_value(b, "w", 1 + random_below(r, 3)),
        n_values++;
    for (uint32_t op = 0; op < n_ops; op++) {
        uint32_t in[3], out[3], n_in = 0, n_out = 0;
        const bool forward = op < n_forward;
        for (uint32_t n = n_values ? 1 + random_below(r, forward ? 2 : 3) : 0; n_in < n; n_in++) {
            const uint32_t recent = n_values < 3 ? n_values : 3;
            const bool late = random_chance(r, forward ? 80 : shrinks ? 60 : 0);
            in[n_in] =
                values[late ? n_values - 1 - random_below(r, forward ? recent : n_values / 2 + 1)
                            : random_below(r, n_values)];
        }
        const uint32_t wanted = n_stores >= 9          ? 1
                                : random_chance(r, 75) ? 1
                                                       : 2 + random_below(r, 2);
        while (n_out < wanted) {
            const uint32_t v = remat_builder_value(
                b, NULL,
                random_chance(r, 8)
                    ? 0
                    : 1 + random_below(r, most) + (shrinks && forward ? n_forward - op : 0));
            values[n_values] = roots[n_values] = v, n_values++, n_stores++;
            out[n_out++] = v;
        }
        const uint32_t at = remat_builder_op(b, NULL, in, n_in, out, n_out);
        remat_builder_op_set(b, at, REMAT_OP_COST,
                             random_chance(r, 5) ? 0 : 1 + random_below(r, 9));
        if (random_chance(r, forward ? 5 : 40))
            remat_builder_op_set(b, at, REMAT_OP_WORKSPACE, random_below(r, 6));
        if (random_chance(r, 6)) remat_builder_op_set(b, at, REMAT_OP_PINNED, 1);
        if (random_chance(r, 20)) { /* what comes later reads the view */
            const uint32_t base = n_values - 1, view = remat_builder_view(b, NULL, 1, values[base]);
            const uint32_t view_op = remat_builder_op(b, NULL, &values[base], 1, &view, 1);
            remat_builder_op_set(b, view_op, REMAT_OP_COST, random_chance(r, 80) ? 0 : 1);
            values[base] = view;
        }
    }
    for (uint32_t i = 0; i < n_values; i++)
        if (random_chance(r, i + 2 > n_values ? 60 : 5)) remat_builder_output(b, values[i]);
    random_inplace(b, r);
    remat_graph *graph = NULL;
    if (remat_builder_finish(b, &graph) != REMAT_OK) graph = NULL;
    remat_builder_free(b);
    return graph;
}

/* ---- schedules ---- */

static void append(random_schedule *s, uint32_t kind, uint32_t index)
{
    if (s->n_steps == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        s->steps = realloc(s->steps, s->capacity * sizeof *s->steps);
        if (!s->steps) abort();
    }
    s->steps[s->n_steps++] = (remat_step){kind, index};
}

typedef struct progress {
    const remat_graph *graph;
    uint32_t n_ops, n_values;
    uint8_t *ran, *made, *sent;
} progress;

static bool can_run(const progress *p, uint32_t op)
{
    uint32_t n;
    const uint32_t *in = remat_graph_op_in(p->graph, op, &n);
    for (uint32_t k = 0; k < n; k++)
        if (remat_graph_value_get(p->graph, in[k], REMAT_VALUE_PRODUCER) != REMAT_ABSENT &&
            !p->made[in[k]])
            return false;
    if (remat_graph_op_get(p->graph, op, REMAT_OP_PINNED) != 1) return true;
    if (p->ran[op]) return false;
    for (uint32_t i = 0; i < op; i++)
        if (!p->ran[i] && remat_graph_op_get(p->graph, i, REMAT_OP_PINNED) == 1) return false;
    return true;
}

static void run(progress *p, random_schedule *s, uint32_t op)
{
    uint32_t n;
    const uint32_t *out = remat_graph_op_out(p->graph, op, &n);
    for (uint32_t k = 0; k < n; k++) p->made[out[k]] = 1;
    p->ran[op] = 1;
    append(s, REMAT_RUN, op);
}

static void transfer(progress *p, random_schedule *s, random_source *r)
{
    const uint32_t v = random_below(r, p->n_values);
    if (v >= p->n_values || !p->made[v] ||
        remat_graph_value_get(p->graph, v, REMAT_VALUE_ALIAS) != REMAT_ABSENT)
        return;
    if (p->sent[v] && random_chance(r, 80)) {
        append(s, REMAT_FETCH, v);
    } else {
        append(s, REMAT_OFFLOAD, v);
        p->sent[v] = 1;
    }
}

void random_schedule_make(random_schedule *out, const remat_graph *graph, random_source *r,
                          bool transfers)
{
    progress p = {
        .graph = graph, .n_ops = remat_graph_n_ops(graph), .n_values = remat_graph_n_values(graph)};
    p.ran = calloc((size_t)p.n_ops + 2 * (size_t)p.n_values + 1, 1);
    if (!p.ran) abort();
    p.made = p.ran + p.n_ops;
    p.sent = p.made + p.n_values;
    out->n_steps = 0;
    const bool shuffled = random_chance(r, 50);
    const uint32_t again = random_below(r, 3) * 25;
    for (uint32_t done = 0; done < p.n_ops;) {
        uint32_t op = done;
        if (shuffled) { /* the first op that can run, seen from a random one */
            op = random_below(r, p.n_ops);
            while (p.ran[op] || !can_run(&p, op)) op = (op + 1) % p.n_ops;
        }
        run(&p, out, op);
        done++;
        while (random_chance(r, again)) {
            const uint32_t other = random_below(r, p.n_ops);
            if (p.ran[other] && can_run(&p, other)) run(&p, out, other);
        }
        while (transfers && random_chance(r, 40)) transfer(&p, out, r);
    }
    free(p.ran);
}

void random_schedule_break(random_schedule *s, const remat_graph *graph, random_source *r)
{
    const uint32_t n_ops = remat_graph_n_ops(graph), n_values = remat_graph_n_values(graph);
    for (uint32_t edits = 1 + random_below(r, 3); edits > 0; edits--) {
        const remat_step any =
            random_chance(r, 75)
                ? (remat_step){REMAT_RUN, random_below(r, n_ops + random_chance(r, 5))}
                : (remat_step){1 + random_below(r, 3), random_below(r, n_values + 1)};
        const size_t n = s->n_steps, a = random_below(r, (uint32_t)n),
                     b = random_below(r, (uint32_t)n);
        const uint32_t edit = random_below(r, 4);
        if (edit == 0) { /* a step more */
            append(s, any.kind, any.index);
            memmove(s->steps + a + 1, s->steps + a, (n - a) * sizeof *s->steps);
            s->steps[a] = any;
        } else if (n && edit == 1) { /* one less */
            memmove(s->steps + a, s->steps + a + 1, (n - 1 - a) * sizeof *s->steps);
            s->n_steps--;
        } else if (n && edit == 2) { /* another one */
            s->steps[a] = any;
        } else if (n) { /* two swapped */
            const remat_step step = s->steps[a];
            s->steps[a] = s->steps[b], s->steps[b] = step;
        }
    }
}

void random_schedule_free(random_schedule *s)
{
    free(s->steps);
    *s = (random_schedule){0};
}
