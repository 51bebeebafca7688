/* SPDX-License-Identifier: Apache-2.0 */
/* What the two libraries of rtld_next.c offer. The first one's functions add
 * one to what the next library's function of the same name says. */
#ifndef RTLD_NEXT_H
#define RTLD_NEXT_H

/* A name that is nobody's business, and two that look like the driver's. */
int chain_value(void);
int cuChainValue(void);
int cuchain_value(void);

/* The driver's version, asked through RTLD_NEXT from the first library. */
int chain_driver_version(void);

/* cuStreamSynchronize, likewise: what it waits for must have been issued. */
int chain_synchronize(void *stream);

/* How often the first library's functions were called. */
extern int chain_calls;

#endif
