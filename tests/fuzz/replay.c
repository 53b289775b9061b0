/* replay.c: runs the fuzz target over every file of the given folders, without libFuzzer: what the
 * fuzzer found stays found. Usage: fuzz_replay FOLDER... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) return perror(path), 1;
    static uint8_t bytes[1 << 20];
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    printf("%s (%zu bytes)\n", path, n);
    fflush(stdout);
    uint8_t *exact =
        malloc(n ? n : 1); /* a block of just this size: a sanitizer sees a read past the end */
    if (!exact) return 1;
    for (size_t i = 0; i < n; i++) exact[i] = bytes[i];
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) return perror(argv[i]), 1;
        for (struct dirent *entry; (entry = readdir(folder));)
            if (entry->d_name[0] != '.') {
                if (replay(argv[i], entry->d_name)) return 1;
                n++;
            }
        closedir(folder);
    }
    printf("%d files replayed\n", n);
    return n ? 0 : 1;
}
