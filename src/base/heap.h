/* heap.h: binary heaps in arrays of any type. On top is the item that goes before all others.
 *
 *     static bool is_due(const plan *p, uint32_t a, uint32_t b) { return p->due[a] < p->due[b]; }
 *     RM_HEAP(due, uint32_t, const plan *, is_due)
 *
 *     due_push(p, items, n++, item);            // there is room for one more
 *     const uint32_t next = due_pop(p, items, n--);
 *     due_replace(p, items, n, item);           // instead of the top
 *     due_make(p, items, n);                    // out of items in any order
 *
 * Invariant: no item goes before its parent; the parent of item i is item (i - 1) / 2.
 *
 * If the order leaves no ties, what is popped does not depend on the order of the pushes.
 *
 * Cost: O(n) to make, O(log n) for the rest. */
#ifndef RM_HEAP_H
#define RM_HEAP_H

#include "base/compiler.h"

#include <assert.h>
#include <stddef.h>

/* n: how many items there are before the call. The array of a push has room for one more. */
#define RM_HEAP(name, type, context, goes_before)                                                  \
    RM_UNUSED static inline void name##_push(context x, type *items, size_t n, type item)          \
    {                                                                                              \
        size_t at = n;                                                                             \
        for (; at && goes_before(x, item, items[(at - 1) / 2]); at = (at - 1) / 2)                 \
            items[at] = items[(at - 1) / 2];                                                       \
        items[at] = item;                                                                          \
    }                                                                                              \
    RM_UNUSED static inline void name##_sink(context x, type *items, size_t n, size_t at,          \
                                             type item)                                            \
    {                                                                                              \
        for (size_t child; (child = 2 * at + 1) < n; at = child) {                                 \
            if (child + 1 < n && goes_before(x, items[child + 1], items[child])) child++;          \
            if (!goes_before(x, items[child], item)) break;                                        \
            items[at] = items[child];                                                              \
        }                                                                                          \
        items[at] = item;                                                                          \
    }                                                                                              \
    RM_UNUSED static inline void name##_replace(context x, type *items, size_t n, type item)       \
    {                                                                                              \
        assert(n > 0);                                                                             \
        name##_sink(x, items, n, 0, item);                                                         \
    }                                                                                              \
    RM_UNUSED static inline type name##_pop(context x, type *items, size_t n)                      \
    {                                                                                              \
        assert(n > 0);                                                                             \
        const type top = items[0];                                                                 \
        name##_sink(x, items, n - 1, 0, items[n - 1]);                                             \
        return top;                                                                                \
    }                                                                                              \
    RM_UNUSED static inline void name##_make(context x, type *items, size_t n)                     \
    {                                                                                              \
        for (size_t at = n / 2; at-- > 0;) name##_sink(x, items, n, at, items[at]);                \
    }

#endif
