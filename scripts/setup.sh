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
    pkg-config --exists 'check >= 0.12' 2> /dev/null || echo check
    echo '#include <uthash.h>' | cc -E - > /dev/null 2>&1 || echo uthash-dev
    [ -e /usr/include/stdio.h ] || echo libc6-dev
}

# setup_apt PACKAGE...: waits for another apt that is at work, as on a machine
# that has just been started.
setup_apt()
{
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends -o DPkg::Lock::Timeout=300 \
        -o Acquire::Retries=3 "$@"
}

# Installs what is missing where that can be done; configure has the last word
# on what is needed.
setup_packages()
{
    missing=$(setup_missing | tr '\n' ' ')
    [ -z "$missing" ] || setup_install "$missing"
}

# setup_install "PACKAGE...": says so, and goes on where that cannot be done.
setup_install()
{
    missing=$1
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
    # shellcheck disable=SC2086
    $as_root apt-get update -qq -o Acquire::Retries=3 ||
        echo "apt-get update failed: going on"
    # shellcheck disable=SC2086
    setup_apt $missing && return 0
    # One by one: a package that cannot be had must not cost the others.
    for package in $missing; do
        setup_apt "$package" ||
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

# Whether build/ is not configured, or not as it would be now.
setup_unconfigured()
{
    [ ! -e "$build/Makefile" ] || [ ! -e "$build/config.status" ] ||
        setup_newer "$root/configure" "$build/config.status" ||
        [ "${CONFIGURE_ARGS:-}" != \
            "$(cat "$build/configure-args" 2> /dev/null)" ]
}

# A build directory that is configured as it would be now.
setup_configure()
{
    if [ ! -x "$root/configure" ] || [ ! -e "$root/Makefile.in" ] ||
        setup_newer "$root/configure.ac" "$root/configure"; then
        setup_say "autoreconf"
        (cd "$root" && autoreconf -i) || setup_fail "autoreconf failed"
    fi
    mkdir -p "$build" || setup_fail "cannot make $build"
    if setup_unconfigured; then
        setup_say "configure"
        # shellcheck disable=SC2086
        (cd "$build" && "$root/configure" ${CONFIGURE_ARGS:-}) ||
            setup_fail "configure failed"
        # Objects do not depend on how they were configured.
        make -s -C "$build" clean || setup_fail "make clean failed"
        echo "${CONFIGURE_ARGS:-}" > "$build/configure-args"
    fi
}

# setup_make TARGET...
setup_make()
{
    setup_say "make"
    make -C "$build" -j "$(setup_jobs)" "$@" || setup_fail "make failed"
}

# setup_build TARGET...
setup_build()
{
    setup_configure
    setup_make "$@"
}

# setup_find NAME: a file that the build made.
setup_find()
{
    found=$(find "$build" -name "$1" \( -type f -o -type l \) | head -n 1)
    [ -n "$found" ] || setup_fail "the build has no $1"
    echo "$found"
}
