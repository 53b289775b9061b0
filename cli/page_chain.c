/* page_chain.c: the operations and items of a chain, as the ops and tensors of the page.
 *
 * Ops are the forwards of the stages 1 to L + 1, then their backwards in the order in which
 * keep-all runs them: the forward of stage l has number l - 1, its backward 2 (L + 1) - l. Which of
 * the three kinds of forward a step is, its schedule says. Tensors are what the plans store: a,
 * abar, delta and keep of a stage (chain_play.h), those without bytes left out. A forward is said
 * to read a and abar of the stage before, and to make both: which of them it is, lives show. */
#include <stdlib.h>
#include <string.h>

#include "chain_play.h"
#include "page_data.h"

uint32_t page_chain_values(const session *s) { return chain_n_items(s->chain); }

page_life *page_chain_lives(const session *s, const page_plan *p, uint32_t *n)
{
    size_t n_steps;
    const remat_step *steps = remat_plan_steps(p->report.plan, &n_steps);
    chain_life *lives = chain_lives(s->chain, steps, n_steps, n);
    page_life *list = out_resize(NULL, (size_t)*n + 1, sizeof *list);
    for (uint32_t i = 0; i < *n; i++)
        list[i] = (page_life){lives[i].item, lives[i].begin, lives[i].end};
    free(lives);
    return list;
}

static void number_all(page_writer *w)
{
    for (size_t p = 0; p < w->page->n_plans; p++) {
        uint32_t n;
        page_life *list = page_chain_lives(w->s, &w->page->plans[p], &n);
        for (uint32_t i = 0; i < n; i++)
            page_number(w, list[i].value, chain_item_bytes(w->s->chain, list[i].value));
        free(list);
    }
    w->n_made = w->n_tensors;
}

/* ---- ops ---- */

static uint32_t n_forwards(const page_writer *w) { return remat_chain_n_stages(w->s->chain) + 1; }

static bool is_backward(const page_writer *w, uint32_t op) { return op >= n_forwards(w); }

static uint32_t stage_of(const page_writer *w, uint32_t op)
{
    return is_backward(w, op) ? 2 * n_forwards(w) - op : op + 1;
}

static int64_t op_phase(const page_writer *w, uint32_t op)
{
    return is_backward(w, op) ? REMAT_BACKWARD : REMAT_FORWARD;
}

static int64_t op_workspace(const page_writer *w, uint32_t op)
{
    const remat_stage *stage = remat_chain_stage(w->s->chain, stage_of(w, op));
    return is_backward(w, op) ? stage->ob : stage->of;
}

static int64_t op_cost(const page_writer *w, uint32_t op)
{
    const remat_stage *stage = remat_chain_stage(w->s->chain, stage_of(w, op));
    return is_backward(w, op) ? stage->tb : stage->tf;
}

/* The name of a stage; the input may have none. */
static const char *stage_name(const page_writer *w, uint32_t stage, amount *buffer)
{
    const char *name = remat_chain_stage(w->s->chain, stage)->name;
    return stage == 0 && !*name ? "input" : session_op(w->s, stage, buffer);
}

/* "NAME ENDING" in one string. */
static void put_name(page_writer *w, uint32_t stage, const char *ending)
{
    amount buffer;
    const char *name = stage_name(w, stage, &buffer);
    char *whole = out_resize(NULL, strlen(name) + strlen(ending) + 1, 1);
    emit_text(&w->j, NULL, strcat(strcpy(whole, name), ending));
    free(whole);
}

static void put_item(page_writer *w, uint32_t stage, chain_what what)
{
    const uint32_t tensor = w->tensor[chain_item(stage, what)];
    if (tensor != REMAT_NONE) emit_int(&w->j, NULL, tensor);
}

static void put_reads(page_writer *w, uint32_t op)
{
    const uint32_t stage = stage_of(w, op);
    emit_open(&w->j, NULL, '[');
    put_item(w, stage - 1, CHAIN_A);
    put_item(w, stage - 1, CHAIN_ABAR);
    if (is_backward(w, op)) {
        put_item(w, stage, CHAIN_ABAR);
        put_item(w, stage, CHAIN_DELTA);
        put_item(w, stage, CHAIN_KEEP);
    }
    emit_close(&w->j, ']');
}

static void put_makes(page_writer *w, uint32_t op)
{
    const uint32_t stage = stage_of(w, op);
    emit_open(&w->j, NULL, '[');
    if (is_backward(w, op)) {
        put_item(w, stage - 1, CHAIN_DELTA);
    } else {
        put_item(w, stage, CHAIN_A);
        put_item(w, stage, CHAIN_ABAR);
        put_item(w, stage, CHAIN_KEEP);
    }
    emit_close(&w->j, ']');
}

static void put_ops(page_writer *w)
{
    const uint32_t n = 2 * n_forwards(w);
    emit_open(&w->j, "ops", '{');
    emit_open(&w->j, "name", '[');
    for (uint32_t op = 0; op < n; op++)
        put_name(w, stage_of(w, op), is_backward(w, op) ? " backward" : "");
    emit_close(&w->j, ']');
    emit_open(&w->j, "target", '[');
    for (uint32_t op = 0; op < n; op++)
        emit_text(&w->j, NULL, is_backward(w, op) ? "backward" : "forward");
    emit_close(&w->j, ']');
    page_column(w, "phase", n, op_phase);
    page_column(w, "workspace", n, op_workspace);
    page_column(w, "cost", n, op_cost);
    emit_open(&w->j, "reads", '[');
    for (uint32_t op = 0; op < n; op++) put_reads(w, op);
    emit_close(&w->j, ']');
    emit_open(&w->j, "makes", '[');
    for (uint32_t op = 0; op < n; op++) put_makes(w, op);
    emit_close(&w->j, ']');
    emit_close(&w->j, '}');
}

/* ---- tensors ---- */

static int64_t no_kind(const page_writer *w, uint32_t tensor)
{
    (void)w;
    (void)tensor;
    return 0;
}

static void put_tensors(page_writer *w)
{
    static const char *const letters[CHAIN_WHATS] = {".a", ".abar", ".delta", ".keep"};
    emit_open(&w->j, "tensors", '{');
    emit_int(&w->j, "made", w->n_made);
    emit_open(&w->j, "name", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++)
        put_name(w, w->value[t] / CHAIN_WHATS, letters[w->value[t] % CHAIN_WHATS]);
    emit_close(&w->j, ']');
    page_column(w, "value", w->n_tensors, page_tensor_value);
    page_column(w, "bytes", w->n_tensors, page_tensor_bytes);
    page_column(w, "kind", w->n_tensors, no_kind);
    emit_open(&w->j, "dtype", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++) emit_text(&w->j, NULL, "");
    emit_close(&w->j, ']');
    emit_open(&w->j, "shape", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++) {
        emit_open(&w->j, NULL, '[');
        emit_close(&w->j, ']');
    }
    emit_close(&w->j, ']');
    emit_open(&w->j, "outputs", '[');
    put_item(w, 0, CHAIN_DELTA);
    emit_close(&w->j, ']');
    emit_close(&w->j, '}');
}

remat_status page_chain_put(page_writer *w)
{
    number_all(w);
    put_ops(w);
    emit_open(&w->j, "stages", '[');
    emit_close(&w->j, ']');
    put_tensors(w);
    return REMAT_OK;
}
