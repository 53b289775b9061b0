/* replay.c: runs a fuzz target over every file of a folder, without libFuzzer: what the fuzzer
 * found stays found. With SECONDS it then goes on for so long with mutations of these files, one
 * after the other from FIRST_CASE on: for sanitizers that libFuzzer does not get along with. The
 * number of the last case that is printed leads back to it. Usage: replay FOLDER [SECONDS
 * FIRST_CASE] */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "random_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_FILES = 10000, MOST_BYTES = 1 << 20, MOST_EDITS = 8, MOST_GROWTH = 64 };

typedef struct file {
    uint8_t *bytes;
    size_t n;
} file;

static file files[MOST_FILES];
static uint32_t n_files;

/* In a block of just this size, so that a sanitizer sees a read past the end. */
static void run(const uint8_t *bytes, size_t n)
{
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact) abort();
    if (n) memcpy(exact, bytes, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

static int replay(const char *folder, const char *name)
{
    static uint8_t bytes[MOST_BYTES];
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *input = fopen(path, "rb");
    if (!input) return perror(path), 1;
    file *f = &files[n_files++];
    f->n = fread(bytes, 1, sizeof bytes, input);
    fclose(input);
    f->bytes = malloc(f->n + MOST_GROWTH);
    if (!f->bytes) return 1;
    memcpy(f->bytes, bytes, f->n);
    printf("%s (%zu bytes)\n", path, f->n);
    fflush(stdout);
    run(f->bytes, f->n);
    return 0;
}

/* One edit: a byte set, put in or taken out, or a run of bytes from another file. */
static size_t edit(random_source *r, uint8_t *bytes, size_t n)
{
    const size_t at = random_below(r, (uint32_t)n + 1);
    const uint32_t kind = random_below(r, 4);
    if (kind == 0 && at < n) return bytes[at] = (uint8_t)rm_random_next(r), n;
    if (kind == 1 && at < n) return memmove(bytes + at, bytes + at + 1, n - at - 1), n - 1;
    if (kind == 2) {
        memmove(bytes + at + 1, bytes + at, n - at);
        return bytes[at] = (uint8_t)rm_random_next(r), n + 1;
    }
    const file *other = &files[random_below(r, n_files)];
    const size_t room = n - at, from = random_below(r, (uint32_t)other->n + 1),
                 most = other->n - from < room ? other->n - from : room;
    memcpy(bytes + at, other->bytes + from, random_below(r, (uint32_t)most + 1));
    return n;
}

static void mutate(uint64_t number)
{
    static uint8_t bytes[MOST_BYTES + MOST_GROWTH];
    random_source r = {number};
    const file *f = &files[random_below(&r, n_files)];
    size_t n = f->n;
    if (n) memcpy(bytes, f->bytes, n);
    for (uint32_t edits = 1 + random_below(&r, MOST_EDITS); edits > 0; edits--)
        n = edit(&r, bytes, n);
    printf("case %llu\n", (unsigned long long)number);
    fflush(stdout);
    run(bytes, n);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int main(int argc, char **argv)
{
    struct dirent **names = NULL;
    if (argc != 2 && argc != 4)
        return fprintf(stderr, "usage: %s FOLDER [SECONDS FIRST_CASE]\n", argv[0]), 1;
    const int n_names = scandir(argv[1], &names, NULL, by_name);
    if (n_names < 0) return perror(argv[1]), 1;
    for (int i = 0; i < n_names && n_files < MOST_FILES; free(names[i++]))
        if (names[i]->d_name[0] != '.' && replay(argv[1], names[i]->d_name)) return 1;
    free(names);
    printf("%u files replayed\n", n_files);
    if (n_files == 0) return 1;
    if (argc == 4) {
        const time_t end = time(NULL) + strtol(argv[2], NULL, 10);
        for (uint64_t number = strtoull(argv[3], NULL, 10); time(NULL) < end; number++)
            mutate(number);
    }
    for (uint32_t i = 0; i < n_files; i++) free(files[i].bytes);
    return 0;
}
