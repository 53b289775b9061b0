/* test_answers.c: structs that the caller allocates and the library fills: of every size that an
 * older or a newer header may have given them, and of none. */
#include "support.h"

#include <string.h>

typedef struct scene {
    remat_ctx *ctx;
    remat_graph *graph;
    remat_plan *plan;
    remat_chain *chain;
    remat_plan *chain_plan;
} scene;

/* Each asks the library for one kind of answer. */
typedef remat_status question(const scene *s, void *out);

static remat_status info(const scene *s, void *out)
{
    return remat_graph_info(s->ctx, s->graph, out);
}
static remat_status verdict_of_steps(const scene *s, void *out)
{
    size_t n;
    const remat_step *steps = remat_plan_steps(s->plan, &n);
    return remat_verify(s->ctx, s->graph, steps, n, 0, out);
}
static remat_status verdict_of_plan(const scene *s, void *out)
{
    return remat_plan_verify(s->ctx, s->graph, s->plan, out);
}
static remat_status verdict_of_bound(const scene *s, void *out)
{
    return remat_plan_verify_bound(s->ctx, s->graph, s->plan, out);
}
static remat_status verdict_of_chain(const scene *s, void *out)
{
    size_t n;
    const remat_step *steps = remat_plan_steps(s->chain_plan, &n);
    return remat_chain_verify(s->ctx, s->chain, steps, n, out);
}
static remat_status verdict_of_chain_plan(const scene *s, void *out)
{
    return remat_chain_plan_verify(s->ctx, s->chain, s->chain_plan, out);
}
static remat_status bound(const scene *s, void *out)
{
    return remat_bound_find(s->ctx, s->graph, 1, out); /* nothing fits: many members say why */
}
static remat_status solver(const scene *s, void *out) { return remat_solver_find(s->ctx, out); }
static remat_status fusion(const scene *s, void *out)
{
    size_t n;
    remat_graph *program = NULL;
    const remat_step *steps = remat_plan_steps(s->plan, &n);
    const remat_status status = remat_fuse(s->ctx, s->graph, steps, n, out, &program);
    assert_int_equal(program != NULL, status == REMAT_OK);
    remat_graph_free(program);
    return status;
}

typedef struct member { /* compared one by one: what lies between them may be anything */
    size_t offset, size;
} member;
#define OF(type, name) {offsetof(type, name), sizeof(((type *)NULL)->name)}
#define INFO(name) OF(remat_info, name)
#define VERDICT(name) OF(remat_verdict, name)
#define BOUND(name) OF(remat_bound, name)
#define FUSION(name) OF(remat_fusion, name)
static const member info_members[] = {INFO(ops),
                                      INFO(values),
                                      INFO(storages),
                                      INFO(views),
                                      INFO(multi_output),
                                      INFO(pinned),
                                      INFO(dead),
                                      INFO(cut_values),
                                      INFO(resident_bytes),
                                      INFO(keep_all_cost),
                                      INFO(need_bytes),
                                      INFO(keep_all_peak_bytes),
                                      INFO(need_op),
                                      INFO(keep_all_peak_step)};
static const member verdict_members[] = {
    VERDICT(valid),     VERDICT(peak_bytes), VERDICT(cost),           VERDICT(host_bytes),
    VERDICT(peak_step), VERDICT(peak_op),    VERDICT(first_bad_step), VERDICT(reason)};
static const member bound_members[] = {
    BOUND(status),        BOUND(budget_bytes), BOUND(cost),  BOUND(keep_all_cost),
    BOUND(need_bytes),    BOUND(need_op),      BOUND(scope), BOUND(need_values),
    BOUND(n_need_values), BOUND(method),       BOUND(rules)};
static const member solver_members[] = {OF(remat_solver, version), OF(remat_solver, where)};
static const member fusion_members[] = {FUSION(unfused.total_bytes),
                                        FUSION(before.total_bytes),
                                        FUSION(after.total_bytes),
                                        FUSION(unfused.kernels),
                                        FUSION(before.others),
                                        FUSION(after.n_kernels),
                                        FUSION(rounds),
                                        FUSION(copies),
                                        FUSION(stopped)};

#define ROW(name, ask, type, members) {name, ask, sizeof(type), members, LENGTH(members)}
static const struct {
    const char *name;
    question *ask;
    size_t size;
    const member *members;
    size_t n_members;
} questions[] = {
    ROW("info", info, remat_info, info_members),
    ROW("verdict of steps", verdict_of_steps, remat_verdict, verdict_members),
    ROW("verdict of a plan", verdict_of_plan, remat_verdict, verdict_members),
    ROW("verdict of a bound", verdict_of_bound, remat_verdict, verdict_members),
    ROW("verdict of a chain", verdict_of_chain, remat_verdict, verdict_members),
    ROW("verdict of a chain's plan", verdict_of_chain_plan, remat_verdict, verdict_members),
    ROW("bound", bound, remat_bound, bound_members),
    ROW("solver", solver, remat_solver, solver_members),
    ROW("fusion", fusion, remat_fusion, fusion_members)};

enum { ROOM = 2048, GUARD = 0xa5 };
typedef union answer {
    size_t size;
    unsigned char bytes[ROOM];
} answer;

static answer asked(const scene *s, question *ask, size_t size, remat_status expected)
{
    answer a;
    memset(&a, GUARD, sizeof a);
    a.size = size;
    const remat_status status = ask(s, &a);
    if (status != expected)
        fail_msg("size %zu: status %d: %s", size, (int)status, remat_ctx_error(s->ctx));
    assert_int_equal(a.size, size); /* it is the caller's, whatever ours is */
    return a;
}

static bool is_guarded(const answer *a, size_t from)
{
    for (size_t i = from; i < ROOM; i++)
        if (a->bytes[i] != GUARD) return false;
    return true;
}

/* Members that lie within `size` bytes are the same in both. */
static void compare(size_t row, const answer *a, const answer *full, size_t size)
{
    for (size_t i = 0; i < questions[row].n_members; i++) {
        const member m = questions[row].members[i];
        if (m.offset + m.size <= size &&
            memcmp(a->bytes + m.offset, full->bytes + m.offset, m.size) != 0)
            fail_msg("%s of %zu bytes: member %zu", questions[row].name, size, i);
    }
}

static void every_size(void **state)
{
    scene s = {.ctx = *state};
    OK(s.ctx, remat_graph_load(s.ctx, "zoo:resnet18", &s.graph));
    OK(s.ctx, remat_plan_make(s.ctx, s.graph, "chen-sqrt", REMAT_BUDGET_NONE, &s.plan));
    OK(s.ctx, remat_chain_of_graph(s.ctx, s.graph, &s.chain));
    OK(s.ctx, remat_chain_plan(s.ctx, s.chain, "chen-sqrt", REMAT_BUDGET_NONE, &s.chain_plan));
    for (size_t i = 0; i < LENGTH(questions); i++) {
        question *ask = questions[i].ask;
        const size_t whole = questions[i].size, word = sizeof(size_t);
        const answer full = asked(&s, ask, whole, REMAT_OK);
        assert_true(is_guarded(&full, whole) && !is_guarded(&full, word));
        for (size_t size = 2 * word; size <= whole; size += word) { /* an older header's */
            const answer a = asked(&s, ask, size, REMAT_OK);
            compare(i, &a, &full, size);
            if (!is_guarded(&a, size)) fail_msg("%s: written behind %zu", questions[i].name, size);
        }
        const answer newer = asked(&s, ask, whole + 40, REMAT_OK);
        compare(i, &newer, &full, whole);
        assert_true(is_guarded(&newer, whole));
        const size_t nonsense[] = {0, 1, word, whole - 1, 4097, SIZE_MAX, SIZE_MAX - word + 1};
        for (size_t k = 0; k < LENGTH(nonsense); k++) {
            const answer a = asked(&s, ask, nonsense[k], REMAT_E_USAGE);
            assert_true(is_guarded(&a, word));
            assert_non_null(strstr(remat_ctx_error(s.ctx), ".size is"));
        }
    }
    remat_plan_free(s.plan), remat_plan_free(s.chain_plan);
    remat_chain_free(s.chain), remat_graph_free(s.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(every_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
