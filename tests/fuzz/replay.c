/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives the files of folders to a fuzz target one by one, where there is no
 * libFuzzer: TARGET [FOLDER OR FILE...]
 */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static unsigned num_files;

static void replay_file(const char *name)
{
    FILE    *file = fopen(name, "rb");
    long    size;
    uint8_t *data;

    FUZZ_CHECK(file != NULL, "%s cannot be opened", name);
    FUZZ_CHECK(fseek(file, 0, SEEK_END) == 0, "%s", name);
    size = ftell(file);
    FUZZ_CHECK(size >= 0, "%s", name);
    rewind(file);
    /* Of just this size, so that a sanitizer sees what is read beyond. */
    data = malloc(size > 0 ? (size_t)size : 1);
    FUZZ_CHECK(data != NULL, "no memory");
    FUZZ_CHECK(fread(data, 1, (size_t)size, file) == (size_t)size, "%s", name);
    fclose(file);
    fprintf(stderr, "%s\n", name);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    ++num_files;
}

static void replay(const char *name)
{
    struct stat   st;
    struct dirent *entry;
    DIR           *folder;
    char          path[4096];

    FUZZ_CHECK(stat(name, &st) == 0, "%s is not there", name);
    if (!S_ISDIR(st.st_mode)) {
        replay_file(name);
        return;
    }
    folder = opendir(name);
    FUZZ_CHECK(folder != NULL, "%s cannot be opened", name);
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            FUZZ_CHECK(snprintf(path, sizeof(path), "%s/%s", name,
                                entry->d_name) < (int)sizeof(path), "%s",
                       name);
            replay_file(path);
        }
    }
    closedir(folder);
}

int main(int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; ++i) {
        replay(argv[i]);
    }
    fprintf(stderr, "%u files\n", num_files);
    return num_files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
