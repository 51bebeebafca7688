#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A value that does not parse is one line on stderr that names the variable, the
# key and what it takes; the program runs on and its own output is the same.
#
# SHIM_LIB, SIM_DIR and PROGRAMS_DIR are as everywhere.

set -u

program=${PROGRAMS_DIR:-programs}/const_args
failed=0

if [ -z "${SHIM_LIB:-}" ]; then
    echo "messages.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -n "${SIM_DIR:-}" ]; then
    LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

"$program" > "$scratch/plain" 2> "$scratch/err"
case $? in
    0) ;;
    77) cat "$scratch/err"; exit 77 ;;
    *) cat "$scratch/err"; exit 1 ;;
esac

complain()
{
    echo "FAILED: $*"
    sed -e 's/^/    /' "$scratch/err"
    failed=$((failed + 1))
}

# run VARIABLE=VALUE...: the program under the shim.
run()
{
    env LD_PRELOAD="$SHIM_LIB" "$@" "$program" \
        > "$scratch/out" 2> "$scratch/err"
    status=$?
    [ $status = 0 ] || complain "$*: exit status $status"
    cmp -s "$scratch/plain" "$scratch/out" || complain "$*: stdout differs"
}

# one_line TEXT... -- VARIABLE=VALUE...: the line holds each of the texts.
one_line()
{
    texts=
    while [ "$1" != -- ]; do
        texts=$texts$1'
'
        shift
    done
    shift
    run "$@"
    grep -c '^cgshim: ' "$scratch/err" > "$scratch/count"
    if [ "$(cat "$scratch/count")" != 1 ]; then
        complain "$*: $(cat "$scratch/count") lines"
        return
    fi
    grep -v '^cgshim' "$scratch/err" > /dev/null &&
        complain "$*: lines that are not cgshim's"
    printf %s "$texts" > "$scratch/texts"
    while IFS= read -r text; do
        grep '^cgshim: ' "$scratch/err" | grep -qF -e "$text" ||
            complain "$*: does not say '$text'"
    done < "$scratch/texts"
}

silent()
{
    run "$@"
    [ ! -s "$scratch/err" ] || complain "$*: not silent"
}

rule=CGSHIM_REGION_constant
number="a whole number from 0 to 4294967295"

# Each key of a rule and of the defaults.
for value in abc -1 +1 4294967296 99999999999999999999 1x ' ' '""' 0x10 1.5; do
    one_line "$rule" warmup "$number" "rule is ignored" -- \
        "$rule=warmup=$value"
    one_line CGSHIM_DEFAULTS warmup "$number" -- "CGSHIM_DEFAULTS=warmup=$value"
    one_line "$rule" max_defer_us "microseconds, $number" -- \
        "$rule=max_defer_us=$value"
    one_line CGSHIM_DEFAULTS max_defer_us "microseconds, $number" -- \
        "CGSHIM_DEFAULTS=max_defer_us=$value"
done
for value in on Patch 'patch,eager' '' 0; do
    one_line "$rule" on_change "patch, recapture or eager" -- \
        "$rule=on_change=$value"
    one_line CGSHIM_DEFAULTS on_change "patch, recapture or eager" -- \
        "CGSHIM_DEFAULTS=on_change=$value"
done
for value in joined JOIN '' 1; do
    one_line "$rule" streams "join or separate" -- "$rule=streams=$value"
    one_line CGSHIM_DEFAULTS streams "join or separate" -- \
        "CGSHIM_DEFAULTS=streams=$value"
done
for value in 2 yes '' 00 -1; do
    one_line "$rule" enable "0 or 1" -- "$rule=enable=$value"
    one_line CGSHIM_DEFAULTS enable "0 or 1" -- "CGSHIM_DEFAULTS=enable=$value"
done
for value in '' 'domain:' ':'; do
    one_line "$rule" nvtx "a glob" "domain" -- "$rule=nvtx=$value"
done
keys="warmup, on_change, max_defer_us, streams, variants, chunk, gate, verify"
one_line CGSHIM_DEFAULTS nvtx "$keys, memory_mb, verify_mb, enable" -- \
    CGSHIM_DEFAULTS=nvtx=constant

# What is around keys and values.
one_line "$rule" warmap "nvtx, from, to, calls, between, $keys, enable" -- \
    "$rule=warmap=3"
one_line "$rule" warmup "has no value" "$number" -- "$rule=warmup"
one_line "$rule" warmup "given twice" -- "$rule=warmup=1 warmup=1"
one_line "$rule" nvtx "a closing quote" -- "$rule=nvtx='const"
one_line "$rule" nvtx "a closing quote" -- "$rule=nvtx=\"const"
one_line CGSHIM_REGION_ "the name of a region" -- CGSHIM_REGION_=warmup=1
# The first wrong word is told, not each; each wrong rule is.
one_line "$rule" "warmup=x" -- "$rule=warmup=x enable=y what=z"
run "$rule=warmup=x" CGSHIM_REGION_other=enable=x
[ "$(wc -l < "$scratch/err")" = 2 ] || complain "two wrong rules: two lines"

# Each variable.
for value in yes '' ON 1 'on '; do
    one_line CGSHIM= "on, observe or off" -- "CGSHIM=$value"
done
for value in loud '' 3 DEBUG; do
    one_line CGSHIM_LOG= "off, error, warn, info or debug" -- \
        "CGSHIM_LOG=$value"
done
one_line CGSHIM_LOG_FILE= "stderr or the name of a file" -- CGSHIM_LOG_FILE=
one_line CGSHIM_LOG_FILE= "$scratch/no/log" "No such file" "stderr" -- \
    CGSHIM_LOG=info "CGSHIM_LOG_FILE=$scratch/no/log"
one_line CGSHIM_REPORT= "stderr or the name of a file" -- CGSHIM_REPORT=
one_line CGSHIM_PROFILE= "stderr or the name of a file" -- CGSHIM_PROFILE=
one_line CGSHIM_REPORT= "$scratch/no/report" "No such file" -- \
    "CGSHIM_REPORT=$scratch/no/report"
for value in '' stderr; do
    one_line CGSHIM_TRACE= "the name of a file" -- "CGSHIM_TRACE=$value"
    one_line CGSHIM_DUMP= "the name of a directory" -- "CGSHIM_DUMP=$value"
done
one_line CGSHIM_TRACE= "$scratch/no/trace" "No such file" "no trace" -- \
    "CGSHIM_TRACE=$scratch/no/trace"
one_line CGSHIM_TRACE= "Is a directory" "no trace" -- "CGSHIM_TRACE=$scratch"
one_line CGSHIM_DUMP= "$scratch/no" "No such file" "no graphs" -- \
    "CGSHIM_DUMP=$scratch/no"
one_line CGSHIM_DUMP= "Not a directory" "no graphs" -- \
    "CGSHIM_DUMP=$scratch/plain"
one_line CGSHIM_CONFIG= "the name of a file" -- CGSHIM_CONFIG=
one_line CGSHIM_CONFIG= "$scratch/no/config" "No such file" -- \
    "CGSHIM_CONFIG=$scratch/no/config"
one_line CGSHIM_CONFIG= "Is a directory" -- "CGSHIM_CONFIG=$scratch"
for name in CGSHIM_LOGFILE CGSHIM_REGIONS CGSHIM_REGION CGSHIMS cgshim_; do
    case $name in
        cgshim_) silent $name=1 ;;      # not ours
        *) one_line "$name: " "not a variable" CGSHIM_REGION_ CGSHIM_LOG_FILE \
            -- "$name=1" ;;
    esac
done

# The nearest name is told where there is one.
while read -r wrong right; do
    one_line "$wrong: not a variable of cgshim ($right is), which" -- "$wrong=1"
done << END
CGSHIM_LOGFILE CGSHIM_LOG_FILE
CGSHIM_LGO CGSHIM_LOG
CGSHIM_log CGSHIM_LOG
CGSHIM_REGOIN_step CGSHIM_REGION_<name>
CGSHIM_REGIONstep CGSHIM_REGION_<name>
CGSHIM_EXLUDES CGSHIM_EXCLUDE
END
for name in CGSHIM_ON CGSHIM_WRONG CGSHIM_PREFIX CGSHIM_LOG_DIRECTORY; do
    one_line "$name: not a variable of cgshim, which" -- "$name=1"
done
# What is the wrapper's is not ours to judge.
silent CGSHIM_LIB=/no/such/library

# A list of programs cannot be wrong, and no value of it says anything.
for value in '' ',' '[' 'a,,b' '*nothing*'; do
    silent "CGSHIM_EXCLUDE=$value"
done

# The same in a file, with its place; what the environment has is not read
# there.
cat > "$scratch/config" << END
# a comment

CGSHIM_LOG=off
  $rule = "warmup=abc"
END
one_line "$scratch/config:4" "$rule" "warmup=abc" "$number" -- \
    "CGSHIM_CONFIG=$scratch/config"
silent "CGSHIM_CONFIG=$scratch/config" "$rule=warmup=1"
echo "export CGSHIM=on" > "$scratch/config"
one_line "$scratch/config:1" "CGSHIM...=value" -- \
    "CGSHIM_CONFIG=$scratch/config"

# Right values say nothing, and what was said is escaped.
silent "$rule=warmup=2 on_change=eager enable=1 nvtx='const*'"
silent CGSHIM_DEFAULTS="warmup=4294967295"
silent "CGSHIM_TRACE=$scratch/trace" "CGSHIM_DUMP=$scratch"
silent CGSHIM_LOG=error CGSHIM_LOG_FILE=stderr CGSHIM=observe
one_line '\x1b[31m' -- "$rule=warmup=$(printf '\033[31m')"

# A program that never comes near CUDA hears nothing of its configuration.
if [ -n "${EMULATOR:-}" ]; then
    echo "not tried: a shell, which is not of the emulated CPU"
else
    env LD_PRELOAD="$SHIM_LIB" "$rule=warmup=x" CGSHIM=yes CGSHIM_WRONG=1 \
        sh -c 'echo out' > "$scratch/out" 2> "$scratch/err"
    [ ! -s "$scratch/err" ] || complain "a shell is told of the configuration"
fi
[ "$(cat "$scratch/out")" = out ] || complain "a shell's output"

[ $failed = 0 ]
