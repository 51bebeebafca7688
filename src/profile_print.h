/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile as a table for people, or as JSON.
 */
#ifndef CGS_PROFILE_PRINT_H
#define CGS_PROFILE_PRINT_H

#include "profile_join.h"

/**
 * Write the profile.
 *
 * @param target "stderr" for the table, or the name of a file for JSON, with
 *               %p and %h.
 *
 * @return 0, or -errno.
 */
int cgs_profile_print(const cgs_profile_t *profile, const char *target);

#endif
