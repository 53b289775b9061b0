/* test_json.c: the JSON parser, strict in what it takes (RFC 8259), seen through a graph with one
 * unknown key, and exact in what it gives back: unknown keys survive a round trip, numbers mean
 * what they say. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static remat_status read_with(remat_ctx *ctx, const char *value, size_t n, remat_graph **out)
{
    static const char head[] =
        "{\"format\":\"remat-graph\",\"version\":1,\"values\":[],\"nodes\":[],\"mine\":";
    char *text =
        malloc(sizeof head + n + 1); /* no zero byte behind it: the parser must stop at the end */
    assert_non_null(text);
    memcpy(text, head, sizeof head - 1);
    memcpy(text + sizeof head - 1, value, n);
    text[sizeof head - 1 + n] = '}';
    remat_input *input = NULL;
    remat_status status = remat_input_parse(ctx, "text", text, sizeof head + n, &input);
    if (status == REMAT_OK) status = remat_graph_read(ctx, input, out);
    remat_input_free(input);
    free(text);
    return status;
}

#define TEXT(literal) {literal, sizeof(literal) - 1}
typedef struct text {
    const char *bytes;
    size_t n;
} text;

static void accepted(void **state)
{
    remat_ctx *ctx = *state;
    static const text table[] = {
        TEXT("null"),
        TEXT("true"),
        TEXT("false"),
        TEXT("0"),
        TEXT("-0"),
        TEXT("-1"),
        TEXT("1.5"),
        TEXT("1e5"),
        TEXT("1E+5"),
        TEXT("1e-5"),
        TEXT("0.0"),
        TEXT("1e308"),
        TEXT("9223372036854775807"),
        TEXT("-9223372036854775808"),
        TEXT("\"\""),
        TEXT("\"a\""),
        TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
        TEXT("\"\\u00e9\""),
        TEXT("\"\\u00E9\""),
        TEXT("\"\\ud83d\\ude00\""),
        TEXT("\"\xc3\xa9\""),
        TEXT("\"\xf0\x9f\x98\x80\""),
        TEXT("\"\x7f\""),
        TEXT("[]"),
        TEXT("{}"),
        TEXT("[1,2]"),
        TEXT("[[],{}]"),
        TEXT(" \t\r\n[ 1 , 2 ] "),
        TEXT("{\"a\":1,\"b\":{\"a\":2}}"),
        TEXT("{\"\":1}"),
        TEXT("{\"a\":1,\"A\":2}"),
        TEXT("{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,"
             "\"k\":0,\"l\":0,\"m\":0,\"n\":0,\"o\":0}"),
    };
    for (size_t i = 0; i < LENGTH(table); i++) {
        remat_graph *graph = NULL;
        if (read_with(ctx, table[i].bytes, table[i].n, &graph) != REMAT_OK)
            fail_msg("%s: %s", table[i].bytes, remat_ctx_error(ctx));
        remat_graph_free(graph);
    }
}

static void refused(void **state)
{
    remat_ctx *ctx = *state;
    static const text table[] = {
        TEXT(""),
        TEXT("nul"),
        TEXT("nulll"),
        TEXT("True"),
        TEXT("NaN"),
        TEXT("Infinity"),
        TEXT("-Infinity"),
        TEXT("-"),
        TEXT("+1"),
        TEXT("01"),
        TEXT("-01"),
        TEXT(".5"),
        TEXT("5."),
        TEXT("1e"),
        TEXT("1e+"),
        TEXT("0x10"),
        TEXT("1_000"),
        TEXT("1e400"),
        TEXT("-1e400"),
        TEXT("9223372036854775808"),
        TEXT("-9223372036854775809"),
        TEXT("99999999999999999999999999"),
        TEXT("\""),
        TEXT("\"a"),
        TEXT("'a'"),
        TEXT("\"\\\""),
        TEXT("\"\\x\""),
        TEXT("\"\\u12\""),
        TEXT("\"\\u12g4\""),
        TEXT("\"\\ud800\""),
        TEXT("\"\\udc00\""),
        TEXT("\"\\ud800\\u0041\""),
        TEXT("\"\\ud800\\ud800\""),
        TEXT("\"\\u0000\""),
        TEXT("\"\0\""),
        TEXT("\"\n\""),
        TEXT("\"\t\""),
        TEXT("\"\x1f\""),
        TEXT("\"\x80\""),
        TEXT("\"\xff\""),
        TEXT("\"\xc0\x80\""),
        TEXT("\"\xc3\""),
        TEXT("\"\xe0\x80\x80\""),
        TEXT("\"\xed\xa0\x80\""),
        TEXT("\"\xf4\x90\x80\x80\""),
        TEXT("\"\xf0\x80\x80\x80\""),
        TEXT("\"\xf8\x88\x80\x80\x80\""),
        TEXT("["),
        TEXT("]"),
        TEXT("[1"),
        TEXT("[1,"),
        TEXT("[1,]"),
        TEXT("[,1]"),
        TEXT("[1 2]"),
        TEXT("[1,,2]"),
        TEXT("{"),
        TEXT("{\"a\"}"),
        TEXT("{\"a\":}"),
        TEXT("{\"a\":1,}"),
        TEXT("{a:1}"),
        TEXT("{1:1}"),
        TEXT("{\"a\":1 \"b\":2}"),
        TEXT("{\"a\":1,\"a\":2}"),
        TEXT("{\"a\":1,\"\\u0061\":2}"),
        TEXT("[1}"),
        TEXT("{\"a\":1]"),
        TEXT("1 2"),
        TEXT("1 // one"),
        TEXT("/* one */ 1"),
        TEXT("\xef\xbb\xbf"
             "1"),
        TEXT("{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,"
             "\"k\":0,\"l\":0,\"m\":0,\"n\":0,\"a\":0}"),
        TEXT("1}, {\"x\":1"),
    };
    for (size_t i = 0; i < LENGTH(table); i++) {
        remat_graph *graph = NULL;
        const remat_status status = read_with(ctx, table[i].bytes, table[i].n, &graph);
        if (status != REMAT_E_INPUT) fail_msg("%s: status %d", table[i].bytes, (int)status);
        assert_null(graph);
        if (!strstr(remat_ctx_error_place(ctx), "line "))
            fail_msg("%s: no place: %s", table[i].bytes, remat_ctx_error(ctx));
    }
}

static void nesting(void **state)
{
    remat_ctx *ctx = *state;
    static char deep[200001];
    for (size_t n = 100; n <= 100000; n *= 10) {
        memset(deep, '[', n), memset(deep + n, ']', n);
        remat_graph *graph = NULL;
        const remat_status status = read_with(ctx, deep, 2 * n, &graph);
        assert_int_equal(status, n <= 100 ? REMAT_OK : REMAT_E_INPUT);
        remat_graph_free(graph);
    }
}

static void whole_numbers(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *text;
        int64_t size;
    } table[] = {{"8", 8},
                 {"8.0", 8},
                 {"2e3", 2000},
                 {"1.5e1", 15},
                 {"0", 0},
                 {"0.0", 0},
                 {"-0", 0},
                 {"120e-1", 12},
                 {"4.611686018427387903e18", INT64_C(4611686018427387903)},
                 {"8.5", -1},
                 {"1e-1", -1},
                 {"1e19", -1},
                 {"-1.0", -1},
                 {"1e300", -1},
                 {"0.1e1", 1},
                 {"10000000000000000000000e-21", 10}};
    for (size_t i = 0; i < LENGTH(table); i++) {
        char line[300];
        const int n = snprintf(line, sizeof line,
                               "{\"format\":\"remat-graph\",\"version\":1,\"values\":[{\"name\":"
                               "\"e1.5\",\"size\" : %s}],\"nodes\":[]}",
                               table[i].text);
        remat_input *input = NULL;
        remat_graph *graph = NULL;
        OK(ctx, remat_input_parse(ctx, "text", line, (size_t)n, &input));
        const remat_status status = remat_graph_read(ctx, input, &graph);
        /* a whole number may be refused for the way it is written, but never misread */
        if (table[i].size < 0) assert_int_equal(status, REMAT_E_INPUT);
        if (status == REMAT_OK)
            assert_int_equal(remat_graph_value_get(graph, 0, REMAT_VALUE_SIZE), table[i].size);
        else if (!strpbrk(table[i].text, ".e"))
            fail_msg("%s: %s", table[i].text, remat_ctx_error(ctx));
        remat_graph_free(graph), remat_input_free(input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(accepted), WITH_CONTEXT(refused),
                                       WITH_CONTEXT(nesting), WITH_CONTEXT(whole_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
