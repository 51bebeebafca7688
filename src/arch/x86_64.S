/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64 entries: what a program's call meets first.
 *
 * A driver function without a typed wrapper is served here with no knowledge
 * of its signature: either jump straight to the real function, or save every
 * register that may hold an argument, let C do what the call's kind asks for,
 * restore them and jump. The stack is as the caller left it in both cases, so
 * stack arguments and the return address are the real function's.
 *
 * dlsym and dlvsym must be tail jumps: glibc finds out from the return
 * address who is asking, and RTLD_NEXT and RTLD_DEFAULT depend on it.
 */

#include "entries-spare.h"

    .text

/* Registers that may carry arguments; r11 holds the entry's index. */
    .macro save_arguments
    pushq   %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq    %rsp, %rbp
    .cfi_def_cfa_register %rbp
    andq    $-16, %rsp
    subq    $192, %rsp
    movq    %rdi, 0(%rsp)
    movq    %rsi, 8(%rsp)
    movq    %rdx, 16(%rsp)
    movq    %rcx, 24(%rsp)
    movq    %r8, 32(%rsp)
    movq    %r9, 40(%rsp)
    movq    %rax, 48(%rsp)
    movaps  %xmm0, 64(%rsp)
    movaps  %xmm1, 80(%rsp)
    movaps  %xmm2, 96(%rsp)
    movaps  %xmm3, 112(%rsp)
    movaps  %xmm4, 128(%rsp)
    movaps  %xmm5, 144(%rsp)
    movaps  %xmm6, 160(%rsp)
    movaps  %xmm7, 176(%rsp)
    .endm

    .macro restore_arguments
    movq    0(%rsp), %rdi
    movq    8(%rsp), %rsi
    movq    16(%rsp), %rdx
    movq    24(%rsp), %rcx
    movq    32(%rsp), %r8
    movq    40(%rsp), %r9
    movq    48(%rsp), %rax
    movaps  64(%rsp), %xmm0
    movaps  80(%rsp), %xmm1
    movaps  96(%rsp), %xmm2
    movaps  112(%rsp), %xmm3
    movaps  128(%rsp), %xmm4
    movaps  144(%rsp), %xmm5
    movaps  160(%rsp), %xmm6
    movaps  176(%rsp), %xmm7
    movq    %rbp, %rsp
    popq    %rbp
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    .endm

/* Call the C function \function with the entry's index, then jump to what it
 * returned: the real driver function. */
    .macro define_slow_path name, function
    .type   \name, @function
    .p2align 4
\name:
    .cfi_startproc
    save_arguments
    movl    %r11d, %edi
    call    \function
    movq    %rax, %r11
    restore_arguments
    jmp     *%r11
    .cfi_endproc
    .size   \name, . - \name
    .endm

    define_slow_path cgs_entry_slow, cgs_door_barrier
    define_slow_path cgs_entry_resolve, cgs_door_resolve

/* The body of an entry by its kind. */
    .macro body_PASS index
    jmp     *cgs_real+8*\index(%rip)
    .endm

    .macro body_BARRIER index
    cmpl    $0, cgs_gate(%rip)
    jne     1f
    jmp     *cgs_real+8*\index(%rip)
1:  movl    $\index, %r11d
    jmp     cgs_entry_slow
    .endm

    .macro body_always_slow index
    movl    $\index, %r11d
    jmp     cgs_entry_slow
    .endm

    .macro define_entry name, index, kind
    .globl  \name
    .type   \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
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
 * base + n * CGS_SPARE_SIZE. */
    .globl  cgs_spare_entries
    .hidden cgs_spare_entries
    .type   cgs_spare_entries, @function
    .p2align 5
cgs_spare_entries:
    .set    spare_index, CGS_NUM_ENTRIES
    .rept   CGS_NUM_SPARE
    .p2align 5
    endbr64
    body_BARRIER spare_index
    .set    spare_index, spare_index + 1
    .endr
    .p2align 5
    .size   cgs_spare_entries, . - cgs_spare_entries

/* Before libcuda is known, each slot of cgs_real leads to a stub that names
 * the entry and has it resolved. */
cgs_unresolved:
    .set    stub_index, 0
    .rept   CGS_NUM_ENTRIES + CGS_NUM_SPARE
    .p2align 4
    endbr64
    movl    $stub_index, %r11d
    jmp     cgs_entry_resolve
    .set    stub_index, stub_index + 1
    .endr

/* int cgs_missing(...): what a function does that the driver does not have. */
    .globl  cgs_missing
    .hidden cgs_missing
    .type   cgs_missing, @function
    .p2align 4
cgs_missing:
    endbr64
    movl    $500, %eax              /* CUDA_ERROR_NOT_FOUND */
    ret
    .size   cgs_missing, . - cgs_missing

/* void *dlsym(void *handle, const char *name)
 * void *dlvsym(void *handle, const char *name, const char *version)
 * Only names that begin with cu[A-Z] are ours. C is told who asks; where it
 * answers cgs_door_forward, libc is asked as if we had not been there. */
    .macro define_lookup name, caller_register
    .globl  \name
    .type   \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    testq   %rsi, %rsi
    je      1f
    cmpb    $'c', (%rsi)
    jne     1f
    cmpb    $'u', 1(%rsi)
    jne     1f
    movzbl  2(%rsi), %eax
    subl    $'A', %eax
    cmpl    $25, %eax
    ja      1f
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    movq    24(%rsp), \caller_register
    call    cgs_door_\name
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    leaq    cgs_door_forward(%rip), %r11
    cmpq    %r11, %rax
    je      1f
    ret
1:  jmp     *cgs_libc_\name(%rip)
    .cfi_endproc
    .size   \name, . - \name
    .endm

    define_lookup dlsym, %rdx
    define_lookup dlvsym, %rcx

/* First use of dlsym or dlvsym: find libc's, then go there. */
    .macro define_lookup_finder name
    .p2align 4
cgs_find_\name:
    .cfi_startproc
    save_arguments
    call    cgs_door_find_libc
    restore_arguments
    jmp     *cgs_libc_\name(%rip)
    .cfi_endproc
    .endm

    define_lookup_finder dlsym
    define_lookup_finder dlvsym

    .data
    .p2align 3
    .globl  cgs_libc_dlsym, cgs_libc_dlvsym
    .hidden cgs_libc_dlsym, cgs_libc_dlvsym
cgs_libc_dlsym:
    .quad   cgs_find_dlsym
cgs_libc_dlvsym:
    .quad   cgs_find_dlvsym

/* void *cgs_real[]: the real driver function of each entry. */
    .globl  cgs_real
    .hidden cgs_real
    .type   cgs_real, @object
    .p2align 6
cgs_real:
    .set    stub_index, 0
    .rept   CGS_NUM_ENTRIES + CGS_NUM_SPARE
    .quad   cgs_unresolved + 16 * stub_index
    .set    stub_index, stub_index + 1
    .endr
    .size   cgs_real, . - cgs_real

    .section .note.gnu.property, "a"
    .p2align 3
    .long   4, 16, 5
    .asciz  "GNU"
    .long   0xc0000002, 4, 3, 0     /* IBT and shadow stack are kept */

    .section .note.GNU-stack, "", @progbits
