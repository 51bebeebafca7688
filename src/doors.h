/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors through which a program comes to the driver: exported symbols,
 * dlsym and dlvsym, and cuGetProcAddress. All three lead to one entry table.
 */
#ifndef CGS_DOORS_H
#define CGS_DOORS_H

#include <stdbool.h>

/**
 * Our entry for a driver function that the program was given the address of.
 * Any thread; takes a lock that no driver call is made under.
 *
 * @param address Address as the driver or dlsym gave it, may be NULL.
 * @param name    Name it was asked for by, for the log.
 *
 * @return Our entry for it, or the address itself where it is none of
 *         libcuda's functions or the shim has stood down.
 */
void *cgs_door_map(void *address, const char *name);

/** Whether libcuda has been found in this process. Any thread. */
bool cgs_door_has_driver(void);

/** Whether the driver has the function behind an entry. Any thread. */
bool cgs_door_has(unsigned index);

/** The name of an entry, spare ones included. Any thread. */
const char *cgs_door_name(unsigned index);

#endif
