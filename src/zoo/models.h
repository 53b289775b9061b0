/* models.h: the models of the zoo. Each writes its forward pass onto the tape and returns the logits, from which zoo.c makes
 * the loss and the backward pass; or it writes a whole graph into the tape's builder and returns NULL. */
#ifndef RM_MODELS_H
#define RM_MODELS_H

#include "zoo/tape.h"

typedef struct rm_zoo_args { /* every parameter of every model; a model reads those its row in zoo.c lists */
    int64_t batch, res, classes, layers, width, heads, seq, vocab, n, size, density, skip, seed;
} rm_zoo_args;

typedef rm_tensor *rm_model(rm_tape *tape, const rm_zoo_args *args);

rm_model rm_densenet121, rm_mobilenet, rm_resnet18, rm_resnet50, rm_vgg16, rm_vgg19; /* convnets.c */
rm_model rm_fcn8, rm_segnet, rm_unet, rm_vgg_unet;                                   /* segmentation.c */
rm_model rm_bert, rm_gpt, rm_vit;                                                    /* transformers.c */
rm_model rm_chain, rm_mlp, rm_random_layered;                                        /* synthetic.c */

#endif
