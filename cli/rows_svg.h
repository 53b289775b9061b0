/* rows_svg.h: what compare and curve show, as pictures. Each writes to --svg, if that is given. */
#ifndef CLI_ROWS_SVG_H
#define CLI_ROWS_SVG_H

#include "plot.h"

int curve_svg(session *s, const plot *p);
int compare_svg(session *s, const reports *r); /* rows that share their bound (rows.h) */

#endif
