/* args.c: the flag table and the parser.
 *
 * Problem: GNU style flags (`--flag value`, `--flag=value`, `-o value`; `--` ends them). Each is
 * valid for some commands. A mistake is answered by one line and the nearest right word. Method:
 * one table. The library's own options that no row sets are flags too (`--max-input-bytes=N`),
 * found by name.
 *
 * Invariants:
 *   - A value is the next word whatever it looks like, unless it starts with "--".
 *   - Of a repeated flag the last one counts.
 *   - Nothing is read or written before the whole line is understood. */
#include "args.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ON(name) (1u << CMD_##name)
#define PLANS (ON(PLAN) | ON(COMPARE) | ON(CURVE) | ON(REPORT) | ON(MAXBATCH))
/* Commands that read a file. */
#define FILES (PLANS | ON(BOUND) | ON(INFO) | ON(VERIFY) | ON(FUSE) | ON(LOWER) | ON(IMPORT))
#define GRAPHS (FILES | ON(GEN))
#define ALL ((1u << CMD_COUNT) - 1)

const flag flags[FLAG_COUNT] = {
    [FLAG_BUDGET] = {"budget", 0, TEXT, "B", NULL, COMPLETE_BUDGET,
                     ON(PLAN) | ON(BOUND) | ON(COMPARE) | ON(REPORT) | ON(MAXBATCH) | ON(IMPORT),
                     "most bytes at any step, resident included: 12GiB (or 12G), 900MB, 50% (of "
                     "keep-all), min, "
                     "1e9"},
    [FLAG_LIMIT] = {"budget", 0, TEXT, "B", NULL, COMPLETE_NONE, ON(VERIFY),
                    "a peak above this is invalid: 12GiB, 900MB, 50% (of keep-all), 4096"},
    [FLAG_PROVED] = {"bound", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ON(VERIFY),
                     "the plan's bound must be proved too"},
    [FLAG_STRATEGY] = {"strategy", 0, TEXT, "S", NULL, COMPLETE_STRATEGY, PLANS,
                       "how to plan; compare, curve, report and maxbatch take a list: a,b"},
    [FLAG_SAVED] = {"saved", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ON(COMPARE),
                    "show what is saved and its traffic; without --strategy: keep-all, "
                    "save-inputs, save-layers, mincut"},
    [FLAG_CLASSES] = {"classes", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ON(INFO),
                      "show the class of every op, and which ops mincut never runs again, and why"},
    [FLAG_CLASS] = {"class", 0, TEXT, "LIST", NULL, COMPLETE_NONE, PLANS | ON(INFO),
                    "classes of ops by name, above the file's, as a list: aten.cat=fusible"},
    [FLAG_MAX_OVERHEAD] = {"max-overhead", 0, TEXT, "X", NULL, COMPLETE_OVERHEAD, ON(MAXBATCH),
                           "most that recomputation may add to keep-all's cost: 20 or 20%, or "
                           "one-extra-forward (default: no limit)"},
    [FLAG_CERTIFY] = {"certify", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ON(MAXBATCH),
                      "find the least batch that the bound refuses, too"},
    [FLAG_MPS] = {"mps", 0, TEXT, "FILE", NULL, COMPLETE_FILE, ON(PLAN),
                  "do not plan: write the program that checkmate solves to FILE, for any solver; - "
                  "is standard output"},
    [FLAG_MPS_SOLUTION] = {"mps-solution", 0, TEXT, "FILE", NULL, COMPLETE_FILE, ON(IMPORT),
                           "make the plan that another solver's solution of that program means"},
    [FLAG_MIP_GAP] =
        {"mip-gap", 0, SHARE, "X", "mip_gap", COMPLETE_NONE, PLANS,
         "checkmate: stop within that share of the optimum, 0.001 (default 0: proved optimal)"},
    [FLAG_PLAIN] =
        {"checkmate-plain", 0, SWITCH, NULL, "checkmate_plain", COMPLETE_NONE, PLANS | ON(IMPORT),
         "checkmate: the program as it was published, not presolved, and without a start"},
    [FLAG_CURVE] = {"curve", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ON(REPORT),
                    "plans at several budgets, too: what each budget costs"},
    [FLAG_POINTS] = {"points", 0, INTEGER, "N", NULL, COMPLETE_NONE, ON(CURVE) | ON(REPORT),
                     "how many budgets, 2 to 1000 (default 12; report: 8)"},
    [FLAG_FROM] = {"from", 0, TEXT, "P", NULL, COMPLETE_BUDGET, ON(CURVE) | ON(REPORT),
                   "first budget, as in plan: 30% (of keep-all), 8GiB, min (default: min)"},
    [FLAG_TO] = {"to", 0, TEXT, "P", NULL, COMPLETE_BUDGET, ON(CURVE) | ON(REPORT),
                 "last budget, as in plan: 80% (of keep-all), 8GiB (default: 100%)"},
    [FLAG_TIME] = {"time", 0, SECONDS, "T", "time_ms", COMPLETE_NONE,
                   PLANS | ON(FUSE) | ON(LOWER) | ON(PLACE),
                   "stop planning after T seconds: 2.5, 1s, 500ms, 2m"},
    [FLAG_WORK] =
        {"work", 0, INTEGER, "W", "work", COMPLETE_NONE, PLANS | ON(FUSE) | ON(LOWER) | ON(PLACE),
         "work limit: reproducible, unlike --time (default: 1 second's worth; placing: 2)"},
    [FLAG_SEED] = {"seed", 0, INTEGER, "K", "seed", COMPLETE_NONE, PLANS | ON(LOWER) | ON(PLACE),
                   "seed of random choices (default 0)"},
    [FLAG_OFFLOAD] = {"offload", 0, TEXT, "RATE", NULL, COMPLETE_NONE, PLANS & ~ON(MAXBATCH),
                      "values may be offloaded and fetched back, at RATE: 50GB/s (costs in ns), or "
                      "50GB per 1e9 cost units"},
    [FLAG_ORDER_ONLY] =
        {"order-only", 0, SWITCH, NULL, "order_only", COMPLETE_NONE, PLANS,
         "nothing is recomputed, only the order changes; without a budget the lowest peak "
         "wins"},
    [FLAG_LIST] = {"list", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ON(GEN),
                   "list the models and their parameters"},
    [FLAG_CHAIN] = {"chain", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ON(INFO) | ON(IMPORT),
                    "cut a training graph into its chain of stages first"},
    [FLAG_FORMAT] = {"format", 0, TEXT, "F", NULL, COMPLETE_FORMAT, ON(GEN) | ON(IMPORT),
                     "json or dot (default: by the ending of FILE, else json)"},
    [FLAG_PROGRAM] =
        {"format", 0, TEXT, "F", NULL, COMPLETE_PROGRAM, ON(LOWER),
         "plan: statements (default); graph: a graph with a node for every step; c: a C function; "
         "csv: spans and offsets; remat-plan: a plan file with offsets"},
    [FLAG_PLACE] = {"place", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ON(LOWER) | ON(REPORT),
                    "give every storage and workspace an offset in one arena"},
    [FLAG_ALIGN] = {"align", 0, INTEGER, "N", NULL, COMPLETE_NONE,
                    (PLANS & ~ON(MAXBATCH)) | ON(BOUND) | ON(INFO) | ON(LOWER),
                    "round sizes up to multiples of N bytes, a power of two, so that a placement "
                    "can be aligned (default 1; lower: that of the plan)"},
    [FLAG_SVG] = {"svg", 0, TEXT, "FILE", NULL, COMPLETE_FILE,
                  ON(PLAN) | ON(COMPARE) | ON(CURVE) | ON(LOWER),
                  "draw a picture, too: memory before and after (plan), overheads and what is "
                  "proved (compare, curve), the placement (lower); - is standard output"},
    [FLAG_CAPACITY] = {"capacity", 0, TEXT, "N", NULL, COMPLETE_NONE, ON(PLACE),
                       "bytes that must be enough: 1048576, 1MiB (default: as few as possible)"},
    [FLAG_OUTPUT] = {"output", 'o', TEXT, "FILE", NULL, COMPLETE_FILE,
                     ON(PLAN) | ON(REPORT) | ON(FUSE) | ON(LOWER) | ON(PLACE) | ON(GEN) |
                         ON(IMPORT),
                     "write the result to FILE, gzip if it ends in .gz; - is standard output"},
    [FLAG_COST_MODEL] = {"cost-model", 0, TEXT, "C", NULL, COMPLETE_COST, GRAPHS & ~ON(LOWER),
                         "costs of ops: given, unit, node, flops, roofline:DEVICE, "
                         "fused:DEVICE; see remat help " COST_MODELS_TOPIC},
    [FLAG_DCE] = {"dce", 0, SWITCH, NULL, NULL, COMPLETE_NONE, GRAPHS,
                  "drop ops that reach no output"},
    [FLAG_FOLD_IDENTITY] = {"fold-identity", 0, SWITCH, NULL, NULL, COMPLETE_NONE, GRAPHS,
                            "fold detach, alias and lift_fresh"},
    [FLAG_NO_ALIAS] = {"no-alias", 0, SWITCH, NULL, NULL, COMPLETE_NONE, GRAPHS,
                       "give every view a storage of its own"},
    [FLAG_REPLAY_RANDOM] = {"replay-random", 0, SWITCH, NULL, NULL, COMPLETE_NONE, GRAPHS,
                            "random ops may run again: their generator is replayed"},
    [FLAG_FUSE] = {"fuse", 0, SWITCH, NULL, NULL, COMPLETE_NONE, GRAPHS & ~ON(FUSE),
                   "kernels of fused ops become the ops: what stays inside one takes no memory"},
    [FLAG_INPLACE] = {"inplace", 0, SWITCH, NULL, NULL, COMPLETE_NONE, GRAPHS,
                      "elementwise ops may write over an input that nobody needs any more"},
    [FLAG_CSV] = {"csv", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ON(COMPARE) | ON(CURVE),
                  "print comma separated values"},
    [FLAG_JSON] = {"json", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ALL & ~(ON(COMPLETION) | ON(HELP)),
                   "print JSON, errors too"},
    [FLAG_HELP] = {"help", 'h', SWITCH, NULL, NULL, COMPLETE_NONE, ALL,
                   "print what most people need"},
    [FLAG_HELP_ALL] = {"help-all", 0, SWITCH, NULL, NULL, COMPLETE_NONE, ALL,
                       "print the options of experts, too"},
};

/* ---- the nearest word ---- */

enum { LONGEST_GUESS = 31 };

/* A swap of neighbours counts as one edit. */
static unsigned edit_distance(const char *a, const char *b)
{
    assert(strlen(a) <= LONGEST_GUESS && strlen(b) <= LONGEST_GUESS);
    const size_t n = strlen(a), m = strlen(b);
    unsigned row[3][LONGEST_GUESS + 1];
    for (unsigned k = 0; k <= m; k++) row[0][k] = k;
    for (size_t i = 1; i <= n; i++) {
        unsigned *now = row[i % 3], *before = row[(i - 1) % 3], *two_before = row[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t k = 1; k <= m; k++) {
            unsigned best = before[k - 1] + (a[i - 1] != b[k - 1]);
            if (before[k] + 1 < best) best = before[k] + 1;
            if (now[k - 1] + 1 < best) best = now[k - 1] + 1;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                two_before[k - 2] + 1 < best)
                best = two_before[k - 2] + 1;
            now[k] = best;
        }
    }
    return row[n % 3][m];
}

void guess_offer(guess *g, const char *candidate)
{
    const size_t length = strlen(g->word);
    if (length < 2 || length > LONGEST_GUESS || strlen(candidate) > LONGEST_GUESS) return;
    const unsigned distance =
        strncmp(g->word, candidate, length) == 0 ? 1 : edit_distance(g->word, candidate);
    if (distance > 1 + length / 4 || (g->best && distance >= g->distance)) return;
    g->best = candidate;
    g->distance = distance;
}

label guess_hint(const guess *g, const char *prefix)
{
    label result = {""};
    if (g->best)
        snprintf(result.text, sizeof result.text, ": did you mean '%s%s'?", prefix, g->best);
    return result;
}

/* ---- values ---- */

bool args_number(const char *text, int64_t *result)
{
    char *end;
    if (!((*text >= '0' && *text <= '9') || (*text == '-' && text[1] >= '0' && text[1] <= '9')))
        return false;
    errno = 0;
    const intmax_t x = strtoimax(text, &end, 10);
    if (errno || *end || x > INT64_MAX || x < INT64_MIN) return false;
    *result = (int64_t)x;
    return true;
}

/* Seconds unless a unit follows: 2.5, 1s, 500ms, 2m, 1h. Rounded up. */
static bool parse_seconds(const char *text, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"min", 60000}, {"h", 3600000}};
    int64_t millionths = 0, weight = 1000000; /* of the unit; of the next digit behind the point */
    size_t digits = 0, unit = 0;
    bool rest = false, point = false;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        if (millionths > INT64_C(1000000000000000)) return false;
        digits++;
        if (!point) {
            millionths = 10 * millionths + 1000000 * (*text - '0');
        } else {
            weight /= 10;
            millionths += weight * (*text - '0');
            rest = rest || (weight == 0 && *text != '0');
        }
    }
    while (unit < LEN(units) && strcmp(text, units[unit].name) != 0) unit++;
    if (unit == LEN(units) || digits == 0 || millionths > INT64_MAX / 2 / units[unit].ms)
        return false;
    *ms = (millionths * units[unit].ms + (rest ? 1 : 0) + 999999) / 1000000;
    if (*ms == 0) *ms = 1; /* to the library 0 means no limit */
    return true;
}

static bool parse_share(const char *text, int64_t *millionths)
{
    char *end;
    const double x = strtod(text, &end);
    if (*text < '0' || *text > '9' || *end || !(x >= 0 && x <= 1)) return false;
    *millionths = (int64_t)(x * 1e6 + 0.5);
    return true;
}

static int usage(out *o, const args *a, const char *place, const char *reason)
{
    return out_fail(o, REMAT_E_USAGE, a->command < CMD_COUNT ? commands[a->command].name : "",
                    place, "%s", reason);
}

unsigned option_commands(const remat_option *option)
{
    for (int i = 0; i < FLAG_COUNT; i++)
        if (flags[i].option && strcmp(flags[i].option, option->name) == 0) return 0;
    if (strcmp(option->name, "max_input_bytes") == 0) return FILES | ON(MAXFLOW) | ON(PLACE);
    /* FLAG_OFFLOAD sets these two. */
    if (strcmp(option->name, "offload") == 0 || strcmp(option->name, "bandwidth") == 0) return 0;
    if (strcmp(option->name, "reduction_factor") == 0) return PLANS | ON(INFO);
    if (strncmp(option->name, "checkmate_", 10) == 0) return PLANS | ON(IMPORT);
    if (strcmp(option->name, "bound_rules") == 0) return PLANS | ON(BOUND);
    return PLANS;
}

amount option_flag(const remat_option *option)
{
    amount result;
    snprintf(result.text, sizeof result.text, "%s", option->name);
    for (char *p = result.text; *p; p++)
        if (*p == '_') *p = '-';
    return result;
}

static int set_option(args *a, out *o, const char *flag_name, const remat_option *option,
                      const char *name, int64_t value)
{
    char reason[200];
    if (option && (value < option->low || value > option->high)) {
        snprintf(reason, sizeof reason, "%" PRId64 " is not between %" PRId64 " and %" PRId64,
                 value, option->low, option->high);
        return usage(o, a, flag_name, reason);
    }
    for (int i = 0; i < a->n_options; i++)
        if (strcmp(a->options[i].name, name) == 0) {
            a->options[i].value = value;
            return REMAT_OK;
        }
    if (a->n_options == (int)LEN(a->options)) return usage(o, a, flag_name, "too many options");
    a->options[a->n_options].name = name;
    a->options[a->n_options].value = value;
    a->n_options++;
    return REMAT_OK;
}

static const remat_option *option_named(const char *name)
{
    const remat_option *option;
    for (size_t i = 0; (option = remat_option_at(i)); i++)
        if (strcmp(option->name, name) == 0) break;
    return option;
}

static const remat_option *option_of_flag(const char *name)
{
    const remat_option *option;
    for (size_t i = 0; (option = remat_option_at(i)); i++)
        if (option_commands(option) && strcmp(option_flag(option).text, name) == 0) break;
    return option;
}

static int set_flag(args *a, out *o, flag_id id, const char *shown, const char *value)
{
    const flag *f = &flags[id];
    char reason[400];
    a->text[id] = value ? value : "";
    if (f->kind == SWITCH) a->number[id] = 1;
    if (f->kind == INTEGER && !args_number(value, &a->number[id])) {
        snprintf(reason, sizeof reason, "'%.60s' is not a whole number in range", value);
        return usage(o, a, shown, reason);
    }
    if (f->kind == SECONDS && !parse_seconds(value, &a->number[id])) {
        snprintf(reason, sizeof reason, "'%.60s' is not a time such as 2.5, 1s, 500ms or 2m",
                 value);
        return usage(o, a, shown, reason);
    }
    if (f->kind == SHARE && !parse_share(value, &a->number[id])) {
        snprintf(reason, sizeof reason, "'%.60s' is not a number between 0 and 1", value);
        return usage(o, a, shown, reason);
    }
    if (!f->option) return REMAT_OK;
    return set_option(a, o, shown, option_named(f->option), f->option, a->number[id]);
}

/* ---- the line ---- */

static int unknown_flag(const args *a, out *o, const char *shown, const char *name)
{
    const remat_option *option = option_of_flag(name);
    char reason[400];
    unsigned where = option ? option_commands(option) : 0;
    guess g = {.word = name};
    for (int i = 0; i < FLAG_COUNT; i++) {
        if (strcmp(flags[i].name, name) == 0) where |= flags[i].commands;
        if (flags[i].commands >> a->command & 1) guess_offer(&g, flags[i].name);
    }
    size_t used = (size_t)snprintf(reason, sizeof reason, "not a flag of this command, but of");
    for (int c = 0; c < CMD_COUNT; c++)
        if (where >> c & 1)
            used += (size_t)snprintf(reason + used, sizeof reason - used, " %s", commands[c].name);
    if (!where) snprintf(reason, sizeof reason, "unknown flag%s", guess_hint(&g, "--").text);
    return usage(o, a, shown, reason);
}

/* The flag of this command with that name, or letter; FLAG_COUNT: there is none. */
static int find_flag(command_id c, const char *name, bool is_long)
{
    for (int id = 0; id < FLAG_COUNT; id++) {
        if (!(flags[id].commands >> c & 1)) continue;
        if (is_long ? strcmp(flags[id].name, name) == 0 : flags[id].letter == *name) return id;
    }
    return FLAG_COUNT;
}

/* The flag argv[*i]. *i moves to its last word. */
static int parse_flag(args *a, out *o, int *i, int argc, char **argv)
{
    const char *word = argv[*i], *value = NULL;
    char shown[64], name[62];
    const bool is_long = word[1] == '-';
    const size_t dashes = is_long ? 2 : 1, length = is_long ? strcspn(word + 2, "=") : 1;
    snprintf(shown, sizeof shown, "%.*s", (int)(length + dashes), word);
    snprintf(name, sizeof name, "%.*s", (int)length, word + dashes);
    if (word[dashes + length]) value = word + dashes + length + (is_long ? 1 : 0);

    const int id = find_flag(a->command, name, is_long);
    const remat_option *option = id == FLAG_COUNT && is_long ? option_of_flag(name) : NULL;
    if (id == FLAG_COUNT && !(option && option_commands(option) >> a->command & 1))
        return unknown_flag(a, o, shown, name);
    if (!option && flags[id].kind == SWITCH) {
        if (value) return usage(o, a, shown, "takes no value");
        return set_flag(a, o, (flag_id)id, shown, NULL);
    }
    if (!value) {
        if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0)
            return usage(o, a, shown, "needs a value");
        ++*i;
        value = argv[*i];
    }
    if (!*value) return usage(o, a, shown, "needs a value");
    if (!option) return set_flag(a, o, (flag_id)id, shown, value);
    int64_t number;
    if (!args_number(value, &number)) return usage(o, a, shown, "not a whole number in range");
    return set_option(a, o, shown, option, option->name, number);
}

int args_command(out *o, const char *word, command_id *id)
{
    guess g = {.word = word};
    for (int c = 0; c < CMD_COUNT; c++) {
        if (strcmp(commands[c].name, word) == 0) {
            *id = (command_id)c;
            return REMAT_OK;
        }
        guess_offer(&g, commands[c].name);
    }
    return out_fail(o, REMAT_E_USAGE, "", "", "unknown command '%.60s'%s", word,
                    g.best ? guess_hint(&g, "").text : "; see remat --help");
}

int args_parse(args *a, out *o, int argc, char **argv)
{
    bool flags_end = false;
    *a = (args){.command = CMD_COUNT, .words = argv, .n_words = argc};
    /* First of all, so that the first mistake is reported as JSON too. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0) o->json = true;
    TRY(args_command(o, argv[1], &a->command));
    const command *c = &commands[a->command];
    for (int i = 2; i < argc; i++) {
        if (!flags_end && strcmp(argv[i], "--") == 0) {
            flags_end = true;
        } else if (!flags_end && argv[i][0] == '-' && argv[i][1]) {
            TRY(parse_flag(a, o, &i, argc, argv));
        } else if (a->n_operands == c->most) {
            char reason[200];
            snprintf(reason, sizeof reason, "one argument too many: '%.60s'", argv[i]);
            return usage(o, a, "", reason);
        } else if (!*argv[i]) {
            return usage(o, a, "", "an argument is empty");
        } else {
            a->operands[a->n_operands++] = argv[i];
        }
    }
    if (a->text[FLAG_LIST] && a->n_operands > 0) return usage(o, a, "--list", "takes no model");
    if (a->text[FLAG_HELP] || a->text[FLAG_HELP_ALL] || a->text[FLAG_LIST] ||
        a->n_operands >= c->least)
        return REMAT_OK;
    return out_fail(o, REMAT_E_USAGE, c->name, "", "needs %s; see remat %s --help", c->operands,
                    c->name);
}
