/* random_graph.h: seeded random graphs with every feature of the model, and random schedules on
 * them, valid and broken. */
#ifndef RANDOM_GRAPH_H
#define RANDOM_GRAPH_H

#include "base/random.h"
#include "remat.h"

typedef rm_random random_source;

uint32_t random_below(random_source *r, uint32_t n); /* 0 .. n - 1; 0 for n = 0 */
bool random_chance(random_source *r, uint32_t percent);

/* 1 to 14 ops, at times 60: views (of views, of resident values, larger than their storage),
 * several outputs of which some are views, workspaces, pins, zero sizes, dead ops, phases, repeated
 * inputs; in some, outputs that may be made in place of inputs. NULL: the builder refused; see the
 * context. */
remat_graph *random_graph(remat_ctx *ctx, random_source *r);

/* In some graphs, gives outputs the size of an input, and lets them take its place. The last thing
 * before the builder is finished. */
void random_inplace(remat_builder *b, random_source *r);

/* A forward part whose values are read again by a backward part: what the rules are about. In some,
 * values shrink on the way, so that earlier ones can stand in for several later ones, and the
 * backward part reads late ones only. */
remat_graph *random_training_graph(remat_ctx *ctx, random_source *r);

typedef struct random_schedule {
    remat_step *steps;
    size_t n_steps, capacity;
} random_schedule;

/* A valid schedule: a random order, ops run again, and with `transfers` values that go to the host
 * and come back. */
void random_schedule_make(random_schedule *out, const remat_graph *graph, random_source *r,
                          bool transfers);
/* One to three random edits, most of which make it invalid. */
void random_schedule_break(random_schedule *s, const remat_graph *graph, random_source *r);
void random_schedule_free(random_schedule *s);

#endif
