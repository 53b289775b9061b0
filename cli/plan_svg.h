/* plan_svg.h: a plan as a picture. */
#ifndef CLI_PLAN_SVG_H
#define CLI_PLAN_SVG_H

#include "report.h"

int plan_svg(session *s, const report *r); /* to --svg, if that is given; exit codes as usual */

#endif
