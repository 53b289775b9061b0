/* names.h: a map from strings to indices, for readers. */
#ifndef RM_NAMES_H
#define RM_NAMES_H

#include "base/base.h"

typedef struct rm_name_node rm_name_node;
/* {NULL}: empty. Its memory is scratch. */
typedef struct rm_names {
    rm_name_node *root;
} rm_names;

uint32_t rm_names_find(const rm_names *names, const char *name); /* REMAT_NONE: not there */
/* `name` is not there yet. It must outlive the map. */
remat_status rm_names_add(remat_ctx *ctx, rm_names *names, const char *name, uint32_t index);

#endif
