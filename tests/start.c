/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a test program that was built for another CPU, under an emulator.
 *
 * In such a build the tests start tests/PROGRAM as tests/start/PROGRAM, which
 * is a link to this, and what they have compiled themselves by `start PROGRAM`.
 * It is built for the CPU that it runs on, and statically: a dynamic linker of
 * that CPU would complain of what LD_PRELOAD names, which is for the program.
 * The emulator is given it as an option.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef EMULATOR
#error "EMULATOR is the emulator and its options, with spaces between"
#endif

#define START "tests/start/"

enum {
    MAX_WORDS = 64
};

/* The path of the program that a link stands for. */
static char *program_of(const char *link)
{
    const char *start = strstr(link, START);
    char       *path  = malloc(strlen(link) + 1);

    if ((start == NULL) || (path == NULL)) {
        fprintf(stderr, "start: %s is no link in " START "\n", link);
        exit(99);
    }
    sprintf(path, "%.*stests/%s", (int)(start - link), link,
            start + strlen(START));
    return path;
}

static bool is_link(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strcmp(slash != NULL ? slash + 1 : path, "start") != 0;
}

/* "LD_PRELOAD=..." if it is set, else NULL. */
static char *take_preload(void)
{
    const char *preload = getenv("LD_PRELOAD");
    char       *setting = NULL;

    if ((preload != NULL) && (*preload != '\0')) {
        setting = malloc(sizeof("LD_PRELOAD=") + strlen(preload));
        if (setting != NULL) {
            sprintf(setting, "LD_PRELOAD=%s", preload);
        }
    }
    unsetenv("LD_PRELOAD");
    return setting;
}

int main(int argc, char **argv)
{
    char   emulator[] = EMULATOR;
    char   **command  = calloc(MAX_WORDS + (size_t)argc, sizeof(*command));
    char   *preload   = take_preload();
    size_t num        = 0;
    char   *word;

    if (command == NULL) {
        return 99;
    }
    if (!is_link(argv[0]) && (argc < 2)) {
        fprintf(stderr, "usage: start PROGRAM [ARGUMENT...]\n");
        return 99;
    }
    for (word = strtok(emulator, " "); (word != NULL) && (num < MAX_WORDS - 8);
         word = strtok(NULL, " ")) {
        command[num++] = word;
    }
    if (preload != NULL) {
        command[num++] = "-E";
        command[num++] = preload;
    }
    if (is_link(argv[0])) {
        /* The program has the name that it was started by. */
        command[num++] = "-0";
        command[num++] = argv[0];
        command[num++] = program_of(argv[0]);
    }
    memcpy(command + num, argv + 1, (size_t)argc * sizeof(*argv));
    execvp(command[0], command);
    fprintf(stderr, "start: %s: %s\n", command[0], strerror(errno));
    return 99;
}
