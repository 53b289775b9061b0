/* page_data.h: what the files share that write the data of a page: page.c the whole and the plans,
 * page_graph.c and page_chain.c the ops and tensors of a graph or a chain. docs/report.md says what
 * the data are. */
#ifndef CLI_PAGE_DATA_H
#define CLI_PAGE_DATA_H

#include "page.h"

/* Tensors have numbers of their own, in the order in which the plans make them; then come the
 * resident ones. A value is one of the graph, or an item of the chain (chain_play.h). */
typedef struct page_writer {
    session *s;
    emitter j;
    const page *page;
    uint32_t *tensor;           /* by value: its number; REMAT_NONE: it owns no storage */
    uint32_t *value;            /* by tensor */
    int64_t *bytes;             /* by tensor */
    uint32_t n_tensors, n_made; /* the first n_made are made by ops, the others are resident */
} page_writer;

/* Gives the value a number, unless it has one. */
void page_number(page_writer *w, uint32_t value, int64_t bytes);
/* A column of numbers: of(w, i) for i below n. */
void page_column(page_writer *w, const char *key, uint32_t n,
                 int64_t of(const page_writer *w, uint32_t i));
int64_t page_tensor_value(const page_writer *w, uint32_t tensor);
int64_t page_tensor_bytes(const page_writer *w, uint32_t tensor);

typedef struct page_life {
    uint32_t value, begin, end; /* steps, the last with it */
} page_life;

/* For each of both: how many values there are; the lives of a plan, in the order in which they
 * begin, to be freed; and the keys `ops`, `stages` and `tensors`. */
uint32_t page_graph_values(const session *s);
page_life *page_graph_lives(const session *s, const page_plan *p, uint32_t *n);
remat_status page_graph_put(page_writer *w);
uint32_t page_chain_values(const session *s);
page_life *page_chain_lives(const session *s, const page_plan *p, uint32_t *n);
remat_status page_chain_put(page_writer *w);

#endif
