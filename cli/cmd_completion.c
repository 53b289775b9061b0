/* cmd_completion.c: `remat completion bash|zsh|fish` prints a completion script. It is made from
 * the command and flag tables and from the library's strategies, models and devices. The build
 * installs its output. So there is no second list to keep. */
#include <string.h>

#include "commands.h"

static void put_words(out *o, const char *prefix, const remat_entry *(*at)(size_t))
{
    const remat_entry *entry;
    for (size_t i = 0; (entry = at(i)); i++)
        out_print(o, "%s%s%s", i ? " " : "", prefix, entry->name);
}

/* Embedded models and chains, with `colon` as the shell wants it. A name with a colon is a whole
 * source. */
static void put_models(out *o, const char *colon)
{
    const remat_entry *entry;
    for (size_t i = 0; (entry = remat_zoo_at(i)); i++) {
        const char *name = strchr(entry->name, ':');
        if (name)
            out_print(o, "%s%.*s%s%s", i ? " " : "", (int)(name - entry->name), entry->name, colon,
                      name + 1);
        else out_print(o, "%szoo%s%s", i ? " " : "", colon, entry->name);
    }
}

/* The i-th flag of a command: rows of flags[], then the library's options. False past the last. */
static bool flag_at(int c, size_t i, flag *f, amount *name)
{
    const remat_option *option;
    size_t n = 0;
    for (int k = 0; k < FLAG_COUNT; k++)
        if (flags[k].commands >> c & 1 && n++ == i) {
            *f = flags[k];
            return true;
        }
    for (size_t k = 0; (option = remat_option_at(k)); k++)
        if (option_commands(option) >> c & 1 && n++ == i) {
            *name = option_flag(option);
            *f = (flag){.name = name->text,
                        .kind = INTEGER,
                        .value = "N",
                        .commands = option_commands(option),
                        .help = option->help};
            return true;
        }
    return false;
}

/* Words to choose from, nothing for files and free text, with `colon` as the shell wants it. */
static void put_values(out *o, complete kind, const char *colon)
{
    if (kind == COMPLETE_COST) {
        static const char *const models[] = {"roofline", "fused"};
        out_print(o, "given unit node flops");
        for (size_t i = 0; i < LEN(models); i++) {
            char prefix[20];
            snprintf(prefix, sizeof prefix, "%s%s", models[i], colon);
            out_print(o, " ");
            put_words(o, prefix, remat_device_at);
        }
    }
    if (kind == COMPLETE_FORMAT) out_print(o, "json dot");
    if (kind == COMPLETE_PROGRAM) out_print(o, "plan graph c csv remat-plan");
    if (kind == COMPLETE_OVERHEAD) out_print(o, "one-extra-forward 10%% 20%% 50%%");
    if (kind == COMPLETE_BUDGET) out_print(o, "min 25%% 50%% 75%%");
}

static void put_commands(out *o)
{
    for (int c = 0; c < CMD_COUNT; c++) out_print(o, "%s%s", c ? " " : "", commands[c].name);
}

/* Inside '...'. Characters in `special` get a backslash. */
static void put_quoted(out *o, const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text)) out_print(o, "\\%c", *text);
        else if (*text == '\'') out_print(o, "'\\''");
        else out_print(o, "%c", *text);
    }
}

/* What an operand may be besides a file. */
static void put_operand_words(out *o, int c)
{
    if (c == CMD_HELP) {
        put_commands(o);
        out_print(o, " " COST_MODELS_TOPIC);
    } else if (c == CMD_COMPLETION) out_print(o, "bash zsh fish");
    else put_models(o, ":");
}

/* The cases of the values of flag f. The same flag may mean something else to another command. */
static void bash_flag(out *o, const flag *f)
{
    bool any = false;
    for (int c = 0; c < CMD_COUNT; c++) {
        if (!(f->commands >> c & 1)) continue;
        out_print(o, "%s%s:--%s", any ? "|" : "    ", commands[c].name, f->name);
        if (f->letter) out_print(o, "|%s:-%c", commands[c].name, f->letter);
        any = true;
    }
    if (f->complete == COMPLETE_FILE) {
        out_print(o, ") files=1 ;;\n");
        return;
    }
    if (f->complete == COMPLETE_STRATEGY) { /* of a list only the last word is completed */
        out_print(o, ") [[ $cur == *,* ]] && list=${cur%%,*},; words='");
        put_words(o, "", remat_strategy_at);
    } else {
        out_print(o, ") words='");
        put_values(o, f->complete, ":");
    }
    out_print(o, "' ;;\n");
}

/* The cases of flags and operands of each command. */
static void bash_commands(out *o)
{
    flag f;
    amount name;
    for (int c = 0; c < CMD_COUNT; c++) {
        out_print(o, "        *:%s:-*) words='", commands[c].name);
        for (size_t i = 0; flag_at(c, i, &f, &name); i++) out_print(o, "--%s ", f.name);
        out_print(o, "' ;;\n");
    }
    for (int c = CMD_COMPLETION; c < CMD_COUNT; c++) {
        out_print(o, "        *:%s:*) words='", commands[c].name);
        put_operand_words(o, c);
        out_print(o, "' ;;\n");
    }
    out_print(o, "        *) files=1 words='");
    put_operand_words(o, CMD_INFO);
    out_print(o, "' ;;\n");
}

/* Readline breaks words at : and =. So the script takes the word from the line itself and gives
 * back what follows the colon. */
static void bash_script(out *o)
{
    const remat_option *option;
    out_print(o, "# bash completion for remat, printed by: remat completion bash\n"
                 "_remat() {\n"
                 "    local line=${COMP_LINE:0:COMP_POINT} cmd=${COMP_WORDS[1]} cur prev words= "
                 "files= list=\n"
                 "    cur=${line##*[[:space:]]} line=${line%%\"$cur\"}\n"
                 "    line=${line%%\"${line##*[![:space:]]}\"} prev=${line##*[[:space:]]}\n"
                 "    if [[ $cur == --*=* ]]; then prev=${cur%%%%=*} cur=${cur#*=}; fi\n"
                 "    case $cmd:$prev in\n");
    for (int i = 0; i < FLAG_COUNT; i++)
        if (flags[i].kind != SWITCH) bash_flag(o, &flags[i]);
    for (size_t i = 0; (option = remat_option_at(i)); i++)
        if (option_commands(option)) out_print(o, "    *:--%s) ;;\n", option_flag(option).text);
    out_print(o, "    *)\n        case $((COMP_CWORD == 1)):$cmd:$cur in\n        1:*) words='");
    put_commands(o);
    out_print(o, " --help --version' ;;\n");
    bash_commands(o);
    out_print(
        o, "        esac ;;\n    esac\n"
           "    COMPREPLY=($(compgen -P \"$list\" -W \"$words\" -- \"${cur#\"$list\"}\"))\n"
           "    local IFS=$'\\n'\n"
           "    [[ $files ]] && COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
           "    [[ $cur == *:* ]] && COMPREPLY=(\"${COMPREPLY[@]#\"${cur%%\"${cur##*:}\"}\"}\")\n"
           "    return 0\n"
           "}\n"
           "complete -o filenames -F _remat remat\n");
}

static void zsh_flag(out *o, const flag *f)
{
    const char *equals = f->kind == SWITCH ? "" : "=";
    out_print(o, " \\\n            ");
    if (f->letter) out_print(o, "{-%c,--%s%s}'[", f->letter, f->name, equals);
    else out_print(o, "'--%s%s[", f->name, equals);
    put_quoted(o, f->help, "[]:");
    out_print(o, "]");
    if (f->kind != SWITCH) out_print(o, ":%s:", f->value);
    if (f->complete == COMPLETE_FILE) {
        out_print(o, "_files");
    } else if (f->complete == COMPLETE_STRATEGY) {
        out_print(o, "_values -s , strategy ");
        put_words(o, "", remat_strategy_at);
    } else if (f->complete != COMPLETE_NONE) {
        out_print(o, "(");
        put_values(o, f->complete, "\\:");
        out_print(o, ")");
    }
    out_print(o, "'");
}

static void zsh_command(out *o, int c)
{
    flag f;
    amount name;
    out_print(o, "        %s) _arguments", commands[c].name);
    for (size_t i = 0; flag_at(c, i, &f, &name); i++) zsh_flag(o, &f);
    if (c == CMD_HELP || c == CMD_COMPLETION) {
        out_print(o, " '*:word:(");
        put_operand_words(o, c);
        out_print(o, ")'");
    } else {
        out_print(o, " '*:file:_remat_graph'");
    }
    out_print(o, " ;;\n");
}

static void zsh_script(out *o)
{
    out_print(o, "#compdef remat\n# zsh completion for remat, printed by: remat completion zsh\n"
                 "_remat_graph() {\n    _alternative 'files:file:_files' 'models:model:(");
    put_models(o, "\\:");
    out_print(o, ")'\n}\n"
                 "_remat() {\n    local context state state_descr line\n    typeset -A opt_args\n  "
                 "  local -a cmds=(\n");
    for (int c = 0; c < CMD_COUNT; c++) {
        out_print(o, "        '%s:", commands[c].name);
        put_quoted(o, commands[c].help, ":");
        out_print(o, "'\n");
    }
    out_print(o, "    )\n    _arguments -C '(- *)--help[print help]' '(- *)--version[print the "
                 "version]' \\\n"
                 "        '1:command:->cmd' '*::arg:->args'\n"
                 "    case $state in\n    cmd) _describe command cmds ;;\n    args)\n        case "
                 "$line[1] in\n");
    for (int c = 0; c < CMD_COUNT; c++) zsh_command(o, c);
    out_print(o, "        esac ;;\n    esac\n}\n_remat \"$@\"\n");
}

static void fish_flag(out *o, const char *command_name, const flag *f)
{
    out_print(o, "complete -c remat -n '__fish_seen_subcommand_from %s' -l %s", command_name,
              f->name);
    if (f->letter) out_print(o, " -s %c", f->letter);
    if (f->kind != SWITCH) out_print(o, f->complete == COMPLETE_FILE ? " -r" : " -x");
    if (f->complete == COMPLETE_STRATEGY) {
        out_print(o, " -a '(__fish_complete_list , __remat_strategies)'");
    } else if (f->complete != COMPLETE_FILE && f->complete != COMPLETE_NONE) {
        out_print(o, " -a '");
        put_values(o, f->complete, ":");
        out_print(o, "'");
    }
    out_print(o, " -d '");
    put_quoted(o, f->help, "'\\");
    out_print(o, "'\n");
}

static void fish_script(out *o)
{
    flag f;
    amount name;
    out_print(o, "# fish completion for remat, printed by: remat completion fish\n"
                 "function __remat_strategies\n    printf '%%s\\n' ");
    put_words(o, "", remat_strategy_at);
    out_print(o, "\nend\n");
    for (int c = 0; c < CMD_COUNT; c++) {
        out_print(o, "complete -c remat -n __fish_use_subcommand -f -a %s -d '", commands[c].name);
        put_quoted(o, commands[c].help, "'\\");
        out_print(o, "'\n");
    }
    out_print(o, "complete -c remat -n __fish_use_subcommand -l help -d 'print help'\n"
                 "complete -c remat -n __fish_use_subcommand -l version -d 'print the version'\n");
    for (int c = 0; c < CMD_COUNT; c++)
        for (size_t i = 0; flag_at(c, i, &f, &name); i++) fish_flag(o, commands[c].name, &f);
    for (int c = 0; c < CMD_COUNT; c++) {
        const bool words_only = c == CMD_HELP || c == CMD_COMPLETION;
        out_print(o, "complete -c remat -n '__fish_seen_subcommand_from %s' %s -a '",
                  commands[c].name, words_only ? "-f" : "-F");
        put_operand_words(o, c);
        out_print(o, "'\n");
    }
}

int cmd_completion(session *s)
{
    const char *shell = s->args->operands[0];
    if (strcmp(shell, "bash") == 0) bash_script(s->out);
    else if (strcmp(shell, "zsh") == 0) zsh_script(s->out);
    else if (strcmp(shell, "fish") == 0) fish_script(s->out);
    else
        return out_fail(s->out, REMAT_E_USAGE, "completion", "",
                        "'%.40s' is none of bash, zsh, fish", shell);
    return REMAT_OK;
}
