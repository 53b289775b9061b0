/* lower_svg.c: a placement as an SVG: time across, addresses up, a rectangle for every storage
 * instance and every workspace. What an op makes again is hatched; its name is the rectangle's
 * title, which browsers show under the pointer.
 *
 * The file stands alone: no script, no font, no link. Names are data of a file, so all that XML
 * could obey is escaped. Cost: linear in what is written. */
#include "lower_svg.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WIDTH = 1200, HEIGHT = 600, LEFT = 110, TOP = 40, BELOW = 40, LONGEST_NAME = 80 };

typedef struct canvas {
    session *s;
    out *o;
    double per_step, per_byte; /* points */
    uint8_t *is_again;         /* by register: an instance of its value was made before */
    uint32_t *owner;           /* by register: the value */
    uint32_t *op;              /* by step: what runs */
    uint32_t n_regs;
} canvas;

static void put_name(out *o, const char *name)
{
    for (int i = 0; name[i] && i < LONGEST_NAME; i++) {
        const char c = name[i];
        if (c == '<' || c == '>' || c == '&' || c == '"' || c < ' ' || c > '~') out_print(o, "_");
        else out_print(o, "%c", c);
    }
}

static void put_head(const canvas *c, const picture *x, size_t n_steps)
{
    const remat_packing *p = remat_placement_packing(x->placement);
    out_print(c->o,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
              "font-family=\"sans-serif\" font-size=\"12\">\n"
              "<defs><pattern id=\"again\" width=\"6\" height=\"6\" "
              "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
              "<rect width=\"6\" height=\"6\" fill=\"#fdd9a0\"/>"
              "<rect width=\"2\" height=\"6\" fill=\"#d97706\"/></pattern></defs>\n"
              "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
              LEFT + WIDTH + 20, TOP + HEIGHT + BELOW);
    out_print(c->o, "<text x=\"%d\" y=\"24\" font-weight=\"bold\">", LEFT);
    put_name(c->o, remat_graph_name(c->s->original));
    out_print(c->o, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 6,
              TOP + 10, out_size(c->o, p->height_bytes).text);
    out_print(c->o, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0 B</text>\n", LEFT - 6,
              TOP + HEIGHT);
    out_print(c->o,
              "<text x=\"%d\" y=\"%d\">%zu steps; arena %" PRId64 " bytes, %" PRId64
              " of them wasted; hatched: made again; grey: workspace</text>\n",
              LEFT, TOP + HEIGHT + 24, n_steps, p->height_bytes, p->height_bytes - p->load_bytes);
}

static void put_rectangle(const canvas *c, const remat_span *span, int64_t offset, const char *fill,
                          const char *name)
{
    const double top = (double)(offset + span->bytes) * c->per_byte;
    out_print(c->o,
              "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" "
              "stroke=\"#334155\" stroke-width=\"0.3\"><title>",
              LEFT + (double)span->begin * c->per_step, TOP + HEIGHT - top,
              (double)(span->end - span->begin) * c->per_step, (double)span->bytes * c->per_byte,
              fill);
    put_name(c->o, name);
    out_print(c->o, ": %" PRId64 " bytes at %" PRId64 ", steps %" PRId64 " to %" PRId64,
              span->bytes, offset, span->begin, span->end - 1);
    out_print(c->o, "</title></rect>\n");
}

static const char *fill_of(const canvas *c, uint32_t reg)
{
    if (c->is_again[reg]) return "url(#again)";
    const int64_t op = remat_graph_value_get(c->s->original, c->owner[reg], REMAT_VALUE_PRODUCER);
    const int64_t phase = op < 0 ? REMAT_PHASE_NONE
                                 : remat_graph_op_get(c->s->original, (uint32_t)op, REMAT_OP_PHASE);
    return phase == REMAT_BACKWARD ? "#a7f3d0" : "#bfdbfe";
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

static void put_spans(const canvas *c, const picture *x)
{
    size_t n;
    const remat_span *spans = remat_placement_spans(x->placement, &n);
    amount buffer;
    for (size_t i = 0; i < n; i++) {
        if (spans[i].bytes == 0) continue;
        if (i < c->n_regs) {
            const uint32_t reg = (uint32_t)i;
            put_rectangle(c, &spans[i], remat_placement_register(x->placement, reg),
                          fill_of(c, reg), session_value(c->s, c->owner[reg], &buffer));
        } else {
            const size_t step = (size_t)spans[i].begin;
            put_rectangle(c, &spans[i], remat_placement_workspace(x->placement, step), "#cbd5e1",
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
                .o = to,
                .per_step = n_steps ? (double)WIDTH / (double)n_steps : 0,
                .per_byte = p->height_bytes ? (double)HEIGHT / (double)p->height_bytes : 0};
    look_through(&c, statement, n, n_steps);
    put_head(&c, x, n_steps);
    put_spans(&c, x);
    out_print(to, "</svg>\n");
    free(c.is_again);
    free(c.owner);
    free(c.op);
    return REMAT_OK;
}
