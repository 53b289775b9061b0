/* states.c: see states.h.
 *
 * Method: states lie in chunks, so they never move. A table with open addressing finds them by
 * their keys. The first state added is the one that all ways begin at.
 *
 * Invariant: the table is at most half full, so a look into it ends soon.
 *
 * Cost: O(key) to find or add, O(log open) to push or pop. */
#include "plan/bound/states.h"

#include <assert.h>
#include <string.h>

#include "base/heap.h"

enum {
    CHUNK = 1 << 10, /* states that are allocated at a time */
    HEAD = 2,        /* words of a state before its key: its cost, and how it was reached */
    FIRST_SIZE = 1 << 12
};

/* Of the word that says how it was reached: before << 32 | done << 31 | op. */
#define DONE (UINT64_C(1) << 31)
#define OP (DONE - 1)

static uint64_t *words_of(const rm_states *s, uint32_t state)
{
    assert(state < s->n);
    return s->chunks.items[state / CHUNK] + (size_t)(state % CHUNK) * s->stride;
}

static size_t chunk_bytes(const rm_states *s)
{
    return (size_t)CHUNK * s->stride * sizeof(uint64_t);
}

remat_status rm_states_begin(remat_ctx *ctx, uint32_t key_words, int64_t most_bytes, rm_states *out)
{
    *out = (rm_states){.ctx = ctx,
                       .key_words = key_words,
                       .stride = HEAD + key_words,
                       .most_bytes = most_bytes,
                       .table_size = FIRST_SIZE};
    out->table = rm_alloc(ctx, FIRST_SIZE * sizeof *out->table);
    return out->table ? REMAT_OK : REMAT_E_MEMORY;
}

void rm_states_free(rm_states *s)
{
    if (!s->ctx) return;
    const remat_alloc *heap = &s->ctx->heap;
    for (size_t i = 0; i < s->chunks.n; i++) rm_release(heap, s->chunks.items[i], chunk_bytes(s));
    if (s->table) rm_release(heap, s->table, s->table_size * sizeof *s->table);
    RM_VEC_FREE(heap, s->chunks);
    RM_VEC_FREE(heap, s->open);
    *s = (rm_states){0};
}

/* ---- the table ---- */

static uint32_t hash_of(const rm_states *s, const uint64_t *key)
{
    uint64_t h = UINT64_C(0x9E3779B97F4A7C15);
    for (uint32_t i = 0; i < s->key_words; i++) {
        h = (h ^ key[i]) * UINT64_C(0xFF51AFD7ED558CCD);
        h ^= h >> 32;
    }
    return (uint32_t)(h ^ h >> 29);
}

/* Where the table has the state, or would have it. */
static uint32_t *find_place(const rm_states *s, const uint64_t *key)
{
    uint32_t at = hash_of(s, key) & (s->table_size - 1);
    for (; s->table[at]; at = (at + 1) & (s->table_size - 1))
        if (memcmp(rm_state_key(s, s->table[at] - 1), key, s->key_words * sizeof *key) == 0) break;
    return &s->table[at];
}

static remat_status grow_table(rm_states *s)
{
    const uint32_t old_size = s->table_size;
    uint32_t *old = s->table;
    if (old_size > UINT32_MAX / 4) {
        s->full = true;
        return REMAT_OK;
    }
    uint32_t *grown = rm_alloc(s->ctx, 2 * (size_t)old_size * sizeof *grown);
    if (!grown) return REMAT_E_MEMORY;
    s->table = grown;
    s->table_size = 2 * old_size;
    for (uint32_t i = 0; i < s->n; i++) *find_place(s, rm_state_key(s, i)) = i + 1;
    rm_release(&s->ctx->heap, old, old_size * sizeof *old);
    s->bytes += old_size * (int64_t)sizeof *old;
    return REMAT_OK;
}

/* Room for CHUNK more states. The list grows first, so a chunk is never without an owner. */
static remat_status add_chunk(rm_states *s)
{
    TRY(RM_RESERVE(s->ctx, s->chunks, 1));
    uint64_t *chunk = rm_alloc(s->ctx, chunk_bytes(s));
    if (!chunk) return REMAT_E_MEMORY;
    s->chunks.items[s->chunks.n++] = chunk;
    s->bytes += (int64_t)chunk_bytes(s);
    s->full |= s->bytes + (int64_t)(s->open.room * sizeof *s->open.items) > s->most_bytes;
    return REMAT_OK;
}

uint32_t rm_states_find(const rm_states *s, const uint64_t *key)
{
    const uint32_t entry = *find_place(s, key);
    return entry ? entry - 1 : RM_NO_STATE;
}

remat_status rm_states_add(rm_states *s, const uint64_t *key, uint32_t *state)
{
    if (s->n % CHUNK == 0) TRY(add_chunk(s));
    uint32_t *place = find_place(s, key);
    assert(*place == 0);
    *state = s->n++;
    *place = s->n;
    memcpy(words_of(s, *state) + HEAD, key, s->key_words * sizeof *key);
    return s->n > s->table_size / 2 ? grow_table(s) : REMAT_OK;
}

/* ---- a state ---- */

void rm_state_reach(rm_states *s, uint32_t state, int64_t cost, uint32_t before, uint32_t op)
{
    assert(op <= OP);
    words_of(s, state)[0] = (uint64_t)cost;
    words_of(s, state)[1] = (uint64_t)before << 32 | op;
}

bool rm_state_finish(rm_states *s, uint32_t state)
{
    uint64_t *x = words_of(s, state);
    if (x[1] & DONE) return false;
    x[1] |= DONE;
    return true;
}

int64_t rm_state_cost(const rm_states *s, uint32_t state) { return (int64_t)words_of(s, state)[0]; }

const uint64_t *rm_state_key(const rm_states *s, uint32_t state)
{
    return words_of(s, state) + HEAD;
}

/* ---- open states ---- */

static bool goes_before(const void *none, rm_open_state a, rm_open_state b)
{
    (void)none;
    if (a.bound != b.bound) return a.bound < b.bound;
    return a.progress != b.progress ? a.progress > b.progress : a.state > b.state;
}
RM_HEAP(open, rm_open_state, const void *, goes_before)

remat_status rm_states_push(rm_states *s, rm_open_state x)
{
    TRY(RM_RESERVE(s->ctx, s->open, 1));
    open_push(NULL, s->open.items, s->open.n++, x);
    return REMAT_OK;
}

rm_open_state rm_states_pop(rm_states *s) { return open_pop(NULL, s->open.items, s->open.n--); }

/* ---- the way ---- */

remat_status rm_states_way_to(const rm_states *s, uint32_t state, rm_codes *out)
{
    out->n = 0;
    for (uint32_t i = state; i; i = (uint32_t)(words_of(s, i)[1] >> 32))
        TRY(RM_PUSH(s->ctx, *out, (rm_code)(words_of(s, i)[1] & OP)));
    for (size_t i = 0, j = out->n; i + 1 < j; i++) {
        const rm_code x = out->items[--j];
        out->items[j] = out->items[i];
        out->items[i] = x;
    }
    return REMAT_OK;
}
