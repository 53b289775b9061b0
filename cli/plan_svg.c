/* plan_svg.c: the memory of every step as an SVG, keep-all above and the plan below.
 *
 * What is in memory is stacked: resident, made by the forward pass, by the backward pass, made
 * again (or fetched back), workspace. Of a chain these are the input, what first forwards store,
 * gradients, what later forwards store, overheads. Both panels have the same scales, the budget is
 * a line across both, the peak is marked. The sum of a stack is the memory of the step: asserted.
 *
 * A panel is some hundred pixels wide and a schedule may have a million steps. Where several steps
 * share a pixel, the one of the least memory and the one of the most are drawn, so that neither a
 * peak nor a dip is lost. Layers are painted from the highest stack down to the lowest, each from
 * the bottom. Cost: linear in the statements. */
#include "plan_svg.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chain_play.h"
#include "chart.h"
#include "svg.h"

enum {
    WIDTH = 820,
    LEFT = 74,
    RIGHT = 16,
    TOP = 50,     /* the graph's name and the first panel's title */
    PANEL = 170,  /* height of a panel */
    BETWEEN = 44, /* from one panel to the next, with its title */
    BELOW = 56,   /* axis and legend */
    AREA = WIDTH - LEFT - RIGHT
};

typedef enum part { RESIDENT, FORWARD, BACKWARD, AGAIN, WORK, N_PARTS } part;
static const char *const part_paint[N_PARTS] = {"resident", "forward", "backward", "again", "work"};

typedef int64_t parts[N_PARTS];

typedef struct stack {
    timeline line;
    parts *steps;
    size_t *kept; /* the steps that are drawn, n_kept of them */
    size_t n_kept;
} stack;

/* ---- what is in memory ---- */

static part part_of(const session *s, uint32_t value)
{
    const int64_t op = remat_graph_value_get(s->original, value, REMAT_VALUE_PRODUCER);
    const bool backward =
        op >= 0 && remat_graph_op_get(s->original, (uint32_t)op, REMAT_OP_PHASE) == REMAT_BACKWARD;
    return backward ? BACKWARD : FORWARD;
}

static void fill_steps(const session *s, stack *x)
{
    size_t n;
    const remat_statement *at = remat_program_statements(x->line.program, &n);
    const uint32_t n_values = remat_graph_n_values(s->original);
    uint8_t *seen = out_resize(NULL, (size_t)n_values + 1, 1), *kind = out_resize(NULL, n + 1, 1);
    memset(seen, 0, (size_t)n_values + 1);
    parts now = {[RESIDENT] = s->info.resident_bytes};
    for (size_t i = 0; i < n; i++, at++) {
        if (at->kind == REMAT_REUSE) now[kind[at->reg]] -= at->bytes;
        if (at->kind == REMAT_ALLOCATE || at->kind == REMAT_REUSE) {
            kind[at->reg] = (uint8_t)(seen[at->value] ? AGAIN : part_of(s, at->value));
            seen[at->value] = 1;
            now[kind[at->reg]] += at->bytes;
        } else if (at->kind == REMAT_DEALLOCATE) {
            now[kind[at->reg]] -= at->bytes;
        } else {
            memcpy(x->steps[at->step_index], now, sizeof now);
            x->steps[at->step_index][WORK] = at->bytes;
        }
    }
    free(seen);
    free(kind);
}

static part part_of_item(const chain_life *life, const uint32_t *first_forward)
{
    const uint32_t stage = life->item / CHAIN_WHATS;
    if (life->item % CHAIN_WHATS == CHAIN_DELTA) return BACKWARD;
    if (stage == 0) return RESIDENT;
    return life->begin == first_forward[stage] ? FORWARD : AGAIN;
}

static void fill_chain(const session *s, const remat_plan *plan, stack *x)
{
    size_t n;
    uint32_t n_lives;
    const remat_step *steps = remat_plan_steps(plan, &n);
    const uint32_t n_stages = remat_chain_n_stages(s->chain) + 2;
    uint32_t *first_forward = out_resize(NULL, n_stages, sizeof *first_forward);
    memset(first_forward, 0xff, n_stages * sizeof *first_forward);
    for (size_t t = n; t-- > 0;)
        if (steps[t].kind != REMAT_B) first_forward[steps[t].index] = (uint32_t)t;
    chain_life *lives = chain_lives(s->chain, steps, n, &n_lives);
    for (uint32_t i = 0; i < n_lives; i++) {
        const part k = part_of_item(&lives[i], first_forward);
        const int64_t bytes = chain_item_bytes(s->chain, lives[i].item);
        x->steps[lives[i].begin][k] += bytes;
        x->steps[lives[i].end + 1][k] -= bytes;
    }
    for (size_t t = 1; t < n; t++)
        for (int k = 0; k < WORK; k++) x->steps[t][k] += x->steps[t - 1][k];
    for (size_t t = 0; t < n; t++) x->steps[t][WORK] = chain_step_overhead(s->chain, &steps[t]);
    free(first_forward);
    free(lives);
}

/* The least and the most of every pixel, which stands for span / AREA steps; all where they are
 * few.
 */
static void keep_extremes(stack *x, size_t span)
{
    const int64_t *bytes = x->line.bytes;
    const size_t n = x->line.n_steps;
    x->kept = out_resize(NULL, n + 1, sizeof *x->kept);
    size_t end;
    for (size_t first = 0; first < n; first = end) {
        const size_t pixel = first * AREA / span;
        size_t least = first, most = first;
        for (end = first + 1; end < n && end * AREA / span == pixel; end++) {
            if (bytes[end] < bytes[least]) least = end;
            if (bytes[end] > bytes[most]) most = end;
        }
        x->kept[x->n_kept++] = least < most ? least : most;
        if (least != most) x->kept[x->n_kept++] = least < most ? most : least;
    }
}

static int make_stack(session *s, const remat_plan *plan, stack *x)
{
    *x = (stack){0};
    TRY(timeline_make(s, plan, &x->line));
    x->steps = out_resize(NULL, x->line.n_steps + 1, sizeof *x->steps);
    memset(x->steps, 0, (x->line.n_steps + 1) * sizeof *x->steps);
    if (s->chain) fill_chain(s, plan, x);
    else fill_steps(s, x);
    for (size_t t = 0; t < x->line.n_steps; t++) {
        int64_t sum = 0;
        for (int k = 0; k < N_PARTS; k++) sum += x->steps[t][k];
        assert(sum == x->line.bytes[t]);
        (void)sum;
    }
    return REMAT_OK;
}

static void free_stack(stack *x)
{
    timeline_free(&x->line);
    free(x->steps);
    free(x->kept);
}

static bool has_part(const stack *x, part k)
{
    for (size_t t = 0; t < x->line.n_steps; t++)
        if (x->steps[t][k] > 0) return true;
    return false;
}

/* ---- drawing ---- */

typedef struct panel {
    svg *v;
    scale x, y; /* steps and bytes */
    double top, bottom;
    int64_t limit; /* the budget, or negative */
} panel;

/* The layers up to `k`, as one area. */
static void draw_layer(const panel *p, const stack *s, int k)
{
    svg_begin(p->v, p->x.from, p->bottom, part_paint[k]);
    for (size_t i = 0; i < s->n_kept; i++) {
        const size_t step = s->kept[i];
        int64_t sum = 0;
        for (int below = 0; below <= k; below++) sum += s->steps[step][below];
        if (i > 0) svg_level(p->v, scale_at(&p->x, (double)step));
        svg_upright(p->v, scale_at(&p->y, (double)sum));
    }
    svg_level(p->v, scale_at(&p->x, (double)s->line.n_steps));
    svg_upright(p->v, p->bottom);
    svg_end(p->v, true);
}

static void draw_peak(const panel *p, const stack *s)
{
    const double x = scale_at(&p->x, (double)s->line.peak_step + 0.5),
                 y = scale_at(&p->y, (double)s->line.peak_bytes);
    const amount text = out_size(p->v->out, s->line.peak_bytes);
    char note[160];
    const bool left = x > p->x.to - 130;
    snprintf(note, sizeof note, "peak %" PRId64 " at step %zu", s->line.peak_bytes,
             s->line.peak_step);
    svg_dot(p->v, x, y, "peak", note);
    svg_text(p->v, left ? x - 8 : x + 8, y > p->top + 12 ? y - 5 : y + 4, left ? END : START, "b",
             "peak %s", text.text);
}

static void draw_limit(const panel *p, bool labelled)
{
    const double y = scale_at(&p->y, (double)p->limit);
    if (p->limit < 0 || y < p->top) return;
    svg_rule(p->v, p->x.from, y, p->x.to, y, "limit");
    if (labelled)
        svg_text(p->v, p->x.to, y - 5, END, "limit", "budget %s",
                 out_size(p->v->out, p->limit).text);
}

static void draw_panel(const panel *p, const stack *s, const char *title, bool labelled)
{
    const ticks t = ticks_of_sizes(p->v->out, &p->y, 4);
    svg_text(p->v, p->x.from, p->top - 10, START, "b", "%s", title);
    svg_axis_y(p->v, &p->y, p->x.from, p->x.to, &t);
    for (int k = N_PARTS - 1; k >= 0; k--)
        if (has_part(s, (part)k)) draw_layer(p, s, k);
    svg_rule(p->v, p->x.from, p->bottom, p->x.to, p->bottom, "axis");
    draw_limit(p, labelled);
    if (s->line.n_steps > 0) draw_peak(p, s);
}

static void draw_legend(svg *v, const session *s, const stack *before, const stack *after, double y)
{
    static const char *const words[N_PARTS] = {"resident", "made by the forward pass",
                                               "by the backward pass", "made again", "workspace"};
    double x = LEFT;
    bool phases = has_part(before, BACKWARD);
    for (int k = 0; k < N_PARTS; k++) {
        if (!has_part(before, (part)k) && !has_part(after, (part)k)) continue;
        const char *word = words[k];
        if (k == RESIDENT && s->chain) word = "input";
        else if (k == FORWARD && !phases) word = "made by ops";
        svg_rect(v, x, y - 9, 11, 11, part_paint[k], NULL);
        svg_text(v, x + 16, y, START, "", "%s", word);
        x += 36 + 5.6 * (double)strlen(word);
    }
}

/* "auto: 5.12 GiB, 25.0% of keep-all; cost +14.9%, at least +13.6% in any order" */
static label title_of(const out *o, const report *r)
{
    remat_summary m = r->summary;
    label text;
    char bound[96] = "";
    const amount cost = human_percent(report_overhead(&m));
    m.cost = m.any_order_cost;
    if (m.within_budget && m.any_order_cost >= 0)
        snprintf(bound, sizeof bound, "; proved: no plan below +%s",
                 human_percent(report_overhead(&m)).text);
    snprintf(text.text, sizeof text.text, "%s: peak %s, %s of keep-all; cost +%s%s", m.strategy,
             out_size(o, m.peak_bytes).text,
             human_percent(share_of(m.peak_bytes, m.keep_all_peak_bytes)).text, cost.text, bound);
    return text;
}

static label before_title(const out *o, const report *r)
{
    label text;
    const remat_summary *m = &r->summary;
    snprintf(text.text, sizeof text.text, "keep-all: peak %s, cost %s",
             out_size(o, m->keep_all_peak_bytes).text,
             out_cost(o, m->keep_all_cost, m->cost_unit).text);
    return text;
}

typedef struct picture {
    const report *report;
    stack before, after;
} picture;

static size_t most_steps(const picture *x)
{
    const size_t a = x->before.line.n_steps, b = x->after.line.n_steps;
    return a > b ? a : b;
}

/* The budget is in the picture, unless that would leave most of it empty. */
static int64_t top_bytes(const picture *x)
{
    const int64_t a = x->before.line.peak_bytes, b = x->after.line.peak_bytes, top = a > b ? a : b,
                  budget = x->report->summary.budget_bytes;
    return budget > top && budget < top + top / 2 ? budget : top;
}

static remat_status draw(session *s, const void *object, remat_format format, out *to)
{
    const picture *x = object;
    const report *r = x->report;
    const stack *before = &x->before, *after = &x->after;
    const size_t steps = most_steps(x);
    const int64_t top = top_bytes(x);
    const int height = TOP + 2 * PANEL + BETWEEN + BELOW;
    svg v;
    (void)format;
    to->size_unit = s->out->size_unit;
    svg_open(&v, to, WIDTH, height, session_name(s),
             "Memory of every step: keep-all above, the plan below; the dashed line is the budget");
    panel p = {.v = &v,
               .x = {0, steps ? (double)steps : 1, LEFT, WIDTH - RIGHT},
               .y = {0, top > 0 ? 1.06 * (double)top : 1, TOP + PANEL, TOP},
               .top = TOP,
               .bottom = TOP + PANEL,
               .limit = r->summary.budget_bytes};
    svg_text(&v, LEFT, 18, START, "h", "%s", session_name(s));
    draw_panel(&p, before, before_title(to, r).text, true);
    p.top = TOP + PANEL + BETWEEN;
    p.bottom = p.top + PANEL;
    p.y.from = p.bottom;
    p.y.to = p.top;
    draw_panel(&p, after, title_of(to, r).text, false);
    const ticks t = ticks_of_numbers(&p.x, 8, "");
    svg_axis_x(&v, &p.x, p.bottom, p.bottom + 4, &t);
    svg_text(&v, p.x.to, height - 14, END, "q", "step");
    draw_legend(&v, s, before, after, height - 14);
    svg_close(&v);
    return REMAT_OK;
}

int plan_svg(session *s, const report *r)
{
    picture x = {.report = r};
    if (!s->args->text[FLAG_SVG]) return REMAT_OK;
    int status = session_keep_all(s);
    if (!status) status = make_stack(s, s->keep_all, &x.before);
    if (!status) status = make_stack(s, r->plan, &x.after);
    if (!status) {
        keep_extremes(&x.before, most_steps(&x));
        keep_extremes(&x.after, most_steps(&x));
        status = session_write_svg(s, draw, &x);
    }
    free_stack(&x.before);
    free_stack(&x.after);
    return status;
}
