/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers what the parts know into one report.
 */
#ifndef CGS_SUMMARY_H
#define CGS_SUMMARY_H

/** Write the report that CGSHIM_REPORT asks for, if any. */
void cgs_summary_write(void);

#endif
