/* decode.c: see decode.h.
 *
 * An instruction is a byte: three bits say what it makes, two how many inputs it reads, one whether
 * what it makes is a graph output, and two whether and how it is repeated, each time on what it
 * read before or on what it made last. Operands, a size and a cost follow as it needs them.
 * Invariant: unless the head asks for it, no sum of sizes, storages or costs passes 2^62, so most
 * graphs are valid ones. */
#include "decode.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SUM (((int64_t)1 << 62) - 1)

uint32_t take_byte(source *s) { return s->at < s->end ? *s->at++ : 0; }

/* Small numbers, and powers of two with their neighbours. */
static int64_t number_of(uint32_t byte)
{
    static const int64_t small[20] = {0,  1,  2,  3,   4,   7,    8,    10,      12,      16,
                                      24, 31, 64, 100, 255, 1000, 4096, 1 << 20, 1 << 21, 10000000};
    static const uint8_t powers[12] = {31, 32, 40, 53, 54, 55, 56, 58, 59, 60, 61, 62};
    const uint32_t i = byte & 31, more = byte >> 5;
    return i < 20 ? small[i] + more : ((int64_t)1 << powers[i - 20]) - 4 + more;
}

int64_t take_number(source *s) { return number_of(take_byte(s)); }

static uint32_t take_count(source *s, uint32_t most)
{
    static const uint32_t counts[16] = {1,  2,  3,  4,   5,   7,    8,    16,
                                        31, 64, 65, 127, 300, 1000, 2000, 4000};
    const uint32_t n = counts[take_byte(s) & 15];
    return n < most ? n : most;
}

/* ---- the head ---- */

/* Options that would make a run long or leave it to the clock have a lower limit here; 0: they are
 * left alone. Work and threads are the caller's. */
static int64_t most_of(const remat_option *o)
{
    static const struct {
        const char *name;
        int64_t most;
    } mine[] = {{"work", 0},
                {"threads", 0},
                {"time_ms", 0},
                {"max_input_bytes", 0},
                {"walkers", 5},
                {"slots", 100},
                {"max_slots", 2000},
                {"memory_bytes", 1 << 28},
                {"checkmate_entries", 20000}};
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++)
        if (strcmp(mine[i].name, o->name) == 0) return mine[i].most;
    return o->high;
}

static void take_option(source *s, remat_ctx *ctx)
{
    uint32_t n_options = 0;
    while (remat_option_at(n_options)) n_options++;
    const remat_option *o = remat_option_at(take_byte(s) % n_options);
    const int64_t x = take_number(s), most = most_of(o);
    if (most == 0) return;
    if (remat_ctx_set(ctx, o->name, x < o->low ? o->low : x > most ? most : x) != REMAT_OK) abort();
}

setting take_setting(source *s, remat_ctx *ctx)
{
    static const int64_t works[8] = {300, 1, 2, 30, 100, 600, 2000, 20000};
    static const stop_kind stops[4] = {STOP_NEVER, STOP_NEVER, STOP_AT_ONCE, STOP_IN_REPORT};
    static const char *const models[8] = {NULL,   NULL,   NULL,    "given",
                                          "unit", "node", "flops", "roofline:h100"};
    const uint32_t form = take_byte(s), goal = take_byte(s), amount = take_byte(s),
                   ready = take_byte(s), how = take_byte(s), refusal = take_byte(s);
    for (uint32_t i = 0; i < (how & 3); i++) take_option(s, ctx);
    return (setting){.is_chain = form & 16,
                     .large = form >> 5 == 7,
                     .in_place = (form >> 5 & 3) == 2,
                     .unchecked = form & 4,
                     .without_costs = form & 8,
                     .phases = form & 3,
                     .flags = ready & 31,
                     .cost_model = models[ready >> 5],
                     .budget = (budget_kind)(goal & 7),
                     .budget_byte = amount,
                     .budget_number = number_of(amount),
                     .work = works[goal >> 3 & 7],
                     .stop = stops[how >> 2 & 3],
                     .refuse_at = how >> 4 == 15 ? 1 + 4 * refusal : 0};
}

int64_t budget_of(const setting *x, int64_t need_bytes, int64_t keep_all_peak_bytes)
{
    switch (x->budget) {
    case BUDGET_IS_NONE: return REMAT_BUDGET_NONE;
    case BUDGET_IS_MIN: return REMAT_BUDGET_MIN;
    case BUDGET_IS_ZERO: return 0;
    case BUDGET_IS_NEED: return need_bytes;
    case BUDGET_IS_BELOW_NEED: return need_bytes ? need_bytes - 1 : 0;
    case BUDGET_IS_PART:
        return need_bytes + (keep_all_peak_bytes - need_bytes) / 256 * x->budget_byte +
               (keep_all_peak_bytes - need_bytes) % 256 * x->budget_byte / 256;
    case BUDGET_IS_PERCENT: return keep_all_peak_bytes / 100 * (x->budget_byte % 120);
    case BUDGET_IS_NUMBER: break;
    }
    return x->budget_number;
}

/* ---- graphs ---- */

enum { MOST_OPS = 2500, MOST_VALUES = 8000, MOST_LISTED = 30000, MOST_READ = 4000 };

typedef struct op {
    uint32_t in, n_in, out, n_out; /* in, out: where in `listed` */
} op;

typedef struct value {
    int64_t size, storage; /* storage: -1 for a view */
    bool resident;
    uint32_t gradient; /* REMAT_NONE: it has none yet */
} value;

typedef struct maker {
    source *s;
    const setting *x;
    remat_builder *b;
    int64_t sizes_left, storages_left, costs_left; /* below 2^62 */
    uint32_t most_ops, most_values;
    uint32_t n_ops, n_values, n_listed;
    op ops[MOST_OPS];
    value values[MOST_VALUES];
    uint32_t listed[MOST_LISTED];
    uint32_t in[MOST_READ], out[MOST_READ]; /* of the op at hand */
    uint32_t n_in, n_out;
} maker;

static int64_t within(const maker *m, int64_t x, int64_t *left)
{
    if (m->x->unchecked) return x;
    if (x > *left) x = *left ? 1 : 0;
    *left -= x;
    return x;
}

static bool is_full(const maker *m)
{
    return m->n_ops >= m->most_ops || m->n_values >= m->most_values ||
           m->n_listed + 2 * MOST_READ > MOST_LISTED;
}

static uint32_t note_value(maker *m, uint32_t v, int64_t size, bool resident)
{
    m->values[m->n_values++] = (value){size, size, resident, REMAT_NONE};
    return v;
}

static uint32_t add_value(maker *m, int64_t size, bool resident)
{
    int64_t left = m->storages_left < m->sizes_left ? m->storages_left : m->sizes_left;
    size = within(m, size, &left);
    if (!m->x->unchecked) m->sizes_left -= size, m->storages_left -= size;
    return note_value(m, remat_builder_value(m->b, NULL, size), size, resident);
}

/* Of any size: one that expands its base is larger than that. */
static uint32_t add_view(maker *m, int64_t size, uint32_t base)
{
    size = within(m, size, &m->sizes_left);
    const uint32_t v =
        note_value(m, remat_builder_view(m->b, NULL, size, base), size, m->values[base].resident);
    m->values[v].storage = -1;
    return v;
}

/* Low bytes name the newest values, high ones the oldest. */
static uint32_t take_value(maker *m)
{
    const uint32_t byte = take_byte(m->s);
    return byte < 128 ? m->n_values - 1 - byte % m->n_values : (byte - 128) % m->n_values;
}

/* The first output may take the first input that has as many bytes. */
static void work_in_place(maker *m, uint32_t i)
{
    const value *made = m->n_out ? &m->values[m->out[0]] : NULL;
    for (uint32_t k = 0; k < m->n_in && made && made->storage >= 0; k++) {
        const value *read = &m->values[m->in[k]];
        if (read->resident || read->storage != made->storage) continue;
        remat_builder_op_inplace(m->b, i, 0, k);
        return;
    }
}

static void add_op(maker *m, int64_t cost)
{
    const uint32_t i = remat_builder_op(m->b, NULL, m->in, m->n_in, m->out, m->n_out);
    op *o = &m->ops[m->n_ops++];
    *o = (op){m->n_listed, m->n_in, m->n_listed + m->n_in, m->n_out};
    memcpy(m->listed + o->in, m->in, m->n_in * sizeof *m->in);
    memcpy(m->listed + o->out, m->out, m->n_out * sizeof *m->out);
    m->n_listed += m->n_in + m->n_out;
    if (!m->x->without_costs)
        remat_builder_op_set(m->b, i, REMAT_OP_COST, within(m, cost, &m->costs_left));
    if (m->x->in_place) work_in_place(m, i);
}

static void set_attributes(maker *m, uint32_t i)
{
    static const char *const targets[8] = {"",
                                           "aten.mm.default",
                                           "aten.detach.default",
                                           "aten.relu.default",
                                           "aten.sum.dim_IntList",
                                           "aten.view.default",
                                           "aten.native_dropout.default",
                                           "remat.boundary"};
    const uint32_t a = take_byte(m->s);
    remat_builder_op_set(m->b, i, REMAT_OP_PINNED, a & 1);
    remat_builder_op_set(m->b, i, REMAT_OP_CLASS, (a >> 1 & 7) % 5);
    remat_builder_op_set(m->b, i, REMAT_OP_REPLAY, a >> 4 & 1);
    remat_builder_op_target(m->b, i, targets[a >> 5]);
    remat_builder_op_set(m->b, i, REMAT_OP_WORKSPACE,
                         within(m, take_number(m->s), &m->storages_left));
    remat_builder_op_set(m->b, i, REMAT_OP_FLOPS, take_number(m->s));
}

enum instruction { ONE, STORED, VIEW, SEVERAL, RESIDENT, RESIDENT_VIEW, JOIN, ATTRIBUTES };

static void add_resident(maker *m, bool view)
{
    const uint32_t base = view && m->n_values ? take_value(m) : REMAT_NONE;
    const int64_t size = take_number(m->s);
    const uint32_t v = base != REMAT_NONE && m->values[base].resident ? add_view(m, size, base)
                                                                      : add_value(m, size, true);
    remat_builder_value_set(m->b, v, REMAT_VALUE_KIND, size % 5);
}

/* The outputs of the op at hand. `n`: how many, for SEVERAL. */
static void add_outputs(maker *m, enum instruction what, int64_t size, int64_t other, uint32_t n)
{
    m->n_out = 0;
    if (what == VIEW && m->n_in) {
        m->out[m->n_out++] = add_view(m, size, m->in[0]);
        return;
    }
    if (what != SEVERAL) {
        const uint32_t v = m->out[m->n_out++] = add_value(m, size, false);
        if (what != STORED) return;
        m->values[v].storage = within(m, other, &m->storages_left);
        remat_builder_value_set(m->b, v, REMAT_VALUE_STORAGE, m->values[v].storage);
        remat_builder_value_tensor(m->b, v, "bfloat16", (const int64_t[]){size, 1}, 2);
        return;
    }
    for (uint32_t i = 0; i < n && m->n_values < m->most_values; i++)
        m->out[m->n_out++] =
            other & 1 && i % 3 == 2 ? add_view(m, size, m->out[i - 1]) : add_value(m, size, false);
}

static void run_instruction(maker *m, uint32_t head)
{
    const enum instruction what = (enum instruction)(head & 7);
    if (what == ATTRIBUTES) {
        if (m->n_ops) set_attributes(m, m->n_ops - 1);
        return;
    }
    if (what == RESIDENT || what == RESIDENT_VIEW) {
        add_resident(m, what == RESIDENT_VIEW);
        if (head & 32) remat_builder_output(m->b, m->n_values - 1);
        return;
    }
    m->n_in = 0;
    for (uint32_t n = head >> 3 & 3; m->n_in < n && m->n_values;) m->in[m->n_in++] = take_value(m);
    if (what == JOIN && m->n_values)
        for (uint32_t n = take_count(m->s, m->n_values), i = 0; i < n && m->n_in < MOST_READ; i++)
            m->in[m->n_in++] = m->n_values - 1 - i;
    const int64_t size = take_number(m->s), cost = take_number(m->s),
                  other = what == STORED || what == SEVERAL ? take_number(m->s) : 0;
    const uint32_t n_outputs =
        what == SEVERAL && !(other & 2) ? take_count(m->s, MOST_READ) : 0; /* or none at all */
    const uint32_t times = head & 64 ? take_count(m->s, m->most_ops) : 1;
    for (uint32_t i = 0; i < times && !is_full(m); i++) {
        add_outputs(m, what, size, other, n_outputs);
        add_op(m, cost);
        if (head & 128 && m->n_out) m->in[0] = m->out[m->n_out - 1], m->n_in += m->n_in == 0;
    }
    for (uint32_t k = 0; k < m->n_out && head & 32; k++) remat_builder_output(m->b, m->out[k]);
}

/* The backward op of an op: it reads what that read, the gradients of what it made, and those that
 * its inputs have already, and makes the gradients of its inputs. `saves`: it also reads what it
 * made. */
static void add_gradients(maker *m, const op *o, bool saves)
{
    m->n_in = m->n_out = 0;
    for (uint32_t k = 0; k < o->n_out && m->n_in + 2 < MOST_READ; k++) {
        const uint32_t v = m->listed[o->out + k];
        if (m->values[v].gradient != REMAT_NONE) m->in[m->n_in++] = m->values[v].gradient;
        if (saves && k == 0) m->in[m->n_in++] = v;
    }
    for (uint32_t k = 0; k < o->n_in && m->n_in + 2 < MOST_READ; k++) {
        const uint32_t v = m->listed[o->in + k];
        if (!saves || m->values[v].resident) m->in[m->n_in++] = v;
        if (m->values[v].gradient != REMAT_NONE) m->in[m->n_in++] = m->values[v].gradient;
    }
    for (uint32_t k = 0; k < o->n_in && m->n_values < m->most_values; k++) {
        const uint32_t v = m->listed[o->in + k];
        const uint32_t gradient = m->out[m->n_out++] = add_value(m, m->values[v].size, false);
        m->values[v].gradient = gradient;
        if (m->values[v].resident) remat_builder_output(m->b, gradient);
    }
    add_op(m, (int64_t)o->n_in + 1);
}

static void set_phases(maker *m, uint32_t n_forward)
{
    for (uint32_t i = 0; i < m->n_ops && m->x->phases; i++) {
        const bool any = m->x->phases == 3;
        remat_builder_op_set(m->b, i, REMAT_OP_PHASE,
                             any             ? i * 7 % 3
                             : i < n_forward ? REMAT_FORWARD
                                             : REMAT_BACKWARD);
    }
}

remat_status take_graph(source *s, const setting *x, remat_ctx *ctx, remat_graph **out)
{
    const uint32_t share = x->phases == 2 ? 2 : 1; /* of ops and values: the backward pass is one */
    maker *m = calloc(1, sizeof *m);
    if (!m) abort();
    *m = (maker){.s = s,
                 .x = x,
                 .b = remat_builder_new(ctx, "bytes"),
                 .sizes_left = MOST_SUM,
                 .storages_left = MOST_SUM,
                 .costs_left = MOST_SUM,
                 .most_ops = (x->large ? 2200 : 64) / share,
                 .most_values = (x->large ? 6000 : 300) / share};
    remat_status status = REMAT_E_MEMORY;
    if (m->b) {
        while (s->at < s->end && !is_full(m)) run_instruction(m, take_byte(s));
        uint32_t n_forward = m->n_ops / 2;
        if (x->phases == 2) {
            n_forward = m->n_ops;
            m->most_ops *= 2, m->most_values *= 2;
            for (uint32_t i = n_forward; i-- > 0 && !is_full(m);)
                add_gradients(m, &m->ops[i], i % 2 || i + 1 == n_forward); /* the loss is read */
        }
        set_phases(m, n_forward);
        status = remat_builder_finish(m->b, out);
    }
    remat_builder_free(m->b);
    free(m);
    return status;
}

/* ---- chains ---- */

static int64_t take_within(source *s, const uint8_t *begin, const setting *x, int64_t *left)
{
    if (s->at == s->end) s->at = begin;
    int64_t n = take_number(s);
    if (x->unchecked) return n;
    if (n > *left) n = *left ? 1 : 0;
    *left -= n;
    return n;
}

uint32_t take_stages(source *s, const setting *x, remat_stage stages[FUZZ_MOST_STAGES + 2])
{
    const uint32_t n_stages = 1 + take_byte(s) % (x->large ? FUZZ_MOST_STAGES : 20);
    const uint8_t *begin = s->at;
    int64_t bytes = MOST_SUM, times = MOST_SUM / (2 * (n_stages + 2));
    for (uint32_t l = 0; l <= n_stages + 1; l++) {
        remat_stage *stage = &stages[l];
        *stage = (remat_stage){.name = NULL};
        const uint32_t more = take_byte(s);
        int64_t *const sizes[] = {&stage->a,  &stage->abar, &stage->delta,
                                  &stage->of, &stage->ob,   &stage->keep};
        for (uint32_t k = 0; k < 6; k++)
            if (k < 2 || more >> k & 1) *sizes[k] = take_within(s, begin, x, &bytes);
        stage->tf = take_within(s, begin, x, &times);
        stage->tb = take_within(s, begin, x, &times);
        if (more & 1 || l == 0 || l > n_stages) continue; /* else as the papers have it */
        if (stage->a < bytes) bytes -= stage->a, stage->abar += stage->a;
        if (stage->a < bytes) bytes -= stage->a, stage->delta = stage->a;
    }
    stages[n_stages + 1].a = stages[n_stages + 1].delta = 0;
    return n_stages;
}
