/* heeds.c: which option each strategy heeds, for --help, and for refusing one that nobody heeds.
 *
 * Problem: an option that the chosen strategy ignores looks as if it worked. Method: the library's
 * table says which options change what a strategy does (remat_strategy_heeds). An option that
 * stands there for some strategy, but for none of those that a command runs, is a usage error.
 * Options in nobody's row (limits, the seed, threads, bound rules) are for all of them.
 *
 * A list of strategies is refused only if none of them heeds the option. The library refuses each
 * one that cannot obey --offload or --order-only, since these say which plans are wanted. */
#include "heeds.h"

#include <string.h>

enum { MOST_NAMES = 240 };

/* Is `word` among words that `separator` divides? */
static bool is_in(const char *words, char separator, const char *word)
{
    const size_t length = strlen(word);
    for (const char *p = words; p; p = strchr(p, separator)) {
        p += *p == separator;
        if (strncmp(p, word, length) == 0 && (p[length] == separator || !p[length])) return true;
    }
    return false;
}

static bool heeds(size_t strategy, const char *option)
{
    return is_in(remat_strategy_heeds(strategy), ' ', option);
}

/* The strategies that heed the option, ", " between two. */
static void put_names(const char *option, char names[MOST_NAMES])
{
    const remat_entry *entry;
    size_t used = 0;
    *names = '\0';
    for (size_t i = 0; (entry = remat_strategy_at(i)) && used < MOST_NAMES; i++)
        if (heeds(i, option))
            used += (size_t)snprintf(names + used, MOST_NAMES - used, "%s%s", used ? ", " : "",
                                     entry->name);
}

/* The flag that sets this option: "--slots". */
static amount flag_of(const char *option)
{
    amount shown;
    const amount own = option_flag(&(remat_option){.name = option});
    const char *name = own.text;
    for (int i = 0; i < FLAG_COUNT; i++)
        if (flags[i].option && strcmp(flags[i].option, option) == 0) name = flags[i].name;
    snprintf(shown.text, sizeof shown.text, "--%.40s", name);
    return shown;
}

static int check_option(session *s, const char *strategies, const char *option)
{
    const remat_entry *entry;
    char names[MOST_NAMES];
    put_names(option, names);
    for (size_t i = 0; (entry = remat_strategy_at(i)); i++)
        if (heeds(i, option) && (!strategies || is_in(strategies, ',', entry->name)))
            return REMAT_OK;
    if (!*names) return REMAT_OK; /* for all of them */
    return out_fail(s->out, REMAT_E_USAGE, commands[s->args->command].name, flag_of(option).text,
                    "%.60s does not heed it; these strategies do: %s", strategies, names);
}

int heeds_check(session *s, const char *strategies)
{
    const args *a = s->args;
    if (a->text[FLAG_OFFLOAD]) TRY(check_option(s, strategies, "offload"));
    for (int i = 0; i < a->n_options; i++) {
        TRY(check_option(s, strategies, a->options[i].name));
        if (strcmp(a->options[i].name, "host_bytes") == 0 && !a->text[FLAG_OFFLOAD])
            return out_fail(s->out, REMAT_E_USAGE, commands[a->command].name, "--host-bytes",
                            "is about what is offloaded, and there is no --offload");
    }
    return REMAT_OK;
}

label heeds_flags(size_t strategy)
{
    label all = {""};
    size_t used = 0;
    for (const char *p = remat_strategy_heeds(strategy); *p && used < sizeof all.text;) {
        amount word;
        const size_t length = strcspn(p, " ");
        snprintf(word.text, sizeof word.text, "%.*s", (int)length, p);
        p += length + strspn(p + length, " ");
        if (strcmp(word.text, "bandwidth") == 0) continue; /* --offload sets both */
        used += (size_t)snprintf(all.text + used, sizeof all.text - used, "%s%s", used ? " " : "",
                                 flag_of(word.text).text);
    }
    return all;
}
