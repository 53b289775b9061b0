/* lower_svg.c: a placement as an SVG: time across, addresses up, a rectangle for every storage
 * instance and every workspace. What an op makes again is hatched; its name is the rectangle's
 * title, which browsers show under the pointer. svg.c writes it. Cost: linear in what is written.
 */
#include "lower_svg.h"

#include <inttypes.h>
#include <stdlib.h>

#include "svg.h"

enum { WIDTH = 1200, HEIGHT = 600, LEFT = 110, TOP = 40, BELOW = 40, LONGEST_NAME = 60 };

typedef struct canvas {
    session *s;
    svg v;
    double per_step, per_byte; /* points */
    uint8_t *is_again;         /* by register: an instance of its value was made before */
    uint32_t *owner;           /* by register: the value */
    uint32_t *op;              /* by step: what runs */
    uint32_t n_regs;
} canvas;

static void draw_head(canvas *c, const picture *x, size_t n_steps)
{
    const remat_packing *p = remat_placement_packing(x->placement);
    svg_text(&c->v, LEFT, 24, START, "h", "%s", remat_graph_name(c->s->original));
    svg_text(&c->v, LEFT - 6, TOP + 10, END, "q", "%s", out_size(c->v.out, p->height_bytes).text);
    svg_text(&c->v, LEFT - 6, TOP + HEIGHT, END, "q", "0");
    svg_text(&c->v, LEFT, TOP + HEIGHT + 24, START, "",
             "%zu steps; arena %" PRId64 " bytes, %" PRId64
             " of them wasted; hatched: made again; yellow: workspace",
             n_steps, p->height_bytes, p->height_bytes - p->load_bytes);
}

static void draw_span(canvas *c, const remat_span *span, int64_t offset, const char *paint,
                      const char *name)
{
    const double top = (double)(offset + span->bytes) * c->per_byte;
    label note;
    snprintf(note.text, sizeof note.text,
             "%.140s: %" PRId64 " bytes at %" PRId64 ", steps %" PRId64 " to %" PRId64,
             out_clean(c->v.out, name, LONGEST_NAME).text, span->bytes, offset, span->begin,
             span->end - 1);
    svg_rect(&c->v, LEFT + (double)span->begin * c->per_step, TOP + HEIGHT - top,
             (double)(span->end - span->begin) * c->per_step, (double)span->bytes * c->per_byte,
             paint, note.text);
}

static const char *paint_of(const canvas *c, uint32_t reg)
{
    if (c->is_again[reg]) return "again box";
    const int64_t op = remat_graph_value_get(c->s->original, c->owner[reg], REMAT_VALUE_PRODUCER);
    const int64_t phase = op < 0 ? REMAT_PHASE_NONE
                                 : remat_graph_op_get(c->s->original, (uint32_t)op, REMAT_OP_PHASE);
    return phase == REMAT_BACKWARD ? "backward box" : "forward box";
}

/* Which registers repeat a value, and which op runs at each step. */
static void look_through(canvas *c, const remat_statement *statement, size_t n, size_t n_steps)
{
    const uint32_t n_values = remat_graph_n_values(c->s->original);
    uint8_t *is_made = out_resize(NULL, (size_t)n_values + 1, 1);
    for (uint32_t v = 0; v < n_values; v++) is_made[v] = 0;
    c->is_again = out_resize(NULL, n + 1, sizeof *c->is_again);
    c->owner = out_resize(NULL, n + 1, sizeof *c->owner);
    c->op = out_resize(NULL, n_steps + 1, sizeof *c->op);
    for (size_t i = 0; i < n; i++) {
        const remat_statement *at = &statement[i];
        if (at->kind == REMAT_COMPUTE) c->op[at->step_index] = at->step.index;
        if (at->kind != REMAT_ALLOCATE) continue;
        c->is_again[at->reg] = is_made[at->value];
        c->owner[at->reg] = at->value;
        is_made[at->value] = 1;
        c->n_regs++;
    }
    free(is_made);
}

static void draw_spans(canvas *c, const picture *x)
{
    size_t n;
    const remat_span *spans = remat_placement_spans(x->placement, &n);
    amount buffer;
    for (size_t i = 0; i < n; i++) {
        if (spans[i].bytes == 0) continue;
        if (i < c->n_regs) {
            const uint32_t reg = (uint32_t)i;
            draw_span(c, &spans[i], remat_placement_register(x->placement, reg), paint_of(c, reg),
                      session_value(c->s, c->owner[reg], &buffer));
        } else {
            const size_t step = (size_t)spans[i].begin;
            draw_span(c, &spans[i], remat_placement_workspace(x->placement, step), "work box",
                      session_op(c->s, c->op[step], &buffer));
        }
    }
}

remat_status lower_svg(session *s, const picture *x, out *to)
{
    size_t n, n_steps;
    const remat_statement *statement = remat_program_statements(x->program, &n);
    const remat_packing *p = remat_placement_packing(x->placement);
    remat_plan_steps(x->plan, &n_steps);
    canvas c = {.s = s,
                .per_step = n_steps ? (double)WIDTH / (double)n_steps : 0,
                .per_byte = p->height_bytes ? (double)HEIGHT / (double)p->height_bytes : 0};
    look_through(&c, statement, n, n_steps);
    svg_open(&c.v, to, LEFT + WIDTH + 20, TOP + HEIGHT + BELOW, remat_graph_name(s->original),
             "Offsets in one arena: time across, addresses up, a rectangle for every storage");
    draw_head(&c, x, n_steps);
    draw_spans(&c, x);
    svg_close(&c.v);
    free(c.is_again);
    free(c.owner);
    free(c.op);
    return REMAT_OK;
}
