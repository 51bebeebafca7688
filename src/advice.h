/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user can do about what a report says, in words. It reads the report
 * and nothing else.
 */
#ifndef CGS_ADVICE_H
#define CGS_ADVICE_H

#include "report.h"

/** Lines about one region, and about the process. */
#define CGS_ADVICE_LINES  2
#define CGS_ADVICE_LENGTH 384

typedef struct {
    unsigned num;
    char     line[CGS_ADVICE_LINES][CGS_ADVICE_LENGTH]; /**< escaped */
} cgs_advice_t;

/** About the process: whether there are regions, and the right ones. */
void cgs_advise(const cgs_report_t *report, cgs_advice_t *advice);

/** About one of the report's regions; none where it does well. */
void cgs_advise_region(const cgs_report_t *report,
                       const cgs_region_report_t *region,
                       cgs_advice_t *advice);

#endif
