/* test_builder.c: graphs built by calls: what the accessors give back, and every mistake the
 * builder must refuse. */
#include "support.h"

#include <string.h>

static void what_goes_in_comes_out(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "small");
    const uint32_t x = remat_builder_value(b, "x", 10), y = remat_builder_value(b, "y", 20),
                   z = remat_builder_view(b, NULL, 20, y);
    const uint32_t zz = remat_builder_view(b, "zz", 5, z);
    remat_builder_value_set(b, x, REMAT_VALUE_KIND, REMAT_INPUT);
    remat_builder_value_set(b, y, REMAT_VALUE_STORAGE, 32);
    remat_builder_value_tensor(b, y, "float32", (const int64_t[]){5}, 1);
    const uint32_t f = remat_builder_op(b, "f", LIST(x, x), LIST(y)),
                   g = remat_builder_op(b, "g", LIST(y), LIST(z)),
                   h = remat_builder_op(b, "h", LIST(z), LIST(zz));
    remat_builder_op_set(b, f, REMAT_OP_COST, 7);
    remat_builder_op_set(b, g, REMAT_OP_COST, 0);
    remat_builder_op_set(b, h, REMAT_OP_COST, 0);
    remat_builder_op_set(b, f, REMAT_OP_FLOPS, 99);
    remat_builder_op_set(b, f, REMAT_OP_WORKSPACE, 3);
    remat_builder_op_set(b, f, REMAT_OP_PHASE, REMAT_BACKWARD);
    remat_builder_op_set(b, f, REMAT_OP_CLASS, REMAT_CLASS_FUSIBLE);
    remat_builder_op_set(b, g, REMAT_OP_PINNED, 1);
    remat_builder_op_target(b, f, "aten.mul.Tensor");
    remat_builder_output(b, zz);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));

    assert_string_equal(remat_graph_name(graph), "small");
    assert_int_equal(strncmp(remat_graph_digest(graph), "sha256:", 7), 0);
    assert_int_equal(strlen(remat_graph_digest(graph)), 7 + 64);
    assert_int_equal(remat_graph_n_ops(graph), 3);
    assert_int_equal(remat_graph_n_values(graph), 4);
    assert_string_equal(remat_graph_op_name(graph, f), "f");
    assert_string_equal(remat_graph_op_target(graph, f), "aten.mul.Tensor");
    assert_string_equal(remat_graph_op_name(graph, 3), "");
    assert_string_equal(remat_graph_op_target(graph, REMAT_NONE), "");
    assert_string_equal(remat_graph_value_name(graph, x), "x");
    assert_string_equal(remat_graph_value_name(graph, REMAT_NONE), "");
    assert_int_equal(remat_graph_value_get(graph, x, REMAT_VALUE_KIND), REMAT_INPUT);
    assert_int_equal(remat_graph_value_get(graph, x, REMAT_VALUE_PRODUCER), REMAT_ABSENT);
    assert_int_equal(remat_graph_value_get(graph, x, REMAT_VALUE_ALIAS), REMAT_ABSENT);
    assert_int_equal(remat_graph_value_get(graph, y, REMAT_VALUE_SIZE), 20);
    assert_int_equal(remat_graph_value_get(graph, y, REMAT_VALUE_STORAGE), 32);
    assert_int_equal(remat_graph_value_get(graph, zz, REMAT_VALUE_STORAGE), 32);
    assert_int_equal(remat_graph_value_get(graph, zz, REMAT_VALUE_ROOT), y);
    assert_int_equal(remat_graph_value_get(graph, zz, REMAT_VALUE_PRODUCER), h);
    assert_int_equal(remat_graph_op_get(graph, f, REMAT_OP_COST), 7);
    assert_int_equal(remat_graph_op_get(graph, f, REMAT_OP_FLOPS), 99);
    assert_int_equal(remat_graph_op_get(graph, g, REMAT_OP_FLOPS), REMAT_ABSENT);
    assert_int_equal(remat_graph_op_get(graph, f, REMAT_OP_WORKSPACE), 3);
    assert_int_equal(remat_graph_op_get(graph, f, REMAT_OP_PHASE), REMAT_BACKWARD);
    assert_int_equal(remat_graph_op_get(graph, f, REMAT_OP_CLASS), REMAT_CLASS_FUSIBLE);
    assert_int_equal(remat_graph_op_get(graph, f, REMAT_OP_PINNED), 0);
    assert_int_equal(remat_graph_op_get(graph, g, REMAT_OP_PINNED), 1);
    uint32_t n;
    const uint32_t *in = remat_graph_op_in(graph, f, &n);
    assert_true(n == 2 && in[0] == x && in[1] == x);
    const uint32_t *outputs = remat_graph_outputs(graph, &n);
    assert_true(n == 1 && outputs[0] == zz);
    remat_graph_op_out(graph, 99, &n);
    assert_int_equal(n, 0);

    remat_builder_op(
        b, "more", LIST(zz),
        NOTHING); /* finish again after more additions; the first graph does not change */
    remat_graph *larger = NULL;
    OK(ctx, remat_builder_finish(b, &larger));
    assert_int_equal(remat_graph_n_ops(larger), 4);
    assert_int_equal(remat_graph_n_ops(graph), 3);
    assert_string_not_equal(remat_graph_digest(graph), remat_graph_digest(larger));
    remat_builder_free(b), remat_graph_free(graph), remat_graph_free(larger);
}

/* ---- every setter has a getter ---- */

typedef struct file_bytes {
    char bytes[4000];
    size_t n;
} file_bytes;

static int take_bytes(void *user, const void *bytes, size_t n_bytes)
{
    file_bytes *to = user;
    assert_true(to->n + n_bytes <= sizeof to->bytes);
    memcpy(to->bytes + to->n, bytes, n_bytes);
    to->n += n_bytes;
    return 0;
}

static remat_graph *written_and_read(remat_ctx *ctx, const remat_graph *graph)
{
    file_bytes file = {.n = 0};
    remat_input *input = NULL;
    remat_graph *again = NULL;
    OK(ctx, remat_graph_write(ctx, graph, REMAT_JSON, take_bytes, &file));
    OK(ctx, remat_input_parse(ctx, "again", file.bytes, file.n, &input));
    OK(ctx, remat_graph_read(ctx, input, &again));
    remat_input_free(input);
    return again;
}

typedef struct setting {
    int attr;
    int64_t x;
} setting;

/* Sets everything that can be set to something that is not its default. */
static const setting value_settings[] = {
    {REMAT_VALUE_SIZE, 24}, {REMAT_VALUE_STORAGE, 64}, {REMAT_VALUE_KIND, REMAT_CONST}};
static const setting op_settings[] = {{REMAT_OP_COST, 7},
                                      {REMAT_OP_FLOPS, 99},
                                      {REMAT_OP_WORKSPACE, 3},
                                      {REMAT_OP_PHASE, REMAT_BACKWARD},
                                      {REMAT_OP_CLASS, REMAT_CLASS_RANDOM},
                                      {REMAT_OP_PINNED, 1},
                                      {REMAT_OP_REPLAY, 1},
                                      {REMAT_OP_KERNEL, 5}};
static const int64_t shape[] = {2, 0, 3};

static remat_graph *with_everything(remat_ctx *ctx, bool costs)
{
    remat_builder *b = remat_builder_new(ctx, "all");
    const uint32_t x = remat_builder_value(b, "x", 1), y = remat_builder_value(b, "y", 8),
                   view = remat_builder_view(b, "view", 8, y);
    for (size_t i = 0; i < LENGTH(value_settings); i++)
        remat_builder_value_set(b, x, (remat_value_attr)value_settings[i].attr,
                                value_settings[i].x);
    remat_builder_value_tensor(b, x, "int32", shape, 3);
    remat_builder_value_tensor(b, view, "bfloat16", NULL, 0); /* a scalar */
    const uint32_t f = remat_builder_op(b, "f", LIST(x, x), LIST(y)),
                   g = remat_builder_op(b, "g", LIST(y), LIST(view));
    for (size_t i = 0; i < LENGTH(op_settings); i++)
        remat_builder_op_set(b, f, (remat_op_attr)op_settings[i].attr, op_settings[i].x);
    remat_builder_op_target(b, f, "my.op");
    if (costs) remat_builder_op_set(b, g, REMAT_OP_COST, 0);
    remat_builder_op_set(b, g, REMAT_OP_KERNEL, 1);
    remat_builder_op_set(b, g, REMAT_OP_KERNEL, REMAT_ABSENT); /* and taken back */
    remat_builder_cost_unit(b, "furlong");
    remat_builder_output(b, view);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

static void check_everything(const remat_graph *graph, bool costs)
{
    uint32_t n;
    for (size_t i = 0; i < LENGTH(value_settings); i++)
        assert_int_equal(remat_graph_value_get(graph, 0, (remat_value_attr)value_settings[i].attr),
                         value_settings[i].x);
    for (size_t i = costs ? 0 : 1; i < LENGTH(op_settings); i++)
        assert_int_equal(remat_graph_op_get(graph, 0, (remat_op_attr)op_settings[i].attr),
                         op_settings[i].x);
    assert_int_equal(remat_graph_op_get(graph, 0, REMAT_OP_GIVEN_COST), 7);
    assert_int_equal(remat_graph_op_get(graph, 1, REMAT_OP_GIVEN_COST), costs ? 0 : REMAT_ABSENT);
    assert_int_equal(remat_graph_op_get(graph, 1, REMAT_OP_KERNEL), REMAT_ABSENT);
    assert_int_equal(remat_graph_op_get(graph, 2, REMAT_OP_KERNEL), REMAT_ABSENT);
    assert_string_equal(remat_graph_cost_unit(graph), costs ? "furlong" : "ns");
    assert_string_equal(remat_graph_cost_model(graph), costs ? "given" : "roofline:h100");
    assert_string_equal(remat_graph_name(graph), "all");
    assert_string_equal(remat_graph_op_name(graph, 1), "g");
    assert_string_equal(remat_graph_op_target(graph, 0), "my.op");
    assert_string_equal(remat_graph_value_name(graph, 2), "view");
    assert_string_equal(remat_graph_value_dtype(graph, 0), "int32");
    assert_string_equal(remat_graph_value_dtype(graph, 1), "");
    assert_string_equal(remat_graph_value_dtype(graph, 2), "bfloat16");
    assert_string_equal(remat_graph_value_dtype(graph, 3), "");
    const int64_t *dims = remat_graph_value_shape(graph, 0, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(dims, shape, sizeof shape);
    for (uint32_t v = 1; v < 4; v++) {
        remat_graph_value_shape(graph, v, &n);
        assert_int_equal(n, 0);
    }
    assert_int_equal(remat_graph_value_get(graph, 2, REMAT_VALUE_ALIAS), 1);
    const uint32_t *in = remat_graph_op_in(graph, 0, &n);
    assert_true(n == 2 && in[0] == 0 && in[1] == 0);
    const uint32_t *out = remat_graph_op_out(graph, 1, &n);
    assert_true(n == 1 && out[0] == 2);
    const uint32_t *outputs = remat_graph_outputs(graph, &n);
    assert_true(n == 1 && outputs[0] == 2);
}

static void every_setter_has_a_getter(void **state)
{
    remat_ctx *ctx = *state;
    for (int costs = 0; costs < 2; costs++) { /* without all of them a cost model gives them */
        remat_graph *graph = with_everything(ctx, costs), *again = written_and_read(ctx, graph);
        check_everything(graph, costs);
        check_everything(again, costs);
        assert_string_equal(remat_graph_digest(graph), remat_graph_digest(again));
        remat_graph_free(graph), remat_graph_free(again);
    }
}

static void digest_is_of_structure(void **state)
{
    remat_ctx *ctx = *state;
    char digest[4][80];
    for (int i = 0; i < 4;
         i++) { /* 0: plain; 1: other names and costs; 2: other size; 3: other workspace */
        remat_builder *b = remat_builder_new(ctx, i == 1 ? "other" : "one");
        const uint32_t y = remat_builder_value(b, i == 1 ? "q" : "y", i == 2 ? 21 : 20);
        const uint32_t f = remat_builder_op(b, i == 1 ? "p" : "f", NOTHING, LIST(y));
        if (i == 1) remat_builder_op_set(b, f, REMAT_OP_COST, 55);
        if (i == 3) remat_builder_op_set(b, f, REMAT_OP_WORKSPACE, 1);
        remat_graph *graph = NULL;
        OK(ctx, remat_builder_finish(b, &graph));
        strcpy(digest[i], remat_graph_digest(graph));
        remat_builder_free(b), remat_graph_free(graph);
    }
    assert_string_equal(digest[0], digest[1]);
    assert_string_not_equal(digest[0], digest[2]);
    assert_string_not_equal(digest[0], digest[3]);
}

static void empty(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, NULL);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    assert_string_equal(remat_graph_name(graph), "");
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    assert_int_equal(info.keep_all_peak_bytes, 0);
    assert_int_equal(info.need_op, REMAT_NONE);
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx, remat_verify(ctx, graph, NULL, 0, 0, &verdict));
    assert_true(verdict.valid);
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_make(ctx, graph, "keep-all", 0, &plan));
    assert_int_equal(remat_plan_status(plan), REMAT_OK);
    remat_program *program = NULL;
    OK(ctx, remat_lower(ctx, graph, NULL, 0, &program));
    remat_program_free(program), remat_plan_free(plan), remat_builder_free(b),
        remat_graph_free(graph);
}

/* ---- mistakes: each starts from a good builder with values x (resident), y and one op f: x -> y
 * ---- */

typedef void mistake(remat_builder *b);
static void negative_size(remat_builder *b) { remat_builder_value(b, "v", -1); }
static void negative_storage(remat_builder *b)
{
    remat_builder_value_set(b, 1, REMAT_VALUE_STORAGE, -2);
}
static void negative_cost(remat_builder *b) { remat_builder_op_set(b, 0, REMAT_OP_COST, -2); }
static void negative_workspace(remat_builder *b)
{
    remat_builder_op_set(b, 0, REMAT_OP_WORKSPACE, -2);
}
static void unknown_input(remat_builder *b) { remat_builder_op(b, "g", LIST(17), NOTHING); }
static void unknown_output_value(remat_builder *b) { remat_builder_op(b, "g", NOTHING, LIST(17)); }
static void unknown_graph_output(remat_builder *b) { remat_builder_output(b, 17); }
static void two_producers(remat_builder *b) { remat_builder_op(b, "g", NOTHING, LIST(1)); }
static void one_op_twice(remat_builder *b)
{
    const uint32_t v = remat_builder_value(b, "v", 1);
    remat_builder_op(b, "g", NOTHING, LIST(v, v));
}
static void forward_reference(remat_builder *b)
{
    const uint32_t v = remat_builder_value(b, "v", 1);
    remat_builder_op(b, "g", LIST(v), NOTHING);
    remat_builder_op(b, "h", NOTHING, LIST(v));
}
static void reads_itself(remat_builder *b)
{
    const uint32_t v = remat_builder_value(b, "v", 1);
    remat_builder_op(b, "g", LIST(v), LIST(v));
}
static void alias_of_later(remat_builder *b)
{
    const uint32_t v = remat_builder_view(b, "v", 1, 3), w = remat_builder_value(b, "w", 1);
    remat_builder_op(b, "g", LIST(w), LIST(v));
}
static void alias_of_itself(remat_builder *b)
{
    const uint32_t v = remat_builder_view(b, "v", 1, 2);
    remat_builder_op(b, "g", LIST(1), LIST(v));
}
static void alias_without_source(remat_builder *b)
{
    const uint32_t v = remat_builder_view(b, "v", 1, 1);
    remat_builder_op(b, "g", LIST(0), LIST(v));
}
static void resident_alias_of_made(remat_builder *b) { remat_builder_view(b, "v", 1, 1); }
static void alias_with_storage(remat_builder *b)
{
    const uint32_t v = remat_builder_view(b, "v", 1, 1);
    remat_builder_value_set(b, v, REMAT_VALUE_STORAGE, 4);
    remat_builder_op(b, "g", LIST(1), LIST(v));
}
static void shape_of_alias(remat_builder *b)
{
    const uint32_t v = remat_builder_view(b, "v", 1, 1);
    remat_builder_value_tensor(b, v, "int8", (const int64_t[]){3, -1}, 2);
    remat_builder_op(b, "g", LIST(1), LIST(v));
}
static void shape_is_huge(remat_builder *b)
{
    remat_builder_value_tensor(b, 0, "int8", (const int64_t[]){(int64_t)1 << 62}, 1);
}
static void sizes_add_up(remat_builder *b)
{
    remat_builder_value(b, "v", (int64_t)1 << 61);
    remat_builder_value(b, "w", (int64_t)1 << 61);
}
static void one_size_is_huge(remat_builder *b) { remat_builder_value(b, "v", INT64_MAX); }
static void costs_add_up(remat_builder *b)
{
    remat_builder_op_set(b, 0, REMAT_OP_COST, (int64_t)1 << 61);
    remat_builder_op_set(b, remat_builder_op(b, "g", NOTHING, NOTHING), REMAT_OP_COST,
                         (int64_t)1 << 61);
}
static void set_what_is_not_there(remat_builder *b)
{
    remat_builder_value_set(b, 17, REMAT_VALUE_SIZE, 1);
}
static void set_read_only(remat_builder *b)
{
    remat_builder_value_set(b, 1, REMAT_VALUE_PRODUCER, 0);
}
static void bad_kind(remat_builder *b) { remat_builder_value_set(b, 1, REMAT_VALUE_KIND, 9); }
static void bad_phase(remat_builder *b) { remat_builder_op_set(b, 0, REMAT_OP_PHASE, 3); }
static void bad_kernel(remat_builder *b)
{
    remat_builder_op_set(b, 0, REMAT_OP_KERNEL, REMAT_NONE);
}
static void set_given_cost(remat_builder *b) { remat_builder_op_set(b, 0, REMAT_OP_GIVEN_COST, 1); }
static void set_no_attribute(remat_builder *b) { remat_builder_op_set(b, 0, (remat_op_attr)-1, 1); }
static void bad_pin(remat_builder *b) { remat_builder_op_set(b, 0, REMAT_OP_PINNED, 2); }
static void bad_op(remat_builder *b) { remat_builder_op_set(b, 9, REMAT_OP_COST, 2); }
static void bad_target(remat_builder *b) { remat_builder_op_target(b, 9, "x"); }
/* g reads y and makes z, of as many bytes, and may do so in place; all but what the caller spoils.
 */
static uint32_t in_place(remat_builder *b, uint32_t input)
{
    const uint32_t z = remat_builder_value(b, "z", 1);
    const uint32_t g = remat_builder_op(b, "g", LIST(input, 1), LIST(z));
    remat_builder_op_inplace(b, g, 0, 0);
    return g;
}
static void in_place_no_op(remat_builder *b) { remat_builder_op_inplace(b, 9, 0, 0); }
static void in_place_no_output(remat_builder *b)
{
    remat_builder_op_inplace(b, in_place(b, 1), 1, 1);
}
static void in_place_no_input(remat_builder *b)
{
    const uint32_t g = remat_builder_op(b, "g", LIST(1), LIST(remat_builder_value(b, "z", 1)));
    remat_builder_op_inplace(b, g, 0, 1);
}
static void in_place_of_resident(remat_builder *b) { in_place(b, 0); }
static void in_place_output_twice(remat_builder *b)
{
    remat_builder_op_inplace(b, in_place(b, 1), 0, 1);
}
static void in_place_input_twice(remat_builder *b)
{
    const uint32_t p = remat_builder_value(b, "p", 1), q = remat_builder_value(b, "q", 1);
    const uint32_t g = remat_builder_op(b, "g", LIST(1), LIST(p, q));
    remat_builder_op_inplace(b, g, 0, 0);
    remat_builder_op_inplace(b, g, 1, 0);
}
static void in_place_other_size(remat_builder *b)
{
    in_place(b, 1);
    remat_builder_value_set(b, 2, REMAT_VALUE_STORAGE, 2); /* that of z */
}
static void in_place_alias(remat_builder *b)
{
    const uint32_t v = remat_builder_view(b, "v", 1, 1);
    remat_builder_op_inplace(b, remat_builder_op(b, "g", LIST(1), LIST(v)), 0, 0);
}
static void in_place_of_what_is_viewed(remat_builder *b)
{
    const uint32_t z = remat_builder_value(b, "z", 1), v = remat_builder_view(b, "v", 1, 1);
    remat_builder_op_inplace(b, remat_builder_op(b, "g", LIST(1), LIST(z, v)), 0, 0);
}
static void bad_tensor(remat_builder *b) { remat_builder_value_tensor(b, 9, "int8", NULL, 0); }

static void mistakes(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *name;
        mistake *make;
    } table[] = {
#define ROW(name) {#name, name}
        ROW(negative_size),
        ROW(negative_storage),
        ROW(negative_cost),
        ROW(negative_workspace),
        ROW(unknown_input),
        ROW(unknown_output_value),
        ROW(unknown_graph_output),
        ROW(two_producers),
        ROW(one_op_twice),
        ROW(forward_reference),
        ROW(reads_itself),
        ROW(alias_of_later),
        ROW(alias_of_itself),
        ROW(alias_without_source),
        ROW(resident_alias_of_made),
        ROW(alias_with_storage),
        ROW(shape_of_alias),
        ROW(shape_is_huge),
        ROW(sizes_add_up),
        ROW(one_size_is_huge),
        ROW(costs_add_up),
        ROW(set_what_is_not_there),
        ROW(set_read_only),
        ROW(bad_kind),
        ROW(bad_phase),
        ROW(bad_kernel),
        ROW(set_given_cost),
        ROW(set_no_attribute),
        ROW(bad_pin),
        ROW(bad_op),
        ROW(bad_target),
        ROW(bad_tensor),
        ROW(in_place_no_op),
        ROW(in_place_no_output),
        ROW(in_place_no_input),
        ROW(in_place_of_resident),
        ROW(in_place_output_twice),
        ROW(in_place_input_twice),
        ROW(in_place_other_size),
        ROW(in_place_alias),
        ROW(in_place_of_what_is_viewed),
#undef ROW
    };
    for (size_t i = 0; i < LENGTH(table); i++) {
        remat_builder *b = remat_builder_new(ctx, "mistakes");
        const uint32_t x = remat_builder_value(b, "x", 1), y = remat_builder_value(b, "y", 1);
        remat_builder_op(b, "f", LIST(x), LIST(y));
        table[i].make(b);
        remat_graph *graph = NULL;
        const remat_status status = remat_builder_finish(b, &graph);
        if (status != REMAT_E_INPUT && status != REMAT_E_USAGE)
            fail_msg("%s: status %d", table[i].name, (int)status);
        assert_null(graph);
        assert_true(*remat_ctx_error(ctx) != '\0');
        remat_builder_free(b);
    }
}

/* Pairs are part of the digest, come back, and live through whatever does not touch them. */
static void pairs_stay(void **state)
{
    remat_ctx *ctx = *state;
    char digest[3][80];
    for (uint32_t i = 0; i < 3; i++) { /* 0: none; 1: of the first input; 2: of the second */
        remat_builder *b = remat_builder_new(ctx, "pairs");
        const uint32_t x = remat_builder_value(b, "x", 8), y = remat_builder_value(b, "y", 8),
                       v = remat_builder_view(b, "v", i == 2 ? 4 : 8, y),
                       z = remat_builder_value(b, "z", 8);
        remat_builder_op(b, "X", NOTHING, LIST(x));
        remat_builder_op(b, "Y", NOTHING, LIST(y));
        remat_builder_op(b, "V", LIST(y), LIST(v));
        const uint32_t f = remat_builder_op(b, "F", LIST(x, v), LIST(z));
        if (i > 0) remat_builder_op_inplace(b, f, 0, i - 1);
        remat_builder_output(b, z);
        remat_graph *graph = NULL, *apart = NULL;
        OK(ctx, remat_builder_finish(b, &graph));
        strcpy(digest[i], remat_graph_digest(graph));
        assert_int_equal(remat_graph_op_inplace(graph, f, 0), i ? i - 1 : REMAT_NONE);
        assert_int_equal(remat_graph_op_inplace(graph, f, 1), REMAT_NONE);
        assert_int_equal(remat_graph_op_inplace(graph, 9, 0), REMAT_NONE);
        /* As a storage of its own the view has another size in the end: then it cannot be taken. */
        OK(ctx, remat_graph_prepare(ctx, graph, REMAT_NO_ALIAS | REMAT_DCE, NULL, &apart));
        assert_int_equal(remat_graph_op_inplace(apart, f, 0), i == 1 ? 0 : REMAT_NONE);
        remat_graph_free(apart), remat_graph_free(graph), remat_builder_free(b);
    }
    assert_string_not_equal(digest[0], digest[1]);
    assert_string_not_equal(digest[0], digest[2]);
    assert_string_not_equal(digest[1], digest[2]);
}

static void first_mistake_is_kept(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "first");
    remat_builder_op_set(b, 5, REMAT_OP_COST, 1);
    char first[640];
    strcpy(first, remat_ctx_error(ctx));
    remat_builder_value_set(b, 77, REMAT_VALUE_SIZE, 1);
    remat_graph *graph = NULL;
    FAILS(ctx, REMAT_E_USAGE, remat_builder_finish(b, &graph));
    assert_string_equal(remat_ctx_error(ctx), first);
    remat_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(what_goes_in_comes_out),
                                       WITH_CONTEXT(every_setter_has_a_getter),
                                       WITH_CONTEXT(digest_is_of_structure),
                                       WITH_CONTEXT(empty),
                                       WITH_CONTEXT(pairs_stay),
                                       WITH_CONTEXT(mistakes),
                                       WITH_CONTEXT(first_mistake_is_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
