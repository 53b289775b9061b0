/* lower_svg.h: a placement as a picture. */
#ifndef CLI_LOWER_SVG_H
#define CLI_LOWER_SVG_H

#include "session.h"

typedef struct picture {
    const remat_program *program;
    const remat_placement *placement;
    const remat_plan *plan;
} picture;

remat_status lower_svg(session *s, const picture *x, out *to);

#endif
