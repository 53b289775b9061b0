/* help.c: what --help prints, from the tables in main.c and args.c: examples first, 80 columns at most. */
#include <string.h>

#include "args.h"

enum { TEXT_COLUMN = 22 };

static void heading(out *o, const char *text) { out_print(o, "\n%s%s%s\n", out_style(o, BOLD), text, out_style(o, PLAIN)); }

static void row(out *o, const char *left, const char *text)
{
    const int length = (int)strlen(left);
    out_print(o, "  %s%*s", left, length + 2 < TEXT_COLUMN ? TEXT_COLUMN - length - 2 : 2, "");
    out_wrap(o, TEXT_COLUMN, length + 2 < TEXT_COLUMN ? TEXT_COLUMN : length + 4, text);
}

static void flag_row(out *o, const flag *f)
{
    char left[80], letter[8] = "";
    if (f->letter) snprintf(letter, sizeof letter, "-%c, ", f->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, f->name, f->value ? " " : "", f->value ? f->value : "");
    row(o, left, f->help);
}

void help_overview(out *o)
{
    out_print(o, "%sremat%s makes a training step fit a memory budget by running some ops twice.\n", out_style(o, BOLD),
              out_style(o, PLAIN));
    heading(o, "Examples");
    out_print(o, "  remat info zoo:resnet50                         where the memory goes\n"
                 "  remat plan zoo:resnet50 --budget 50%% -o p.json  a plan in half the memory\n"
                 "  remat verify zoo:resnet50 p.json                check it, independently\n"
                 "  remat compare model.json.gz --budget 8GiB       all strategies side by side\n"
                 "  remat curve model.json.gz                       what each budget costs\n");
    heading(o, "Commands");
    for (int c = 0; c < CMD_COUNT; c++) {
        char left[80];
        snprintf(left, sizeof left, "%s %s", commands[c].name, commands[c].operands);
        row(o, left, commands[c].help);
    }
    out_print(o, "\nA GRAPH is a file, - for standard input, or zoo:NAME for an embedded model\n"
                 "(remat gen --list). remat COMMAND --help says more about each.\n");
    heading(o, "Common flags");
    const flag_id common[] = {FLAG_COST_MODEL,    FLAG_DCE,  FLAG_FOLD_IDENTITY, FLAG_NO_ALIAS,
                              FLAG_REPLAY_RANDOM, FLAG_JSON, FLAG_HELP};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) flag_row(o, &flags[common[i]]);
    row(o, "--version", "print the version");
    heading(o, "Exit codes");
    out_print(o, "  0 fine             1 usage            2 bad input       3 I/O failed\n"
                 "  4 out of memory    5 invalid plan     6 strategy does not apply\n"
                 "  9 our bug         10 proved: no plan fits the budget\n"
                 " 11 no plan within the budget was found\n");
}

static void entries(out *o, const char *title, const remat_entry *(*at)(size_t))
{
    const remat_entry *entry;
    heading(o, title);
    for (size_t i = 0; (entry = at(i)); i++) row(o, entry->name, entry->help);
}

static bool has_flag(const char *option_name)
{
    for (int i = 0; i < FLAG_COUNT; i++)
        if (flags[i].option && strcmp(flags[i].option, option_name) == 0) return true;
    return false;
}

void help_command(out *o, command_id id)
{
    const command *c = &commands[id];
    const remat_option *option;
    for (const char *line = c->examples; *line;) { /* a command each line */
        const size_t length = strcspn(line, "\n");
        out_print(o, "  remat %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    out_print(o, "\n%sremat %s%s %s\n", out_style(o, BOLD), c->name, out_style(o, PLAIN), c->operands);
    out_wrap(o, 0, 0, c->about);
    heading(o, "Flags");
    for (int i = 0; i < FLAG_COUNT; i++)
        if (flags[i].commands >> id & 1) flag_row(o, &flags[i]);
    if (flags[FLAG_JSON].commands >> id & 1)
        for (size_t i = 0; (option = remat_option_at(i)); i++)
            if (!has_flag(option->name)) {
                char left[80];
                int n = snprintf(left, sizeof left, "--%s N", option->name);
                for (int k = 2; k < n; k++)
                    if (left[k] == '_') left[k] = '-';
                row(o, left, option->help);
            }
    if (flags[FLAG_STRATEGY].commands >> id & 1) entries(o, "Strategies", remat_strategy_at);
    if (flags[FLAG_COST_MODEL].commands >> id & 1) entries(o, "Devices of roofline", remat_device_at);
}
