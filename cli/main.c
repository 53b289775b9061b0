/* main.c: the program remat. One row of commands[] is one command: its name, help, operands and
 * function.
 *
 * Order of a run: understand the whole line, make a session, run the command, flush. The exit code
 * is the library's status, or 3 after a failed write to standard output. The program
 * never writes to a descriptor that it was not given: it replaces closed standard streams by ones
 * on which every write fails. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

const command commands[CMD_COUNT] = {
    [CMD_INFO] = {"info", "FILE", "what a graph holds and where its memory goes",
                  "Counts, the memory of keep-all step by step, and the largest values at its "
                  "peak. A chain shows its stages, a plan "
                  "file its summary. --chain shows the stages that chain strategies see in a "
                  "training graph, --classes what mincut may "
                  "run again.",
                  "info zoo:resnet50\n"
                  "info model.json.gz --dce --fold-identity\n"
                  "info zoo:resnet50 --chain\n"
                  "info model.json.gz --classes\n"
                  "info - --json < model.json",
                  1, 1, cmd_info},
    [CMD_PLAN] = {"plan", "GRAPH", "make a plan that fits a budget",
                  "Decides which ops run again so that the peak stays within the budget, and shows "
                  "memory before and after. With a "
                  "budget the default strategy is " DEFAULT_STRATEGY
                  ", without one keep-all. A plan that misses the budget is still "
                  "shown and written; the exit code is 10 (proved impossible) or 11 (not found). "
                  "Ctrl-C ends planning with the best plan so far, and exit code 130.",
                  "plan zoo:resnet50 --budget 50%\n"
                  "plan model.json.gz --budget 8GiB -o plan.json.gz\n"
                  "plan model.json.gz --budget 8GiB --svg memory.svg\n"
                  "plan model.json.gz --budget min --strategy chen-sqrt --json\n"
                  "plan chain.json --budget 9000 --strategy rotor-float --slots 0",
                  1, 1, cmd_plan},
    [CMD_BOUND] =
        {"bound", "GRAPH", "what no plan within a budget can undercut",
         "Prints a proved lower limit on the cost of every plan that fits the budget and runs its "
         "ops for the first "
         "time in the "
         "graph's order. Exit code 10: proved, no such plan fits; with the op and tensors that "
         "force it. Plans carry "
         "the bound for their own order, and a certificate of it that verify --bound checks.",
         "bound zoo:resnet50 --budget 50%\n"
         "bound model.json.gz --budget 8GiB --dce --json",
         1, 1, cmd_bound},
    [CMD_VERIFY] =
        {"verify", "GRAPH PLAN", "check a plan against its graph, independently",
         "Replays the plan with exact integers: every step must run, and the peak and cost it "
         "carries must be true. The "
         "options recorded in the plan apply unless flags are given. A certificate, if there is "
         "one, must prove the plan's "
         "bound (what a search proved besides cannot be checked, and is reported as such); with "
         "--bound there must be one, or the bound must be what running every op once costs. Exit "
         "code 5: invalid, with the "
         "first bad step.",
         "verify model.json.gz plan.json\n"
         "verify model.json.gz plan.json --bound\n"
         "verify model.json.gz plan.json --budget 8GiB --json",
         2, 2, cmd_verify},
    [CMD_COMPARE] =
        {"compare", "GRAPH", "all strategies at one budget, side by side",
         "One row a strategy: peak, overhead, whether it fits. Strategies that do not apply say "
         "why. Exit code 0 "
         "if one fits. --saved "
         "compares what the forward pass saves for the backward pass, and needs no budget.",
         "compare zoo:resnet50 --budget 50%\n"
         "compare model.json.gz --saved\n"
         "compare model.json.gz --budget 8GiB --strategy periodic,chen-sqrt --csv",
         1, 1, cmd_compare},
    [CMD_CURVE] = {"curve", "GRAPH", "what each budget costs, as a table and a plot",
                   "Plans at budgets from the least that the strategies find up to keep-all. A "
                   "cheaper plan of a smaller budget is "
                   "carried forward, so the curve never rises. Where no plan can be is shaded, by "
                   "the best bound for any order. The default strategy is that of plan with a "
                   "budget.",
                   "curve zoo:resnet50\n"
                   "curve zoo:resnet50 --strategy auto,rotor,mincut --svg curve.svg\n"
                   "curve model.json.gz --from 30% --to 80% --points 6\n"
                   "curve model.json.gz --csv > curve.csv",
                   1, 1, cmd_curve},
    [CMD_REPORT] =
        {"report", "GRAPH [PLAN]", "a plan as a page to look at, in one file",
         "Writes an HTML file that stands alone: memory over the steps before and after, every "
         "tensor with its fate and why, and what was asked for besides. It shows a plan of a "
         "file, two of them side by side, or plans made here with --budget. --curve adds plans at "
         "other budgets, --place addresses. Nothing is loaded from a network. A plan that misses "
         "the budget is shown too; the exit code is that of plan.",
         "report zoo:resnet50 --budget 50% -o report.html\n"
         "report model.json.gz plan.json -o report.html\n"
         "report model.json.gz mine.json yours.json -o report.html\n"
         "report model.json.gz --budget 8GiB --curve -o report.html\n"
         "report chain.json --budget 60% -o report.html",
         1, 3, cmd_report},
    [CMD_MAXBATCH] = {"maxbatch", "GRAPH",
                      "the largest batch that fits a budget, for each strategy",
                      "Builds the graph at batch after batch, an embedded model anew, a file by "
                      "its size_per_batch, and finds "
                      "the largest that each "
                      "strategy fits into the budget, at a bounded cost if --max-overhead says so. "
                      "No plan fits beyond a batch "
                      "that is printed "
                      "with the op that forces it; --certify lowers it by the bound. Exit code 10: "
                      "proved, not even batch 1 "
                      "fits; 11: none was found.",
                      "maxbatch zoo:mobilenet --budget 16GB --max-overhead one-extra-forward "
                      "--cost-model flops\n"
                      "maxbatch zoo:resnet50 --budget 16GB --strategy keep-all,auto --certify\n"
                      "maxbatch model.json.gz --budget 24GiB --max-overhead 20% --json",
                      1, 1, cmd_maxbatch},
    [CMD_FUSE] = {"fuse", "GRAPH [PLAN]",
                  "a graph or a plan as fused kernels, and what they read and write",
                  "Groups ops into the kernels that a fusing compiler would make, then computes "
                  "values again inside the kernels that "
                  "read them wherever that moves fewer bytes. -o writes the resulting program, a "
                  "graph with repeated nodes.",
                  "fuse zoo:fig4\n"
                  "fuse model.json.gz --dce --json\n"
                  "fuse model.json.gz plan.json -o program.json.gz",
                  1, 2, cmd_fuse},
    [CMD_LOWER] = {"lower", "GRAPH [PLAN]",
                   "a plan as allocate, compute, deallocate; as a graph; as C",
                   "Prints the statements that execute a plan (keep-all without one), with the "
                   "memory in use at each. --format "
                   "graph writes "
                   "the plan as a graph of its own, with a node for every step, repeated nodes "
                   "where ops run again; --format c "
                   "as a C function "
                   "that calls the caller's allocate, compute and release. --place gives every "
                   "storage and workspace an offset in one arena, checked; --format csv writes "
                   "them, --svg draws them.",
                   "lower model.json.gz plan.json\n"
                   "lower model.json.gz plan.json --place --align 512 --svg arena.svg\n"
                   "lower model.json.gz plan.json --format graph -o static.json.gz\n"
                   "lower model.json.gz plan.json --format c -o step.c\n"
                   "lower zoo:resnet50 | less",
                   1, 2, cmd_lower},
    [CMD_GEN] = {"gen", "MODEL", "write an embedded model or chain to a file",
                 "MODEL is NAME, zoo:NAME or chain:NAME with parameters: "
                 "zoo:NAME?key=value&key=value. Quote it: ? and & mean "
                 "something to the shell.",
                 "gen --list\n"
                 "gen chain:toy -o toy.json\n"
                 "gen zoo:resnet50 -o resnet50.json.gz\n"
                 "gen 'zoo:resnet50?batch=64' --cost-model roofline:h100 -o r.json",
                 1, 1, cmd_gen},
    [CMD_IMPORT] = {"import", "FILE", "rewrite any readable graph in our format, or as DOT",
                    "Reads remat-graph, remat-chain, networkx node-link JSON or DOT, plain or "
                    "gzip, by content. Graph flags are applied "
                    "to what is written. --chain writes a training graph's chain of stages. "
                    "--mps-solution makes a plan of what another "
                    "solver says of the program that plan --mps wrote.",
                    "import nx.json -o model.json.gz\n"
                    "import model.json.gz --mps-solution x.sol --budget 8GiB -o plan.json\n"
                    "import model.json.gz --chain -o chain.json\n"
                    "import model.json.gz --format dot | dot -Tsvg > model.svg",
                    1, 1, cmd_import},
    [CMD_PLACE] =
        {"place", "FILE", "offsets in one arena for spans of a CSV file",
         "Reads spans (the columns id, lower, upper and size of MiniMalloc: bytes that are "
         "needed at the times lower to upper - 1) and gives each an offset, so that no two "
         "overlap. Finds as low a placement as it can, or with --capacity one that fits. "
         "Exit code 10: proved, there is none; 11: none was found. -o writes the spans "
         "with their offsets.",
         "place spans.csv --capacity 1048576\n"
         "place spans.csv --json\n"
         "lower model.json.gz plan.json --format csv | remat place -",
         1, 1, cmd_place},
    [CMD_MAXFLOW] = {"maxflow", "FILE", "a maximum flow and its minimum cut",
                     "Solves a maximum-flow problem in DIMACS format with the solver behind "
                     "mincut. Of the minimum cuts it shows the one "
                     "nearest the sink; --json lists the vertices on the source's side.",
                     "maxflow network.max\n"
                     "maxflow - --json < network.max",
                     1, 1, cmd_maxflow},
    [CMD_COMPLETION] = {"completion", "SHELL", "print completions for bash, zsh or fish",
                        "Prints a completion script; source it, or put it where the shell looks.",
                        "completion bash > ~/.local/share/bash-completion/completions/remat\n"
                        "completion fish | source",
                        1, 1, cmd_completion},
    [CMD_HELP] = {"help", "[TOPIC]", "the same as COMMAND --help",
                  "Prints help on a command, or on " COST_MODELS_TOPIC ".",
                  "help\nhelp plan\nhelp " COST_MODELS_TOPIC, 0, 1, NULL},
};

static void fill_closed_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(REMAT_E_IO);
}

/* A program that runs in its build tree, ROOT/build/NAME/remat, finds the solver that `make demo`
 * fetched into ROOT/.venv, unless another environment is active. */
static void use_solver_of_tree(void)
{
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0 || (size_t)n >= sizeof path - 1) return;
    path[n] = '\0';
    char *last = NULL;
    for (int level = 0; level < 3; level++) { /* remat, NAME, build */
        if (last) *last = '\0';
        last = strrchr(path, '/');
        if (!last) return;
    }
    if (strcmp(last, "/build") != 0) return;
    strcpy(last, "/.venv"); /* it is as long */
    if (access(path, R_OK) == 0) setenv("VIRTUAL_ENV", path, 0);
}

static int run_help(out *o, const args *a)
{
    command_id id = a->command;
    int status = REMAT_OK;
    if (a->command == CMD_HELP && !a->text[FLAG_HELP] && !a->text[FLAG_HELP_ALL]) {
        if (a->n_operands == 0) {
            help_overview(o);
            return REMAT_OK;
        }
        if (strcmp(a->operands[0], COST_MODELS_TOPIC) == 0) {
            help_cost_models(o);
            return REMAT_OK;
        }
        status = args_command(o, a->operands[0], &id);
    }
    if (!status) help_command(o, id, a->text[FLAG_HELP_ALL] != NULL);
    return status;
}

static int print_version(out *o)
{
    remat_ctx *ctx = remat_ctx_new(NULL);
    remat_solver solver = REMAT_SOLVER_INIT;
    out_print(o, "remat %s\n", remat_version());
    if (!ctx || remat_solver_find(ctx, &solver) != REMAT_OK)
        out_print(o, "no MILP solver: out of memory\n");
    else if (*solver.version)
        out_print(o, "MILP solver: HiGHS %s, %s\n", solver.version, solver.where);
    else out_print(o, "no MILP solver: %s\n", solver.where);
    remat_ctx_free(ctx);
    return REMAT_OK;
}

static int run(out *o, int argc, char **argv)
{
    args a;
    session s;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_overview(o);
        return REMAT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        if (argc > 2)
            return out_fail(o, REMAT_E_USAGE, "--version", "", "takes no argument: '%.60s'",
                            argv[2]);
        return print_version(o);
    }
    int status = args_parse(&a, o, argc, argv);
    if (status) return status;
    if (a.text[FLAG_HELP] || a.text[FLAG_HELP_ALL] || a.command == CMD_HELP) return run_help(o, &a);
    status = session_open(&s, &a, o);
    if (!status) status = commands[a.command].run(&s);
    session_close(&s);
    return status;
}

int main(int argc, char **argv)
{
    out o;
    fill_closed_streams();
    use_solver_of_tree();
    setlocale(LC_CTYPE, "");  /* only that one: numbers are written the same everywhere */
    signal(SIGPIPE, SIG_IGN); /* these two become errors of write */
    signal(SIGXFSZ, SIG_IGN);
    out_open(&o, stdout, "standard output", false);
    const int status = run(&o, argc, argv);
    const remat_status written = out_close(&o);
    return written == REMAT_OK ? status : (int)written;
}
