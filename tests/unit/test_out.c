/* test_out.c: what is written reaches the sink, byte for byte and in few pieces; a sink that fails
 * is left alone from then on. */
#include "support.h"

#include <string.h>

#include "base/out.h"
#include "random_graph.h"

enum { MOST = 1 << 17 };

typedef struct page {
    char bytes[MOST];
    size_t n;
    int calls, allowed;
} page;

static int onto_page(void *user, const void *bytes, size_t n)
{
    page *p = user;
    assert_true(n > 0 && p->n + n <= MOST);
    if (++p->calls > p->allowed) return -1;
    memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
    return 0;
}

/* A random piece of text, written in one way or the other; returns its length. */
static size_t write_piece(rm_out *out, random_source *r, char *expected)
{
    char piece[20000];
    const uint32_t kind = random_below(r, 3);
    size_t n = random_below(r, random_chance(r, 5) ? sizeof piece : RM_OUT_LONGEST + 1);
    for (size_t i = 0; i < n; i++) piece[i] = (char)('a' + random_below(r, 26));
    piece[n] = '\0';
    if (kind == 0) rm_out_bytes(out, piece, n);
    else if (kind == 1) rm_out_text(out, piece);
    else rm_out_format(out, "%s", piece);
    if (kind == 2 && n > RM_OUT_LONGEST) n = RM_OUT_LONGEST;
    memcpy(expected, piece, n);
    return n;
}

static void any_pieces(void **state)
{
    remat_ctx *ctx = *state;
    static page p;
    static char expected[MOST];
    for (uint32_t seed = 0; seed < 300; seed++) {
        random_source r = {seed};
        rm_out out;
        size_t n = 0;
        p = (page){.allowed = MOST};
        rm_out_begin(&out, ctx, onto_page, &p);
        while (n < MOST / 2) n += write_piece(&out, &r, expected + n);
        OK(ctx, rm_out_end(&out));
        assert_int_equal(p.n, n);
        assert_memory_equal(p.bytes, expected, n);
        assert_true((size_t)p.calls <= n / (sizeof out.buffer - RM_OUT_LONGEST) + 1);
    }
}

static void nothing(void **state)
{
    remat_ctx *ctx = *state;
    rm_out out;
    static page p;
    rm_out_begin(&out, ctx, onto_page, &p);
    rm_out_text(&out, "");
    OK(ctx, rm_out_end(&out));
    assert_int_equal(p.calls, 0);
}

static void failures_stick(void **state)
{
    remat_ctx *ctx = *state;
    for (int allowed = 0; allowed < 4; allowed++) {
        rm_out out;
        static page p;
        p = (page){.allowed = allowed};
        rm_out_begin(&out, ctx, onto_page, &p);
        for (int i = 0; i < 10000; i++) rm_out_format(&out, "line %d\n", i);
        rm_out_text(&out, "the end");
        FAILS(ctx, REMAT_E_IO, rm_out_end(&out));
        assert_int_equal(p.calls, allowed + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(any_pieces), WITH_CONTEXT(nothing),
                                       WITH_CONTEXT(failures_stick)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
