/* naive.c: see naive.h. */
#include "naive.h"

#include <assert.h>
#include <stdlib.h>

static void *zeroed(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) abort();
    return p;
}

static uint32_t *copy(const uint32_t *list, uint32_t n)
{
    uint32_t *p = zeroed(n, sizeof *p);
    for (uint32_t i = 0; i < n; i++) p[i] = list[i];
    return p;
}

naive_graph *naive_from(const remat_graph *graph)
{
    naive_graph *g = zeroed(1, sizeof *g);
    g->n_ops = remat_graph_n_ops(graph);
    g->n_values = remat_graph_n_values(graph);
    g->values = zeroed(g->n_values, sizeof *g->values);
    g->ops = zeroed(g->n_ops, sizeof *g->ops);
    for (uint32_t v = 0; v < g->n_values; v++) g->values[v].producer = REMAT_NONE;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        naive_op *op = &g->ops[i];
        const uint32_t *in = remat_graph_op_in(graph, i, &op->n_in);
        op->in = copy(in, op->n_in);
        const uint32_t *out = remat_graph_op_out(graph, i, &op->n_out);
        op->out = copy(out, op->n_out);
        op->inplace = zeroed(op->n_out, sizeof *op->inplace);
        for (uint32_t k = 0; k < op->n_out; k++)
            op->inplace[k] = remat_graph_op_inplace(graph, i, k);
        op->cost = remat_graph_op_get(graph, i, REMAT_OP_COST);
        op->workspace = remat_graph_op_get(graph, i, REMAT_OP_WORKSPACE);
        op->pinned = remat_graph_op_get(graph, i, REMAT_OP_PINNED) == 1;
        for (uint32_t k = 0; k < op->n_out; k++) g->values[op->out[k]].producer = i;
    }
    for (uint32_t v = 0; v < g->n_values;
         v++) { /* an alias names an earlier value, whose root is known by now */
        const int64_t alias = remat_graph_value_get(graph, v, REMAT_VALUE_ALIAS);
        g->values[v].root = alias == REMAT_ABSENT ? v : g->values[alias].root;
        g->values[v].bytes = remat_graph_value_get(graph, v, REMAT_VALUE_STORAGE);
        if (g->values[v].root == v && g->values[v].producer == REMAT_NONE)
            g->resident_bytes += g->values[v].bytes;
    }
    const uint32_t *outputs = remat_graph_outputs(graph, &g->n_outputs);
    g->outputs = copy(outputs, g->n_outputs);
    return g;
}

void naive_free(naive_graph *g)
{
    if (!g) return;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        free(g->ops[i].in), free(g->ops[i].out), free(g->ops[i].inplace);
    }
    free(g->ops), free(g->values), free(g->outputs), free(g);
}

/* ---- questions about a schedule ---- */

typedef struct schedule {
    const naive_graph *g;
    const remat_step *steps;
} schedule;

static bool makes(const schedule *s, size_t step, uint32_t value)
{
    const remat_step x = s->steps[step];
    if (x.kind == REMAT_FETCH) return x.index == value;
    return x.kind == REMAT_RUN && x.index == s->g->values[value].producer;
}

/* The step that made the instance of `value` that a step at `now` reads; SIZE_MAX: none. */
static size_t maker(const schedule *s, uint32_t value, size_t now)
{
    for (size_t t = now; t-- > 0;)
        if (makes(s, t, value)) return t;
    return SIZE_MAX;
}

static bool resident(const naive_graph *g, uint32_t value)
{
    return g->values[value].producer == REMAT_NONE;
}

/* A storage instance: the value that owns it and the step that made it. No storage: bytes that are
 * resident anyway. */
typedef struct instance {
    bool exists;
    uint32_t value;
    size_t birth;
} instance;

/* What storage does the newest instance of `value` before step `now` refer to? */
static instance storage_of(const schedule *s, uint32_t value, size_t now)
{
    const naive_graph *g = s->g;
    if (resident(g, value)) return (instance){.exists = false};
    const size_t made = maker(s, value, now);
    assert(made != SIZE_MAX);
    if (g->values[value].root == value)
        return (instance){.exists = true, .value = value, .birth = made};
    const naive_op *op = &g->ops[g->values[value].producer];
    for (uint32_t k = 0; k < op->n_in; k++) /* the first input of the same root */
        if (g->values[op->in[k]].root == g->values[value].root)
            return storage_of(s, op->in[k], made);
    for (uint32_t k = 0; op->out[k] != value; k++) /* else an earlier output of the same run */
        if (g->values[op->out[k]].root == g->values[value].root)
            return storage_of(s, op->out[k], made + 1);
    assert(false); /* a graph that has this alias is refused */
    return (instance){.exists = false};
}

/* ---- validity ---- */

static bool offloaded_before(const schedule *s, uint32_t value, size_t now)
{
    for (size_t t = 0; t < now; t++)
        if (s->steps[t].kind == REMAT_OFFLOAD && s->steps[t].index == value) return true;
    return false;
}

static bool ran_before(const schedule *s, uint32_t op, size_t now)
{
    for (size_t t = 0; t < now; t++)
        if (s->steps[t].kind == REMAT_RUN && s->steps[t].index == op) return true;
    return false;
}

static bool step_is_fine(const schedule *s, size_t now)
{
    const naive_graph *g = s->g;
    const remat_step x = s->steps[now];
    if (x.kind == REMAT_OFFLOAD || x.kind == REMAT_FETCH) {
        if (x.index >= g->n_values || resident(g, x.index) || g->values[x.index].root != x.index)
            return false;
        return x.kind == REMAT_OFFLOAD ? maker(s, x.index, now) != SIZE_MAX
                                       : offloaded_before(s, x.index, now);
    }
    if (x.kind != REMAT_RUN || x.index >= g->n_ops) return false;
    const naive_op *op = &g->ops[x.index];
    for (uint32_t k = 0; k < op->n_in; k++)
        if (!resident(g, op->in[k]) && maker(s, op->in[k], now) == SIZE_MAX) return false;
    if (!op->pinned) return true;
    if (ran_before(s, x.index, now)) return false;
    for (uint32_t i = x.index + 1; i < g->n_ops; i++)
        if (g->ops[i].pinned && ran_before(s, i, now)) return false;
    return true;
}

/* ---- the verdict ---- */

static int64_t transfer_cost(int64_t bytes, int64_t bandwidth)
{
    if (bandwidth == 0) return 0;
    const __int128 scaled = (__int128)bytes * 1000000000;
    return (int64_t)((scaled + bandwidth - 1) / bandwidth);
}

typedef struct life {
    instance of;
    size_t last;
    bool to_the_end; /* a graph output refers to it */
} life;

static life *life_of(life *lives, const size_t *first_life, const naive_graph *g, instance x,
                     const remat_step *steps)
{
    size_t i = first_life[x.birth];
    if (steps[x.birth].kind == REMAT_RUN) /* which of the outputs? */
        for (const uint32_t *out = g->ops[steps[x.birth].index].out; *out != x.value; out++) i++;
    return &lives[i];
}

/* The storage `x` is needed at step `t`. */
static life *needed(life *lives, const size_t *first_life, const naive_graph *g, instance x,
                    const remat_step *steps, size_t t)
{
    if (!x.exists) return NULL;
    life *l = life_of(lives, first_life, g, x, steps);
    l->of = x;
    if (l->last < t) l->last = t;
    return l;
}

/* Is the storage of this life given to an output of the step that needs it last? */
static bool is_taken(const schedule *s, const life *l)
{
    const remat_step x = s->steps[l->last];
    if (x.kind != REMAT_RUN || l->to_the_end || l->of.birth == l->last) return false;
    const naive_op *op = &s->g->ops[x.index];
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->inplace[k] == REMAT_NONE) continue;
        const instance in = storage_of(s, op->in[op->inplace[k]], l->last);
        if (in.exists && in.value == l->of.value && in.birth == l->of.birth) return true;
    }
    return false;
}

naive_verdict naive_judge(const naive_graph *g, const remat_step *steps, size_t n_steps,
                          int64_t bandwidth)
{
    const schedule s = {g, steps};
    naive_verdict verdict = {.valid = false, .first_bad_step = REMAT_NONE, .peak_step = REMAT_NONE};
    for (size_t t = 0; t < n_steps; t++)
        if (!step_is_fine(&s, t)) {
            verdict.first_bad_step = (uint32_t)t;
            return verdict;
        }
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (!ran_before(&s, op, n_steps)) return verdict;
    verdict.valid = true;

    size_t n_lives = 0;
    size_t *first_life = zeroed(n_steps, sizeof *first_life);
    for (size_t t = 0; t < n_steps; t++) {
        first_life[t] = n_lives;
        n_lives += steps[t].kind == REMAT_RUN ? g->ops[steps[t].index].n_out
                                              : steps[t].kind == REMAT_FETCH;
    }
    life *lives = zeroed(n_lives, sizeof *lives);
    for (size_t t = 0; t < n_steps; t++) {
        const remat_step x = steps[t];
        if (x.kind == REMAT_FETCH) {
            needed(lives, first_life, g, storage_of(&s, x.index, t + 1), steps, t);
        } else if (x.kind == REMAT_OFFLOAD) {
            needed(lives, first_life, g, storage_of(&s, x.index, t), steps, t);
        } else {
            const naive_op *op = &g->ops[x.index];
            for (uint32_t k = 0; k < op->n_in; k++)
                needed(lives, first_life, g, storage_of(&s, op->in[k], t), steps, t);
            for (uint32_t k = 0; k < op->n_out; k++)
                if (g->values[op->out[k]].root == op->out[k])
                    needed(lives, first_life, g, storage_of(&s, op->out[k], t + 1), steps, t);
        }
    }
    for (uint32_t k = 0; k < g->n_outputs; k++)
        if (n_steps) {
            life *l = needed(lives, first_life, g, storage_of(&s, g->outputs[k], n_steps), steps,
                             n_steps - 1);
            if (l) l->to_the_end = true;
        }

    verdict.memory = zeroed(n_steps, sizeof *verdict.memory);
    for (size_t i = 0; i < n_lives; i++)
        if (lives[i].of.exists)
            for (size_t t = lives[i].of.birth; t + is_taken(&s, &lives[i]) <= lives[i].last; t++)
                verdict.memory[t] += g->values[lives[i].of.value].bytes;
    verdict.peak_bytes = g->resident_bytes;
    for (size_t t = 0; t < n_steps; t++) {
        const remat_step x = steps[t];
        verdict.memory[t] += g->resident_bytes;
        if (x.kind == REMAT_RUN) {
            verdict.memory[t] += g->ops[x.index].workspace;
            verdict.cost += g->ops[x.index].cost;
        } else {
            verdict.cost += transfer_cost(g->values[x.index].bytes, bandwidth);
            if (x.kind == REMAT_OFFLOAD && !offloaded_before(&s, x.index, t))
                verdict.host_bytes += g->values[x.index].bytes;
        }
        if (verdict.peak_step == REMAT_NONE || verdict.memory[t] > verdict.peak_bytes) {
            verdict.peak_bytes = verdict.memory[t];
            verdict.peak_step = (uint32_t)t;
        }
    }
    free(first_life), free(lives);
    return verdict;
}

void naive_release(naive_verdict *verdict)
{
    free(verdict->memory);
    verdict->memory = NULL;
}
