/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found to repeat, as rules that a configuration can hold
 * (CGSHIM_SAVE).
 */
#ifndef CGS_SAVE_H
#define CGS_SAVE_H

/** Write the file, if one is asked for; at exit. */
void cgs_save_write(void);

#endif
