# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What demo and check share (sourced by them): packages that are missing, and
# the build in build/ of the source tree. Wants `root`, the source tree.

build=${BUILD_DIR:-$root/build}

setup_say()
{
    echo "== $*"
}

setup_fail()
{
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# The Debian packages whose command or header is not there.
setup_missing()
{
    for pair in gcc:cc make:make autoconf:autoconf automake:automake \
        libtool:libtoolize pkg-config:pkg-config; do
        command -v "${pair#*:}" > /dev/null 2>&1 || echo "${pair%:*}"
    done
    pkg-config --exists check 2> /dev/null || echo check
    echo '#include <uthash.h>' | cc -E - > /dev/null 2>&1 || echo uthash-dev
    [ -e /usr/include/stdio.h ] || echo libc6-dev
}

# Installs what is missing where that can be done; configure has the last word
# on what is needed.
setup_packages()
{
    missing=$(setup_missing | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    setup_say "missing: $missing"

    as_root=
    if [ "$(id -u)" != 0 ]; then
        as_root="sudo -n"
        if ! sudo -n true 2> /dev/null; then
            echo "not root and no sudo: going on without"
            return 0
        fi
    fi
    if ! command -v apt-get > /dev/null 2>&1; then
        echo "no apt-get here: going on without"
        return 0
    fi
    $as_root apt-get update -qq || echo "apt-get update failed: going on"
    # One by one: a package that cannot be had must not cost the others.
    for package in $missing; do
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "$package" ||
            echo "could not install $package: going on without"
    done
}

# The number of jobs: BUILD_JOBS, or one a processor.
setup_jobs()
{
    echo "${BUILD_JOBS:-$(nproc 2> /dev/null || echo 1)}"
}

# setup_newer FILE THAN
setup_newer()
{
    [ -n "$(find "$1" -newer "$2")" ]
}

# setup_build TARGET...
setup_build()
{
    if [ ! -x "$root/configure" ] ||
        setup_newer "$root/configure.ac" "$root/configure"; then
        setup_say "autoreconf"
        (cd "$root" && autoreconf -i) || setup_fail "autoreconf failed"
    fi
    mkdir -p "$build" || setup_fail "cannot make $build"
    if [ ! -e "$build/Makefile" ] ||
        setup_newer "$root/configure" "$build/config.status"; then
        setup_say "configure"
        # shellcheck disable=SC2086
        (cd "$build" && "$root/configure" ${CONFIGURE_ARGS:-}) ||
            setup_fail "configure failed"
    fi
    setup_say "make"
    make -C "$build" -j "$(setup_jobs)" "$@" || setup_fail "make failed"
}

# setup_find NAME: a file that the build made.
setup_find()
{
    found=$(find "$build" -name "$1" \( -type f -o -type l \) | head -n 1)
    [ -n "$found" ] || setup_fail "the build has no $1"
    echo "$found"
}
