/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm64 entries: what a program's call meets first.
 *
 * They do what those of x86_64.S do, in the same order: either jump straight
 * to the real function, or save every register that may hold an argument, let
 * C do what the call's kind asks for, restore them and jump. The stack and x30
 * are as the caller left them in both cases, so stack arguments and the return
 * address are the real function's. Only x16 and x17 are changed, which any
 * call may change on its way.
 *
 * dlsym and dlvsym must be tail jumps: glibc finds out from the return
 * address who is asking, and RTLD_NEXT and RTLD_DEFAULT depend on it.
 *
 * What other threads write is read by ldar: what they did before is then seen
 * by all that follows, the real function among it. On x86-64 every load does
 * that.
 */

#include "entries-spare.h"

    .text

/* Registers that may carry arguments, or say where a result goes (x8); w17
 * holds the entry's index. */
    .macro save_arguments
    stp     x29, x30, [sp, -224]!
    .cfi_def_cfa_offset 224
    .cfi_offset 29, -224
    .cfi_offset 30, -216
    mov     x29, sp
    stp     x0, x1, [sp, 16]
    stp     x2, x3, [sp, 32]
    stp     x4, x5, [sp, 48]
    stp     x6, x7, [sp, 64]
    str     x8, [sp, 80]
    stp     q0, q1, [sp, 96]
    stp     q2, q3, [sp, 128]
    stp     q4, q5, [sp, 160]
    stp     q6, q7, [sp, 192]
    .endm

    .macro restore_arguments
    ldp     x0, x1, [sp, 16]
    ldp     x2, x3, [sp, 32]
    ldp     x4, x5, [sp, 48]
    ldp     x6, x7, [sp, 64]
    ldr     x8, [sp, 80]
    ldp     q0, q1, [sp, 96]
    ldp     q2, q3, [sp, 128]
    ldp     q4, q5, [sp, 160]
    ldp     q6, q7, [sp, 192]
    ldp     x29, x30, [sp], 224
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    .endm

/* Jump to what a pointer names. By x16: a landing pad for calls takes jumps by
 * x16 and x17 alone. */
    .macro jump_by pointer
    adrp    x16, \pointer
    add     x16, x16, :lo12:\pointer
    ldar    x16, [x16]
    br      x16
    .endm

/* Call the C function \function with the entry's index, then jump to what it
 * returned: the real driver function. */
    .macro define_slow_path name, function
    .type   \name, %function
    .p2align 4
\name:
    .cfi_startproc
    save_arguments
    mov     w0, w17
    bl      \function
    mov     x16, x0
    restore_arguments
    br      x16
    .cfi_endproc
    .size   \name, . - \name
    .endm

    define_slow_path cgs_entry_slow, cgs_door_barrier
    define_slow_path cgs_entry_resolve, cgs_door_resolve

/* The body of an entry by its kind. */
    .macro body_PASS index
    jump_by cgs_real+8*\index
    .endm

    .macro body_BARRIER index
    adrp    x16, cgs_gate
    add     x16, x16, :lo12:cgs_gate
    ldar    w16, [x16]
    cbnz    w16, 1f
    jump_by cgs_real+8*\index
1:  mov     w17, #\index
    b       cgs_entry_slow
    .endm

    .macro body_always_slow index
    mov     w17, #\index
    b       cgs_entry_slow
    .endm

    .macro define_entry name, index, kind
    .globl  \name
    .type   \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint    34                      /* bti c, as older assemblers take it */
    body_\kind \index
    .cfi_endproc
    .size   \name, . - \name
    .endm

#define CGS_ENTRY(_index, _name, _kind) CGS_ENTRY_##_kind(_index, _name)
#define CGS_ENTRY_WRAP(_index, _name)
#define CGS_ENTRY_PASS(_index, _name)    define_entry _name, _index, PASS
#define CGS_ENTRY_BARRIER(_index, _name) define_entry _name, _index, BARRIER
#define CGS_ENTRY_FREE(_index, _name)    define_entry _name, _index, always_slow
#define CGS_ENTRY_EVENT(_index, _name)  define_entry _name, _index, always_slow
#define CGS_ENTRY_DROP(_index, _name)    define_entry _name, _index, always_slow
#include "entries.def"
#undef CGS_ENTRY

/* Spare entries, for functions that only a newer driver has: barriers whose
 * addresses doors.c gives out one by one. Equal size, so that the address is
 * base + n * CGS_SPARE_SIZE; .org complains of one that is larger. */
    .globl  cgs_spare_entries
    .hidden cgs_spare_entries
    .type   cgs_spare_entries, %function
    .p2align 6
cgs_spare_entries:
    .cfi_startproc
    .set    spare_index, CGS_NUM_ENTRIES
    .rept   CGS_NUM_SPARE
    hint    34
    body_BARRIER spare_index
    .set    spare_index, spare_index + 1
    .org    cgs_spare_entries + CGS_SPARE_SIZE * (spare_index - CGS_NUM_ENTRIES)
    .endr
    .cfi_endproc
    .size   cgs_spare_entries, . - cgs_spare_entries

/* Before libcuda is known, each slot of cgs_real leads to a stub that names
 * the entry and has it resolved. */
cgs_unresolved:
    .cfi_startproc
    .set    stub_index, 0
    .rept   CGS_NUM_ENTRIES + CGS_NUM_SPARE
    .p2align 4
    hint    34
    mov     w17, #stub_index
    b       cgs_entry_resolve
    .set    stub_index, stub_index + 1
    .endr
    .cfi_endproc

/* int cgs_missing(...): what a function does that the driver does not have. */
    .globl  cgs_missing
    .hidden cgs_missing
    .type   cgs_missing, %function
    .p2align 4
cgs_missing:
    .cfi_startproc
    hint    34
    mov     w0, #500                /* CUDA_ERROR_NOT_FOUND */
    ret
    .cfi_endproc
    .size   cgs_missing, . - cgs_missing

/* void *dlsym(void *handle, const char *name)
 * void *dlvsym(void *handle, const char *name, const char *version)
 * Only names that begin with cu[A-Z] are ours. C is told who asks; where it
 * answers cgs_door_forward, libc is asked as if we had not been there. */
    .macro define_lookup name, caller_register
    .globl  \name
    .type   \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint    34
    cbz     x1, 1f
    ldrb    w16, [x1]
    cmp     w16, #'c'
    b.ne    1f
    ldrb    w16, [x1, 1]
    cmp     w16, #'u'
    b.ne    1f
    ldrb    w16, [x1, 2]
    sub     w16, w16, #'A'
    cmp     w16, #25
    b.hi    1f
    stp     x29, x30, [sp, -48]!
    .cfi_def_cfa_offset 48
    .cfi_offset 29, -48
    .cfi_offset 30, -40
    mov     x29, sp
    stp     x0, x1, [sp, 16]
    str     x2, [sp, 32]
    mov     \caller_register, x30
    bl      cgs_door_\name
    mov     x17, x0
    ldp     x0, x1, [sp, 16]
    ldr     x2, [sp, 32]
    ldp     x29, x30, [sp], 48
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    adrp    x16, cgs_door_forward
    add     x16, x16, :lo12:cgs_door_forward
    cmp     x17, x16
    b.eq    1f
    mov     x0, x17
    ret
1:  jump_by cgs_libc_\name
    .cfi_endproc
    .size   \name, . - \name
    .endm

    define_lookup dlsym, x2
    define_lookup dlvsym, x3

/* First use of dlsym or dlvsym: find libc's, then go there. */
    .macro define_lookup_finder name
    .p2align 4
cgs_find_\name:
    .cfi_startproc
    hint    34
    save_arguments
    bl      cgs_door_find_libc
    restore_arguments
    jump_by cgs_libc_\name
    .cfi_endproc
    .endm

    define_lookup_finder dlsym
    define_lookup_finder dlvsym

    .data
    .p2align 3
    .globl  cgs_libc_dlsym, cgs_libc_dlvsym
    .hidden cgs_libc_dlsym, cgs_libc_dlvsym
cgs_libc_dlsym:
    .xword  cgs_find_dlsym
cgs_libc_dlvsym:
    .xword  cgs_find_dlvsym

/* void *cgs_real[]: the real driver function of each entry. */
    .globl  cgs_real
    .hidden cgs_real
    .type   cgs_real, %object
    .p2align 6
cgs_real:
    .set    stub_index, 0
    .rept   CGS_NUM_ENTRIES + CGS_NUM_SPARE
    .xword  cgs_unresolved + 16 * stub_index
    .set    stub_index, stub_index + 1
    .endr
    .size   cgs_real, . - cgs_real

    .section .note.gnu.property, "a"
    .p2align 3
    .word   4, 16, 5
    .asciz  "GNU"
    .word   0xc0000000, 4, 1, 0     /* BTI is kept: every jump meets a pad */

    .section .note.GNU-stack, "", %progbits
