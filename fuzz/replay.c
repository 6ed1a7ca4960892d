/* Runs a fuzz target over the files of a folder, so that a kept corpus is a plain test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    (void)fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0) { /* a folder */
        (void)fclose(file);
        return 0;
    }
    uint8_t *data = malloc((size_t)size + 1);
    const size_t got = data ? fread(data, 1, (size_t)size, file) : 0;
    (void)fclose(file);
    if (data)
        (void)LLVMFuzzerTestOneInput(data, got);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    size_t files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) {
            perror(argv[i]);
            return 1;
        }
        for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
            char path[4096];
            if (entry->d_name[0] == '.')
                continue;
            (void)snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (replay(path) != 0)
                return 1;
            files++;
        }
        (void)closedir(folder);
    }
    if (files == 0) {
        (void)fprintf(stderr, "no input: an empty corpus proves nothing\n");
        return 1;
    }
    (void)printf("%zu inputs replayed\n", files);
    return 0;
}
