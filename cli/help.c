/* help.c: what --help prints, from the tables in main.c and args.c. Examples come first. Text is
 * wrapped to the terminal. */
#include <inttypes.h>
#include <string.h>

#include "heeds.h"

enum { TEXT_COLUMN = 22, NARROW = 50, NARROW_INDENT = 4 };

static void heading(out *o, const char *text)
{
    out_print(o, "\n%s%s%s\n", out_style(o, BOLD), text, out_style(o, PLAIN));
}

static void row(out *o, const char *left, const char *text)
{
    const int length = (int)strlen(left), indent = o->width < NARROW ? NARROW_INDENT : TEXT_COLUMN;
    out_print(o, "  %s", left);
    if (o->width < NARROW) out_print(o, "\n%*s", indent, "");
    else out_print(o, "%*s", length + 2 < indent ? indent - length - 2 : 2, "");
    out_wrap(o, indent, o->width < NARROW || length + 2 < indent ? indent : length + 4, text);
}

static void flag_row(out *o, const flag *f)
{
    char left[80], letter[8] = "";
    if (f->letter) snprintf(letter, sizeof letter, "-%c, ", f->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, f->name, f->value ? " " : "",
             f->value ? f->value : "");
    row(o, left, f->help);
}

static void example_rows(out *o)
{
    static const char *const examples[][2] = {
        {"info zoo:resnet50", "where the memory goes"},
        {"plan zoo:resnet50 --budget 50% -o p.json", "a plan in half the memory"},
        {"verify zoo:resnet50 p.json", "check it, independently"},
        {"report zoo:resnet50 p.json -o page.html", "look at it in a browser"},
        {"compare model.json.gz --budget 8GiB", "all strategies side by side"},
        {"curve model.json.gz", "what each budget costs"}};
    for (size_t i = 0; i < LEN(examples); i++) {
        if (o->width < 80) out_print(o, "  remat %s\n", examples[i][0]);
        else out_print(o, "  remat %-40s  %s\n", examples[i][0], examples[i][1]);
    }
}

static void exit_code_rows(out *o)
{
    static const char *const codes[][2] = {{"0", "fine"},
                                           {"1", "usage: a flag or an argument is wrong"},
                                           {"2", "bad input: a file is wrong"},
                                           {"3", "reading or writing failed"},
                                           {"4", "out of memory"},
                                           {"5", "the plan given is invalid"},
                                           {"6", "the strategy does not apply to this graph"},
                                           {"9", "our bug: please report it"},
                                           {"10", "proved: no plan fits the budget"},
                                           {"11", "no plan within the budget was found"},
                                           {"130", "interrupted: what was done is printed"}};
    for (size_t i = 0; i < LEN(codes); i++) {
        out_print(o, "%5s  ", codes[i][0]);
        out_wrap(o, 7, 7, codes[i][1]);
    }
}

void help_overview(out *o)
{
    out_wrap(o, 0, 0, "remat makes a training step fit a memory budget by running some ops twice.");
    heading(o, "Examples");
    example_rows(o);
    heading(o, "Commands");
    for (int c = 0; c < CMD_COUNT; c++) {
        char left[80];
        snprintf(left, sizeof left, "%s %s", commands[c].name, commands[c].operands);
        row(o, left, commands[c].help);
    }
    out_print(o, "\n");
    out_wrap(
        o, 0, 0,
        "A GRAPH is a file, - for standard input, zoo:NAME for an embedded model or chain:NAME for "
        "a chain of stages (remat gen --list). remat COMMAND --help says more about each, "
        "remat help " COST_MODELS_TOPIC " about costs.");
    heading(o, "Common flags");
    const flag_id common[] = {FLAG_COST_MODEL, FLAG_DCE,           FLAG_FOLD_IDENTITY,
                              FLAG_NO_ALIAS,   FLAG_REPLAY_RANDOM, FLAG_FUSE,
                              FLAG_INPLACE,    FLAG_JSON,          FLAG_HELP};
    for (size_t i = 0; i < LEN(common); i++) flag_row(o, &flags[common[i]]);
    row(o, "--version", "print the version, and the solver of checkmate");
    heading(o, "Exit codes");
    exit_code_rows(o);
}

static void entries(out *o, const char *title, const remat_entry *(*at)(size_t))
{
    const remat_entry *entry;
    heading(o, title);
    for (size_t i = 0; (entry = at(i)); i++) row(o, entry->name, entry->help);
}

void help_cost_models(out *o)
{
    static const char *const models[][2] = {
        {"given", "the file's own costs; the default where every op has one"},
        {"roofline:DEVICE", "ns: the larger of flops over the device's rate and bytes over its "
                            "bandwidth; roofline:h100 is the "
                            "default where the file has flops"},
        {"fused:DEVICE",
         "ns behind a compiler that fuses: an op that fuses costs what a kernel reads "
         "for it where it runs again; the others as by roofline"},
        {"unit", "1 for every op that makes a storage; the default otherwise"},
        {"node", "1 for every op"},
        {"flops", "floating point operations"}};
    out_wrap(o, 0, 0, "What running an op once costs: --cost-model C.");
    heading(o, "Cost models");
    for (size_t i = 0; i < LEN(models); i++) row(o, models[i][0], models[i][1]);
    entries(o, "Devices of roofline and fused", remat_device_at);
}

static void option_row(out *o, const remat_option *option)
{
    char left[80], text[400], high[40];
    if (option->high == INT64_MAX) snprintf(high, sizeof high, "or more");
    else snprintf(high, sizeof high, "to %" PRId64, option->high);
    snprintf(left, sizeof left, "--%s N", option_flag(option).text);
    snprintf(text, sizeof text, "%.300s (%" PRId64 " %s, default %" PRId64 ")", option->help,
             option->low, high, option->initial);
    row(o, left, text);
}

/* Which options a strategy heeds besides those that all do. */
static void heeded(out *o)
{
    const remat_entry *entry;
    heading(o, "What strategies heed");
    for (size_t i = 0; (entry = remat_strategy_at(i)); i++) {
        const label own = heeds_flags(i);
        if (*own.text) row(o, entry->name, own.text);
    }
    out_print(o, "\n");
    out_wrap(o, 0, 0,
             "Where no strategy heeds an option of this list, it is refused. All other "
             "options are for every strategy.");
}

/* What few people need: how one strategy works inside, other solvers, odd files. The library's own
 * options are all of this kind. */
static bool is_for_experts(flag_id id)
{
    static const flag_id experts[] = {
        FLAG_CLASS, FLAG_MPS,      FLAG_MPS_SOLUTION,  FLAG_MIP_GAP, FLAG_PLAIN,      FLAG_WORK,
        FLAG_SEED,  FLAG_NO_ALIAS, FLAG_FOLD_IDENTITY, FLAG_FUSE,    FLAG_ORDER_ONLY, FLAG_INPLACE};
    for (size_t i = 0; i < LEN(experts); i++)
        if (experts[i] == id) return true;
    return false;
}

/* The flags of a command: those of experts, or the others. */
static void flag_rows(out *o, command_id id, bool experts)
{
    for (int i = 0; i < FLAG_COUNT; i++)
        if (flags[i].commands >> id & 1 && is_for_experts((flag_id)i) == experts)
            flag_row(o, &flags[i]);
}

static void expert_rows(out *o, command_id id)
{
    const remat_option *option;
    heading(o, "For experts");
    flag_rows(o, id, true);
    for (size_t i = 0; (option = remat_option_at(i)); i++)
        if (option_commands(option) >> id & 1) option_row(o, option);
}

void help_command(out *o, command_id id, bool all)
{
    const command *c = &commands[id];
    for (const char *line = c->examples; *line;) { /* a command each line */
        const size_t length = strcspn(line, "\n");
        out_print(o, "  remat %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    out_print(o, "\n%sremat %s%s %s\n", out_style(o, BOLD), c->name, out_style(o, PLAIN),
              c->operands);
    out_wrap(o, 0, 0, c->about);
    heading(o, "Flags");
    flag_rows(o, id, false);
    if (all) expert_rows(o, id);
    if (!(flags[FLAG_STRATEGY].commands >> id & 1)) return;
    entries(o, "Strategies", remat_strategy_at);
    heeded(o);
}
