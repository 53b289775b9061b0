/* names.c: a crit-bit tree.
 *
 * Problem: files choose the names, so somebody could choose names that make a hash table quadratic.
 * Here finding and adding take time proportional to the name's length, whatever the names are.
 *
 * Method: an inner node has a byte and a mask with one 0 bit. That is the first bit in which the
 * names below it differ. Names under child[0] have a 0 there, names under child[1] a 1. Invariant:
 * (byte, mask) grow lexicographically down every path. */
#include "import/names.h"

#include <assert.h>
#include <string.h>

struct rm_name_node {
    const char *name; /* leaf, else NULL */
    uint32_t index;
    uint32_t byte;
    unsigned char others; /* all bits but the one that decides */
    rm_name_node *child[2];
};

static unsigned direction(const rm_name_node *node, const unsigned char *name, size_t length)
{
    const unsigned c = node->byte < length ? name[node->byte] : 0;
    return (1 + (node->others | c)) >> 8; /* 1 if and only if the bit is set */
}

/* A mask of all bits but the highest in which a and b differ. */
static unsigned char all_but_first_difference(unsigned char a, unsigned char b)
{
    unsigned bits = a ^ b;
    assert(bits);
    bits |= bits >> 1;
    bits |= bits >> 2;
    bits |= bits >> 4;
    return (unsigned char)((bits & ~(bits >> 1)) ^ 0xff);
}

static rm_name_node *closest_leaf(const rm_names *names, const char *name, size_t length)
{
    rm_name_node *node = names->root;
    while (!node->name) node = node->child[direction(node, (const unsigned char *)name, length)];
    return node;
}

uint32_t rm_names_find(const rm_names *names, const char *name)
{
    if (!names->root) return REMAT_NONE;
    const rm_name_node *leaf = closest_leaf(names, name, strlen(name));
    return strcmp(leaf->name, name) == 0 ? leaf->index : REMAT_NONE;
}

remat_status rm_names_add(remat_ctx *ctx, rm_names *names, const char *name, uint32_t index)
{
    rm_name_node *leaf, *inner;
    TRY(RM_SCRATCH(ctx, leaf, 1));
    leaf->name = name;
    leaf->index = index;
    if (!names->root) {
        names->root = leaf;
        return REMAT_OK;
    }

    const unsigned char *a = (const unsigned char *)name;
    const size_t length = strlen(name);
    const unsigned char *b = (const unsigned char *)closest_leaf(names, name, length)->name;
    assert(strcmp((const char *)a, (const char *)b) != 0);
    uint32_t byte = 0;
    while (a[byte] == b[byte]) byte++; /* they differ at the shorter one's end at the latest */
    const unsigned char others = all_but_first_difference(a[byte], b[byte]);

    TRY(RM_SCRATCH(ctx, inner, 1));
    inner->byte = byte;
    inner->others = others;
    const unsigned side = direction(inner, a, length);
    rm_name_node **where = &names->root;
    while (!(*where)->name &&
           ((*where)->byte < byte || ((*where)->byte == byte && (*where)->others < others)))
        where = &(*where)->child[direction(*where, a, length)];
    inner->child[side] = leaf;
    inner->child[1 - side] = *where;
    *where = inner;
    return REMAT_OK;
}
