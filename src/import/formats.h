/* formats.h: the readers and writers of whole files. */
#ifndef RM_FORMATS_H
#define RM_FORMATS_H

#include <stdio.h>

#include "base/out.h"
#include "import/input.h"

extern const char *const rm_chain_operations[4]; /* names of REMAT_F_ALL to REMAT_B */

remat_status rm_read_chain(remat_ctx *ctx, const remat_input *input, remat_chain **out);
remat_status rm_read_plan(remat_ctx *ctx, const remat_input *input, remat_plan **out);

void rm_write_string(rm_out *out, const char *text); /* as JSON, with its quotes */
void rm_write_graph(rm_out *out, const remat_graph *g);
void rm_write_dot(rm_out *out, const remat_graph *g);
void rm_write_chain(rm_out *out, const remat_chain *chain);
void rm_write_plan(rm_out *out, const remat_plan *plan);

#endif
