/* SPDX-License-Identifier: BSD-3-Clause */

/* corpus DIR: gives a fuzz target each input of its corpus, each beginning of
 * it, and it with each of its bytes changed in a few ways. Always the same. */

#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define INPUT_MAX 4096

static void give(uint8_t *input, size_t size)
{
    static const uint8_t changes[] = { 0x01, 0x80, 0xff };
    size_t i, j;

    for (i = 0; i <= size; i++) {
        LLVMFuzzerTestOneInput(input, i);
    }
    for (i = 0; i < size; i++) {
        for (j = 0; j < sizeof(changes); j++) {
            input[i] ^= changes[j];
            LLVMFuzzerTestOneInput(input, size);
            input[i] ^= changes[j];
        }
    }
}

static bool give_file(const char *dir, const char *name)
{
    static uint8_t input[INPUT_MAX];
    char path[4096];
    size_t size;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return false;
    }
    size = fread(input, 1, sizeof(input), file);
    fclose(file);
    give(input, size);
    return true;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    struct dirent *entry;
    DIR *dir;

    dir = opendir(argc == 2 ? argv[1] : "");
    if (dir == NULL) {
        fprintf(stderr, "usage: %s DIRECTORY OF INPUTS\n", argv[0]);
        return 2;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            if (!give_file(argv[1], entry->d_name)) {
                return 1;
            }
            count++;
        }
    }
    closedir(dir);
    printf("%u inputs and their variations\n", count);
    return count > 0 ? 0 : 1;
}
