/* zoo.h: embedded models and chains. */
#ifndef RM_ZOO_H
#define RM_ZOO_H

#include "base/base.h"

/* `spec` is what follows "zoo:", e.g. "resnet50?batch=256". REMAT_E_USAGE for an unknown model or
 * parameter. `batch`, if not 0, takes the place of the parameter of that name. REMAT_E_INPUT if the
 * model has no batch, or its range ends before this one. */
remat_status rm_zoo_build(remat_ctx *ctx, const char *spec, int64_t batch, remat_graph **out);
/* The same for what follows "chain:", e.g. "figure4?n=6". */
remat_status rm_zoo_chain(remat_ctx *ctx, const char *spec, remat_chain **out);

#endif
