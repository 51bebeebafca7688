# SPDX-License-Identifier: Apache-2.0

# CGSHIM_CUDA
# -----------
# Find the CUDA Toolkit: --with-cuda=DIR, else CUDA_HOME, else the nvcc on
# PATH, else /usr/local/cuda. Sets CUDA_DIR, CUDA_CPPFLAGS and NVCC (may be
# empty).
AC_DEFUN([CGSHIM_CUDA], [
AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR], [CUDA Toolkit to build with])],
    [AS_IF([test "x$withval" = xyes || test "x$withval" = xno],
        [AC_MSG_ERROR([--with-cuda takes the folder of a CUDA Toolkit])])
    CUDA_DIR=$withval], [CUDA_DIR=])
AC_PATH_PROG([NVCC], [nvcc])
AC_MSG_CHECKING([for the CUDA Toolkit])
AS_IF([test -n "$CUDA_DIR"], [],
    [test -n "$CUDA_HOME"], [CUDA_DIR=$CUDA_HOME],
    [test -n "$NVCC"],
        [CUDA_DIR=$(dirname "$(dirname "$(readlink -f "$NVCC")")")],
    [CUDA_DIR=/usr/local/cuda])
AS_IF([test -r "$CUDA_DIR/include/cuda.h"], [],
    [AC_MSG_RESULT([no])
    AC_MSG_ERROR([no include/cuda.h in $CUDA_DIR. Install the CUDA Toolkit
12.8 or newer (package cuda-toolkit of NVIDIA's repository, or
nvidia-cuda-toolkit), or say where it is: ./configure --with-cuda=DIR])])
AC_MSG_RESULT([$CUDA_DIR])
AS_IF([test -x "$CUDA_DIR/bin/nvcc"], [NVCC=$CUDA_DIR/bin/nvcc])
CUDA_CPPFLAGS="-isystem $CUDA_DIR/include"
AC_SUBST([CUDA_DIR])
AC_SUBST([CUDA_CPPFLAGS])

cgshim_save_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
AC_MSG_CHECKING([whether cuda.h is that of CUDA 12.8 or newer])
AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
#include <cuda.h>
#if CUDA_VERSION < 12080
#error too old
#endif
]])], [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
    AC_MSG_ERROR([$CUDA_DIR/include/cuda.h is too old: install the CUDA
Toolkit 12.8 or newer, or name one by --with-cuda=DIR])])
AC_CHECK_HEADER([nvtx3/nvToolsExt.h], [have_nvtx=yes], [have_nvtx=no])
CPPFLAGS=$cgshim_save_CPPFLAGS
AS_IF([test "$have_nvtx" = no],
    [AC_MSG_ERROR([no nvtx3/nvToolsExt.h in $CUDA_DIR/include: install the
NVTX headers of the CUDA Toolkit (package cuda-nvtx)])])

# CUPTI's headers lie apart in some toolkits; without them there is no profile.
CUPTI_CPPFLAGS=
AC_MSG_CHECKING([for the headers of CUPTI])
have_cupti=no
for cgshim_dir in "$CUDA_DIR/include" "$CUDA_DIR/extras/CUPTI/include"; do
    AS_IF([test $have_cupti = no && test -r "$cgshim_dir/cupti.h"],
        [CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS -isystem $cgshim_dir"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <cupti.h>
#if CUPTI_API_VERSION < 26
#error too old
#endif
]], [[CUpti_ActivityKernel9 kernel; CUpti_ActivityMemcpy5 copy;
CUpti_ActivityMemset3 set; (void)kernel; (void)copy; (void)set;]])],
            [have_cupti=yes
            CUPTI_CPPFLAGS="-isystem $cgshim_dir"])
        CPPFLAGS=$cgshim_save_CPPFLAGS])
done
AC_MSG_RESULT([$have_cupti])
AS_IF([test $have_cupti = yes],
    [AC_DEFINE([HAVE_CUPTI], [1], [Define to 1 with the headers of CUPTI])],
    [AC_MSG_WARN([no cupti.h in $CUDA_DIR: CGSHIM_PROFILE is left out])])
AC_SUBST([CUPTI_CPPFLAGS])
AM_CONDITIONAL([HAVE_CUPTI], [test $have_cupti = yes])
])

# CGSHIM_DEPENDENCIES
# -------------------
# uthash (headers) to build, check to run the unit tests.
AC_DEFUN([CGSHIM_DEPENDENCIES], [
AC_CHECK_HEADER([uthash.h], [],
    [AC_MSG_ERROR([uthash.h not found: install it (Debian and Ubuntu: apt-get
install uthash-dev)])])
PKG_CHECK_MODULES([CHECK], [check >= 0.12], [have_check=yes],
    [have_check=no
    AC_MSG_WARN([the library check was not found: the unit tests are left out
(Debian and Ubuntu: apt-get install check)])])
AM_CONDITIONAL([HAVE_CHECK], [test "$have_check" = yes])
WARNING_CFLAGS="-Wall -Wextra"
])

# CGSHIM_SANITIZER
# ----------------
# --enable-sanitizer=LIST instruments the library and all that the tests build.
# Sets SANITIZER (the list; empty without one) and SANITIZER_CFLAGS.
AC_DEFUN([CGSHIM_SANITIZER], [
AC_ARG_ENABLE([sanitizer],
    [AS_HELP_STRING([--enable-sanitizer=LIST],
        [instrument the library and the tests: address,undefined or thread])],
    [SANITIZER=$enableval], [SANITIZER=])
AS_CASE([$SANITIZER],
    [no], [SANITIZER=],
    [yes], [SANITIZER=address,undefined])
SANITIZER_CFLAGS=
AS_IF([test -n "$SANITIZER"], [
    SANITIZER_CFLAGS="-fsanitize=$SANITIZER -fno-sanitize-recover=all"
    SANITIZER_CFLAGS="$SANITIZER_CFLAGS -fno-omit-frame-pointer"
    cgshim_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $SANITIZER_CFLAGS"
    AC_MSG_CHECKING([whether programs run with -fsanitize=$SANITIZER])
    AC_RUN_IFELSE([AC_LANG_PROGRAM([], [])], [cgshim_runs=yes],
        [cgshim_runs=no], [cgshim_runs=unknown])
    AC_MSG_RESULT([$cgshim_runs])
    AS_IF([test $cgshim_runs = no],
        [AC_MSG_ERROR([no program that $CC builds with -fsanitize=$SANITIZER
runs here. With thread, addresses may have to be the same in each run: put
setarch -R before ./configure and before make check])])
    # gcc's runtime is a library, and shared libraries are linked to it.
    CFLAGS="$CFLAGS -shared -fPIC -Wl,-z,defs"
    AC_MSG_CHECKING([whether libraries link with -fsanitize=$SANITIZER])
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
int get(int *p);
int get(int *p) { return *p; }
]])], [cgshim_links=yes], [cgshim_links=no])
    AC_MSG_RESULT([$cgshim_links])
    AS_IF([test $cgshim_links = no],
        [AC_MSG_ERROR([$CC cannot link a library with -fsanitize=$SANITIZER and
-z defs: use gcc])])
    CFLAGS=$cgshim_save_CFLAGS
])
AC_SUBST([SANITIZER])
AC_SUBST([SANITIZER_CFLAGS])
])

# CGSHIM_EMULATOR
# ---------------
# EMULATOR, where this CPU is another than the build's: what runs its programs,
# for the tests. They start them by way of tests/start.c then, which is built by
# CC_FOR_BUILD (cc).
AC_DEFUN([CGSHIM_EMULATOR], [
AC_ARG_VAR([EMULATOR],
    [command that runs programs for the host, for the tests of a cross build])
AC_ARG_VAR([CC_FOR_BUILD], [C compiler for the machine that builds (cc)])
: "${CC_FOR_BUILD:=cc}"
AS_IF([test "$cross_compiling" != yes], [EMULATOR=],
    [test -z "$EMULATOR"],
    [AC_MSG_WARN([no EMULATOR: programs for $host cannot be run here, so make
check fails])])
AM_CONDITIONAL([EMULATED], [test -n "$EMULATOR"])
])

# CGSHIM_FUZZER
# -------------
# A compiler that has libFuzzer, for `make fuzz`: FUZZ_CC, else CC, else a
# clang. Sets FUZZ_CC (empty without one) and FUZZ_CFLAGS.
AC_DEFUN([CGSHIM_FUZZER], [
AC_ARG_VAR([FUZZ_CC], [C compiler for make fuzz, one with libFuzzer (clang)])
FUZZ_CFLAGS="-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all"
AC_MSG_CHECKING([for a compiler with libFuzzer])
cgshim_save_CC=$CC
cgshim_save_CFLAGS=$CFLAGS
CFLAGS=$FUZZ_CFLAGS
cgshim_found=
for CC in ${FUZZ_CC:-"$CC" clang}; do
    AS_IF([test -z "$cgshim_found"],
        [AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return data == NULL && size > 0;
}
]])], [cgshim_found=$CC])])
done
CC=$cgshim_save_CC
CFLAGS=$cgshim_save_CFLAGS
FUZZ_CC=$cgshim_found
AC_MSG_RESULT([${FUZZ_CC:-no}])
AC_SUBST([FUZZ_CFLAGS])
])
