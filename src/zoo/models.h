/* models.h: the models of the zoo, and the tables that name them.
 *
 * A model writes its forward pass onto the tape and returns the logits. zoo.c makes the loss and
 * the backward pass of them. Or a model writes a whole graph into the tape's builder and returns
 * NULL. A chain generator fills in stages.
 *
 * Tables are written once, as TABLE(M, P):
 *   - M: name, function, what it is, parameters;
 *   - P: name, default, lowest, highest.
 * One expansion gives the rows that the parser reads (RM_ZOO_KEY), another the help that
 * remat_zoo_at gives (RM_ZOO_HELP). */
#ifndef RM_MODELS_H
#define RM_MODELS_H

#include "zoo/tape.h"

#include <stddef.h>

enum { RM_MAX_LIST = 64 };
/* Every parameter of every model. A model reads those that its row lists. */
typedef struct rm_zoo_args {
    int64_t batch, res, classes, layers, width, heads, seq, vocab, n, size, density, skip, seed, k;
    int64_t x[RM_MAX_LIST], n_x; /* a list: x=1,2,3 */
} rm_zoo_args;

typedef rm_tensor *rm_model(rm_tape *tape, const rm_zoo_args *args);
/* Says how many stages there are, and fills in all n_stages + 2 (zeros) unless `stages` is NULL. */
typedef remat_status rm_chain_model(remat_ctx *ctx, const rm_zoo_args *args, uint32_t *n_stages,
                                    remat_stage *stages);

typedef struct rm_zoo_param {
    const char *key;
    size_t offset; /* in rm_zoo_args */
    const char *initial;
    int64_t low, high;
} rm_zoo_param;
typedef struct rm_zoo_row {
    const char *name;
    rm_model *model;        /* a graph, or */
    rm_chain_model *chain;  /* a chain */
    rm_zoo_param params[8]; /* ends with a NULL key */
} rm_zoo_row;

#define RM_ZOO_KEY(key, initial, low, high) {#key, offsetof(rm_zoo_args, key), #initial, low, high},
#define RM_ZOO_HELP(key, initial, low, high) " " #key "=" #initial

/* `spec` is "NAME?key=value&...". */
remat_status rm_zoo_parse(remat_ctx *ctx, const rm_zoo_row *rows, size_t n_rows, const char *spec,
                          const rm_zoo_row **row, rm_zoo_args *args);
const remat_entry *rm_chain_entry_at(size_t index); /* chains.c */

/* convnets.c */
rm_model rm_densenet121, rm_mobilenet, rm_resnet18, rm_resnet50;
rm_model rm_vgg16_classifier, rm_vgg19_classifier;
/* cells.c */
rm_model rm_inception, rm_nasnet;
/* segmentation.c */
rm_model rm_fcn8, rm_segnet, rm_unet, rm_vgg_unet;
/* transformers.c */
rm_model rm_bert, rm_gpt, rm_vit;
/* examples.c */
rm_model rm_example_f, rm_example_f1, rm_example_f2, rm_example_fig4, rm_example_gelu;
/* synthetic.c */
rm_model rm_chain, rm_mlp, rm_random_layered;

#endif
