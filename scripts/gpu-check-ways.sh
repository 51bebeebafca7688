# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The parts of gpu-check that run a program several ways, each in processes of
# its own that come in turn: apps, auto and watch. Sourced by gpu-check, whose
# functions and variables these use.
#
# plain and hand are without the shim, marks and loaded with it, auto with it
# and CGSHIM_AUTO=1. Once more the program runs with CGSHIM=observe, to count
# its launches. Only `marks` gives a program --marks, and only `hand` --graph.

# Variables are gpu-check's.
# shellcheck disable=SC2154

# --- building -----------------------------------------------------------------

# build_app NAME static|shared [LIBRARY...]: they are linked to.
build_app()
{
    local name=$1 kind=$2 library file folders=() files=()
    shift 2

    for library in "$@"; do
        if ! file=$(library_of "$library"); then
            row test "app-$name" SKIP "$library is not installed"
            return
        fi
        files+=("$file")
        folders+=(-Xlinker "-rpath,$(dirname "$file")")
    done
    compile "app-$name-$kind" "$nvcc" "${nvcc_flags[@]}" \
        "${app_includes[@]}" -cudart "$kind" -DAPP_CUDART="\"$kind\"" \
        -o "$bin/app-$name-$kind" "$gpu/apps/$name.cu" "${files[@]}" \
        "${folders[@]}" -ldl
}

# The libraries' headers may lie elsewhere than the Toolkit's.
find_app_headers()
{
    local header folder

    app_includes=()
    for header in cublas_v2.h cublasLt.h cusparse.h; do
        folder=$(include_of "$header") && [ "$folder" != "$cuda/include" ] &&
            app_includes+=(-I "$folder")
    done
}

build_apps()
{
    find_app_headers
    build_app jacobi static &
    build_app lbm static &
    build_app lbm shared &
    build_app md static &
    # nvJitLink: cuSPARSE needs it, and may not find it by itself
    build_app cg shared libcublas libcublasLt libcusparse libnvJitLink &
    build_app mlp shared libcublasLt &
    wait
}

build_never()
{
    compile never "$nvcc" "${nvcc_flags[@]}" -cudart static -o "$bin/never" \
        "$gpu/never.cu" -ldl
}

build_ways()
{
    wanted apps || wanted auto && build_apps &
    wanted watch && build_never &
    wait
}

# --- running ------------------------------------------------------------------

# set_way NAME WAY: sets under_shim and what the program is given.
set_way()
{
    shim "../ways/$1/$2-report"
    way_options=()
    case $2 in
        plain) under_shim=(env) ;;
        hand) under_shim=(env) way_options=(--graph) ;;
        marks) way_options=(--marks) ;;
        auto) under_shim+=(CGSHIM_AUTO=1) ;;
        observe) under_shim+=(CGSHIM=observe) ;;
    esac
}

# way_once NAME WAY FILE COMMAND...: its results to FILE.
way_once()
{
    local name=$1 way=$2 file=$3 status
    shift 3

    set_way "$name" "$way"
    run "$name-$way" 150 "${under_shim[@]}" "$@" "${way_options[@]}" \
        --json "$work/ways/$name/$file.json"
    status=$?
    [ "$status" = 0 ] && return
    failed "$name-$way" "$status" "$name-$way"
    return 1
}

# keep_report NAME WAY: for the table of all that the shim reported.
keep_report()
{
    [ -s "$work/ways/$1/$2-report.json" ] &&
        cp "$work/ways/$1/$2-report.json" "$raw/$1-$2-report.json"
}

# bench_ways NAME ROUNDS "WAYS" COMMAND...: plain is the first of the ways, and
# without it there is nothing to compare with; another way that fails is left
# out from then on. In every round another one is first, so that none is always
# the one after.
bench_ways()
{
    local name=$1 rounds=$2 ways=() broken=' ' way round i
    read -ra ways <<< "$3"
    shift 3

    [ -x "$(command -v "$1")" ] || return
    in_time "$name" || return
    say "$name: ${ways[*]}"
    rm -rf "$work/ways/$name"
    mkdir -p "$work/ways/$name"
    for ((round = 0; round < rounds; ++round)); do
        if [ "$round" -gt 0 ] && [ "$SECONDS" -ge "$limit" ]; then
            say "$name: no time for more than $round of $rounds rounds"
            break
        fi
        for ((i = 0; i < ${#ways[@]}; ++i)); do
            way=${ways[(round + i) % ${#ways[@]}]}
            case $broken in *" $way "*) continue ;; esac
            way_once "$name" "$way" "$way-$round" "$@" && continue
            [ "$way" = plain ] && return
            broken="$broken$way "
            rm -f "$work/ways/$name/$way"-[0-9]*.json
        done
    done
    way_once "$name" observe observe "$@"
    keep_report "$name" marks
    keep_report "$name" auto
    judge ways "$name" "$work/ways/$name" "$raw/ways-$name.json"
}

# Chains and their graphs alternate in one process, so one of each is enough.
bench_bare_chain()
{
    local name=auto-chain-$1 program=$bin/chain-$1 way

    [ -x "$program" ] || return
    in_time "$name" || return
    say "$name"
    rm -rf "$work/ways/$name"
    mkdir -p "$work/ways/$name"
    for way in plain auto observe; do
        way_once "$name" $way $way "$program" --bare --rounds "$chain_rounds" ||
            [ $way = observe ] || return
    done
    keep_report "$name" auto
    judge bare-chain "$name" "$work/ways/$name" "$raw/ways-$name.json"
}

# What is asked for of each is made in the same rounds: graphs by hand belong to
# `apps`, regions that are found to `auto`.
bench_apps()
{
    local wanted_ways="plain marks" program name

    wanted apps && wanted_ways="$wanted_ways hand"
    wanted auto && wanted_ways="$wanted_ways auto"
    for program in "$bin"/app-*; do
        name=$(basename "$program")
        bench_ways "$name" "$ways_rounds" "$wanted_ways" "$program"
    done
}

# Python programs whose cases are the same with and without ranges.
bench_auto_python()
{
    local name

    for name in step decode cupy; do
        has "auto-$name" "${python_module[$name]}" || continue
        bench_ways "auto-$name" "$python_ways_rounds" "plain marks auto" \
            "$python" "$gpu/${python_program[$name]}.py" --alone \
            --rounds "$rounds"
    done
}

bench_all_ways()
{
    ways_rounds=5 python_ways_rounds=3 watch_rounds=9
    [ "$quick" = yes ] && ways_rounds=3 python_ways_rounds=2 watch_rounds=4
    if wanted auto; then
        bench_bare_chain static
        bench_bare_chain shared
    fi
    wanted apps || wanted auto && bench_apps
    wanted watch && bench_ways watch "$watch_rounds" "plain loaded auto" \
        "$bin/never"
    wanted auto && bench_auto_python
}
