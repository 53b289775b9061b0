/* page.h: plans of one graph as an HTML page that stands alone. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "report.h"

/* What a plan of the page is there for. */
typedef enum page_role { PAGE_KEEP_ALL, PAGE_PLAN, PAGE_CURVE } page_role;

typedef struct page_plan {
    page_role role;
    report report;
    remat_program *program;
} page_plan;

typedef struct page {
    page_plan *plans; /* the first is keep-all */
    size_t n_plans;
    const report *refused; /* strategies that do not apply */
    size_t n_refused;
} page;

/* A session_writer: the page. */
remat_status page_write(session *s, const void *object, remat_format format, out *to);

/* The page up to its data, and from there on: made by cmake/embed.cmake from web/. */
extern const unsigned char page_before[], page_after[];
extern const size_t page_before_size, page_after_size;

#endif
