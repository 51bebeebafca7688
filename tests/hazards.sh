#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every hazard of the design's table (section 4, in its order) has a program
# that shows its handling: plain and under the shim it does the same.
#
#     hazards.sh [HAZARD...]      only those
#     hazards.sh -l               lists them
#
#     HAZARD_SEEDS    seeds of the simulated driver's scheduler ("1" to "12")
#
# and PROGRAMS_DIR and run-pair.sh's environment. What a driver cannot show is
# said, and counts as skipped.

set -u

here=$(dirname "$0")
programs_dir=${PROGRAMS_DIR:-programs}
hazards=$programs_dir/hazards/hazards
seeds=${HAZARD_SEEDS:-1 2 3 4 5 6 7 8 9 10 11 12}
wanted=" $* "
passed=0
skipped=0
failed=0

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

# count NAME STATUS
count()
{
    case $2 in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) ;;
        *)
            failed=$((failed + 1))
            echo "FAILED: $1"
            ;;
    esac
}

is_wanted()
{
    if [ "$wanted" = " -l " ]; then
        echo "$1" >> "$scratch/names"
        return 1
    fi
    [ "$wanted" = "  " ] && return 0
    case $wanted in
        *" $1 "*) return 0 ;;
    esac
    return 1
}

# hazard NAME SWALLOWED [NAME=VALUE...]: plain and under the shim, where at
# least so many percent of the calls must have been swallowed; on a GPU, where
# the gate and the timer have their say, anything. The variables hold for both
# runs.
hazard()
{
    name=$1
    swallowed=$2
    shift 2
    is_wanted "$name" || return 0
    if [ -z "${SIM_DIR:-}" ] && [ "$swallowed" -gt 1 ]; then
        swallowed=1
        # It ends without a report there.
        [ "$name" != errors_are_told_at_the_next_call ] || swallowed=0
    fi
    env SEEDS="$seeds" PAIR_SWALLOWED="$swallowed" "$@" \
        "$here/run-pair.sh" "$hazards" "$name" > "$scratch/out" 2>&1
    status=$?
    if [ $status -ne 0 ]; then
        sed -e "s|^|$name: |" "$scratch/out"
    fi
    count "$name" $status
}

# not_refused NAME PROGRAM [ARGUMENT]: where handles died, no graph that holds
# them may be launched. The driver of a GPU need not notice; the simulated one
# refuses, and the report says so.
not_refused()
{
    [ -n "${SIM_DIR:-}" ] && is_wanted "$1" || return 0
    name=$1
    program=$programs_dir/$2
    shift 2
    status=0
    for seed in $seeds; do
        env SIM_SEED="$seed" LD_LIBRARY_PATH="$SIM_DIR" \
            LD_PRELOAD="$SHIM_LIB" CGSHIM_REPORT=stderr \
            "$program" "$@" > /dev/null 2> "$scratch/report" || status=$?
        if grep 'cuGraph[A-Za-z]*: CUDA_ERROR' "$scratch/report"; then
            status=1
            break
        fi
    done
    count "$name" $status
}

# shown_by_program NAME PROGRAM: one that is run here, on a GPU.
shown_by_program()
{
    status=0
    "$here/run-pair.sh" "$programs_dir/$2" > "$scratch/out" 2>&1 || status=$?
    if [ $status -ne 0 ]; then
        sed -e "s|^|$1: $2: |" "$scratch/out"
    fi
    count "$1" $status
}

# shown_by NAME TEST...: tests that `make check` runs anyway show the hazard.
shown_by()
{
    name=$1
    shift
    is_wanted "$name" || return 0
    for test in "$@"; do
        case $test in
            *.sh) [ -x "$here/$test" ] ;;
            *) [ -x "$programs_dir/$test" ] ;;
        esac || {
            echo "$name: there is no $test"
            count "$name" 1
            return
        }
        case $test in
            *.sh) ;;
            *) [ -n "${SIM_DIR:-}" ] || shown_by_program "$name" "$test" ;;
        esac
    done
    [ -z "${SIM_DIR:-}" ] || count "$name" 0
}

# note NAME TEXT [FOLDER]: on a driver that is too old everything passes, and
# the report says so.
note()
{
    is_wanted "$1" || return 0
    status=0
    env SIM_DRIVER_VERSION="${4:-13000}" LD_LIBRARY_PATH="${3:-$SIM_DIR}" \
        LD_PRELOAD="$SHIM_LIB" CGSHIM_REPORT=stderr \
        "$hazards" old_driver_passes_through > "$scratch/shim" \
        2> "$scratch/report" || status=$?
    env LD_LIBRARY_PATH="${3:-$SIM_DIR}" \
        "$hazards" old_driver_passes_through > "$scratch/plain" || status=$?
    cmp -s "$scratch/plain" "$scratch/shim" || status=1
    if ! grep -q "$2" "$scratch/report"; then
        echo "$1: the report does not say: $2"
        status=1
    fi
    count "$1" $status
}

# A driver without one function: in a copy its name is another one.
driver_without()
{
    mkdir "$scratch/$1" &&
        LC_ALL=C sed -e "s/\\x00$1\\x00/\\x00-${1#?}\\x00/g" \
            "$SIM_DIR/libcuda.so.1" > "$scratch/$1/libcuda.so.1"
}

hazard pageable_source_reused_at_once 30
hazard pinned_memory_looked_at_after_a_sync 30
hazard copies_the_host_waits_for 20
hazard device_copies_and_sets_on_the_legacy_stream 30
hazard legacy_next_to_blocking_streams 20
hazard event_seen_outside_the_region 40
hazard event_made_again_under_the_same_handle 60
shown_by module_unloaded_and_handle_reused modules
not_refused module_unloaded_and_handle_reused modules
hazard address_freed_and_reused_for_another_kind_of_memory 30
hazard address_reused_for_less_memory 30
# The simulated driver takes a node that was made before the memory was mapped
# again; so this shows that results stay, and not what keeps them.
hazard address_unmapped_and_mapped_again 30
hazard allocation_in_the_region 50
hazard free_in_the_region 30
hazard attribute_changed_between_launches 30
shown_by attribute_changed_between_launches function_attributes attributes
hazard stream_priority_and_attributes 30
hazard cooperative_and_cluster_launches 20
hazard programmatic_launches_and_events 30
hazard event_of_a_launch_seen_by_another_stream 30
hazard host_functions_and_callbacks 40
hazard memory_operations_of_a_stream 40
hazard event_of_another_process 10
hazard external_semaphores 40
hazard program_captures_while_a_region_is_open 10
hazard capture_while_a_recording_grows 0
hazard capture_of_another_thread 0
shown_by program_captures_while_a_region_is_open program_graphs
hazard one_exec_never_overlaps_itself 0
shown_by one_exec_never_overlaps_itself two_threads_in_turn
hazard forked_streams_join 60
hazard kernel_that_spins_on_another_stream 30 PAIR_TIMEOUT=20 \
    PAIR_DEFAULTS=streams=separate
shown_by host_polls_mapped_memory polls_mapped
hazard errors_are_told_at_the_next_call 40
shown_by errors_are_told_at_the_next_call bad_launch faults.sh
hazard device_printf 30
hazard two_devices 10 SIM_DEVICES=2
hazard primary_context_reset 30
not_refused primary_context_reset hazards/hazards primary_context_reset
shown_by primary_context_reset contexts
shown_by thread_without_context contexts
hazard another_tool_holds_cupti 0
hazard per_thread_default_stream 0
hazard out_of_memory_gives_the_graphs_back 10 SIM_MEMORY_MB=4
hazard old_driver_passes_through 60
if [ -n "${SIM_DIR:-}" ]; then
    note old_driver_passes_through 'older than CUDA 12.4' "$SIM_DIR" 12030
    for function in cuGraphExecNodeSetParams cuFuncGetParamInfo \
        cuThreadExchangeStreamCaptureMode; do
        is_wanted old_driver_passes_through || continue
        driver_without $function
        note old_driver_passes_through 'lacks a function' "$scratch/$function"
    done
fi

if [ "$wanted" = " -l " ]; then
    awk '!seen[$0]++' "$scratch/names"
    exit 0
fi
echo "$passed passed, $skipped not shown here, $failed failed"
[ $failed = 0 ]
