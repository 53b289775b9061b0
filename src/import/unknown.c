/* unknown.c: keys that no reader knows, told in one warning a file.
 *
 * Problem: a key that is misspelt ("output", "cots") is kept as somebody's own, and what was meant
 * is silently missing. Method: readers note what they do not know. At the end one line names the
 * first few, with the list that they stand in. Cost: O(keys) for each object, as for reading it. */
#include "import/unknown.h"

#include <stdio.h>
#include <string.h>

static bool is_in(const char *key, const char *const *list)
{
    for (; list && *list; list++)
        if (strcmp(key, *list) == 0) return true;
    return false;
}

/* All nodes are one place, and so are all values. */
static bool is_noted(const rm_unknown *u, const char *list, const char *key)
{
    for (uint32_t i = 0; i < u->n; i++)
        if (strcmp(u->items[i].list ? u->items[i].list : "", list ? list : "") == 0 &&
            strcmp(u->items[i].key, key) == 0)
            return true;
    return false;
}

void rm_unknown_note(rm_unknown *u, const rm_fields *f, const char *const *known,
                     const char *const *more_known)
{
    for (uint32_t i = 0; i < f->object->n; i++) {
        const char *key = f->object->items[i].key;
        if (is_in(key, known) || is_in(key, more_known)) continue;
        if (is_noted(u, f->place.list, key)) continue;
        u->more = u->n == RM_LEN(u->items);
        if (u->more) return;
        u->items[u->n].list = f->place.list;
        u->items[u->n++].key = key;
    }
}

void rm_unknown_warn(remat_ctx *ctx, const rm_unknown *u)
{
    char names[400] = "";
    size_t used = 0;
    if (u->n == 0) return;
    for (uint32_t i = 0; i < u->n; i++) {
        const char *list = u->items[i].list;
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s\"%.40s\"%s%.20s", i ? ", " : "",
                             u->items[i].key, list ? " in " : "", list ? list : "");
    }
    rm_warn(ctx, "%s not known here, and kept without a meaning: %s%s",
            u->n == 1 ? "a key is" : "keys are", names, u->more ? ", ..." : "");
}
