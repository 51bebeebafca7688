/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that has nothing to do with CUDA has one thread, and no file is
 * open but its standard ones, however long it runs. Fails if not; what it
 * inherited does not count.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


enum {
    NO_THREAD_LOOKS = 10
};


static unsigned no_thread_entries(const char *name)
{
    DIR *folder      = opendir(name);
    unsigned entries = 0;

    if (folder == NULL) {
        perror(name);
        exit(EXIT_FAILURE);
    }
    while (readdir(folder) != NULL) {
        ++entries;
    }
    closedir(folder);
    return entries - 2;         /* . and .. */
}

int main(void)
{
    unsigned i;

    for (i = 0; i < NO_THREAD_LOOKS; ++i) {
        if (no_thread_entries("/proc/self/task") != 1) {
            fprintf(stderr, "%u threads\n",
                    no_thread_entries("/proc/self/task"));
            return EXIT_FAILURE;
        }
        usleep(10000);
    }
    printf("%u files\n", no_thread_entries("/proc/self/fd"));
    return EXIT_SUCCESS;
}
