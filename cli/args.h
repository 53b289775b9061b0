/* args.h: commands, flags and their parsing. Both are tables: commands[] in main.c, flags[] in
 * args.c. Parsing, help and completions read nothing else. A new flag is one line in the enum and
 * one row. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "out.h"
#include "remat.h"

typedef struct session session;

typedef enum command_id {
    CMD_INFO,
    CMD_PLAN,
    CMD_BOUND,
    CMD_VERIFY,
    CMD_COMPARE,
    CMD_CURVE,
    CMD_REPORT,
    CMD_MAXBATCH,
    CMD_FUSE,
    CMD_LOWER,
    CMD_GEN,
    CMD_IMPORT,
    CMD_PLACE,
    CMD_MAXFLOW,
    CMD_COMPLETION,
    CMD_HELP,
    CMD_COUNT
} command_id;

typedef struct command {
    const char *name, *operands, *help; /* help: one line of the overview */
    const char *about;                  /* a paragraph */
    const char *examples;               /* lines without the "remat " in front */
    int least, most;                    /* operands */
    int (*run)(session *s);
} command;
extern const command commands[CMD_COUNT]; /* main.c; indexed by command_id */

typedef enum flag_id {
    FLAG_BUDGET,
    FLAG_LIMIT,  /* the --budget of verify */
    FLAG_PROVED, /* the --bound of verify */
    FLAG_STRATEGY,
    FLAG_SAVED,
    FLAG_CLASSES,
    FLAG_CLASS,
    FLAG_MAX_OVERHEAD,
    FLAG_CERTIFY,
    FLAG_MPS,
    FLAG_MPS_SOLUTION,
    FLAG_MIP_GAP,
    FLAG_PLAIN,
    FLAG_CURVE,
    FLAG_POINTS,
    FLAG_FROM,
    FLAG_TO,
    FLAG_TIME,
    FLAG_WORK,
    FLAG_SEED,
    FLAG_OFFLOAD,
    FLAG_ORDER_ONLY,
    FLAG_LIST,
    FLAG_CHAIN,
    FLAG_FORMAT,
    FLAG_PROGRAM, /* the --format of lower */
    FLAG_PLACE,
    FLAG_ALIGN,
    FLAG_SVG,
    FLAG_CAPACITY,
    FLAG_OUTPUT,
    FLAG_COST_MODEL,
    FLAG_DCE,
    FLAG_FOLD_IDENTITY,
    FLAG_NO_ALIAS,
    FLAG_REPLAY_RANDOM,
    FLAG_FUSE,
    FLAG_INPLACE,
    FLAG_CSV,
    FLAG_JSON,
    FLAG_HELP,
    FLAG_HELP_ALL,
    FLAG_COUNT
} flag_id;

typedef enum flag_kind { SWITCH, TEXT, INTEGER, SECONDS, SHARE } flag_kind;
typedef enum complete {
    COMPLETE_NONE,
    COMPLETE_FILE,
    COMPLETE_STRATEGY, /* a list of them: compare takes more than one */
    COMPLETE_COST,
    COMPLETE_FORMAT,
    COMPLETE_PROGRAM,
    COMPLETE_OVERHEAD,
    COMPLETE_BUDGET
} complete;

typedef struct flag {
    const char *name; /* without the dashes */
    char letter;      /* or 0 */
    flag_kind kind;
    const char *value;  /* how help names it; NULL for a switch */
    const char *option; /* the library's option that it sets, or NULL */
    complete complete;
    unsigned commands; /* bit 1 << command_id */
    const char *help;
} flag;
extern const flag flags[FLAG_COUNT];

typedef struct args {
    command_id command;
    const char *text[FLAG_COUNT]; /* as given; NULL: not given; "" for a switch */
    int64_t number[FLAG_COUNT]; /* INTEGER: the number; SECONDS: milliseconds; SHARE: millionths */
    struct {
        const char *name;
        int64_t value;
    } options[32]; /* the library's options that were set */
    int n_options;
    const char *operands[3];
    int n_operands;
    char *const *words; /* the whole line; words[0] is the program */
    int n_words;
} args;

/* argv[0] is the program. REMAT_OK, or an exit code with the one line already printed to `o`. */
int args_parse(args *a, out *o, int argc, char **argv);
bool args_number(const char *text, int64_t *result); /* a whole decimal int64_t and nothing else */
/* REMAT_OK and the command of that name, or a usage error with the nearest one. */
int args_command(out *o, const char *word, command_id *id);

/* The library's options as flags, such as "max-input-bytes". A mask of the commands that take it; 0
 * for an option that a row of flags[] sets. */
unsigned option_commands(const remat_option *option);
amount option_flag(const remat_option *option);

#define COST_MODELS_TOPIC "cost-models" /* `remat help cost-models` */
void help_overview(out *o);
void help_command(out *o, command_id id, bool all); /* all: the options of experts, too */
void help_cost_models(out *o);

/* The nearest of a set of words. Start with {.word = w}, offer candidates, read `best` (NULL: none
 * is near). */
typedef struct guess {
    const char *word, *best;
    unsigned distance;
} guess;
void guess_offer(guess *g, const char *candidate);
label guess_hint(const guess *g, const char *prefix); /* ": did you mean 'PREFIXbest'?" or "" */

#endif
