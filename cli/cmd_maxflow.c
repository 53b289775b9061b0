/* cmd_maxflow.c: `remat maxflow`: the value of a maximum flow of a DIMACS file, and the minimum cut
 * nearest the sink. The seconds are those of the solver alone, without reading. Vertices are
 * numbered as in the file, from 1. */
#include <inttypes.h>
#include <stdlib.h>

#include "commands.h"

static void print_json(session *s, int64_t value, const uint8_t *source_side, uint32_t n,
                       double seconds)
{
    emitter j = {.out = s->out};
    emit_open(&j, NULL, '{');
    emit_int(&j, "value", value);
    emit_open(&j, "source_side", '[');
    for (uint32_t v = 0; v < n; v++)
        if (source_side[v]) emit_int(&j, NULL, (int64_t)v + 1);
    emit_close(&j, ']');
    emit_real(&j, "seconds", seconds);
    emit_close(&j, '}');
}

static int solve(session *s, const remat_network *network)
{
    const uint32_t n = remat_network_n_vertices(network);
    uint8_t *source_side = out_resize(NULL, n, 1);
    int64_t value;
    const double begin = seconds_now();
    session_busy(s);
    const remat_status status = remat_network_solve(s->ctx, network, &value, source_side);
    session_idle(s);
    const double seconds = seconds_now() - begin;
    uint32_t n_source = 0;
    for (uint32_t v = 0; v < n && status == REMAT_OK; v++) n_source += source_side[v];
    if (status == REMAT_OK && s->out->json) print_json(s, value, source_side, n, seconds);
    else if (status == REMAT_OK)
        out_print(s->out,
                  "maximum flow %" PRId64 "\n%" PRIu32 " vertices, %zu arcs; %" PRIu32
                  " vertices on the source's side of the cut\nsolved in %.6f s\n",
                  value, n, remat_network_n_arcs(network), n_source, seconds);
    free(source_side);
    return status == REMAT_OK ? REMAT_OK : session_fail(s, status);
}

int cmd_maxflow(session *s)
{
    remat_input *input;
    remat_network *network = NULL;
    int status = session_input(s, s->args->operands[0], &input);
    if (status) return status;
    const remat_status read = remat_network_read(s->ctx, input, &network);
    remat_input_free(input);
    if (read != REMAT_OK) return session_fail(s, read);
    status = solve(s, network);
    remat_network_free(network);
    return status;
}
