#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# CGSHIM_TRACE and CGSHIM_DUMP: the trace is JSON, its slices nest, it counts
# what the report counts, and it is of use when the process was killed; the
# graphs' files are DOT, whatever a region is called. The program's own output
# is as it was.
#
# SHIM_LIB, SIM_DIR and PROGRAMS_DIR are as everywhere; needs python3.

set -u

programs=${PROGRAMS_DIR:-programs}
# However slow the machine is: what is held back waits for the program.
defaults="max_defer_us=1000000000 gate=off"
failed=0

if [ -z "${SHIM_LIB:-}" ]; then
    echo "trace.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -z "${SIM_DIR:-}" ]; then
    echo "what the programs do is known on the simulated driver alone"
    exit 77
fi
if ! python3 -c 'import json' 2> /dev/null; then
    echo "there is no python3 to read the trace"
    exit 77
fi
LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM
trace=$scratch/trace.json
report=$scratch/report.json

complain()
{
    echo "FAILED: $*"
    failed=$((failed + 1))
}

cat > "$scratch/check.py" << 'END'
import collections, json, re, sys

def check(good, *what):
    if not good:
        print(*what)
        sys.exit(1)

def nanoseconds(event, key):
    check(re.fullmatch(r"\d+\.\d{3}", str(event[key])), key, event[key])
    return int(str(event[key]).replace(".", ""))

def check_nesting(slices):
    """Slices of one thread: (begin, end, name)."""
    stack = []
    for begin, end, name in sorted(slices, key=lambda s: (s[0], -s[1])):
        while stack and stack[-1][1] <= begin:
            stack.pop()
        check(not stack or end <= stack[-1][1], name, "does not nest in",
              stack[-1][2] if stack else "")
        stack.append((begin, end, name))

def read(path):
    events = json.load(open(path), parse_float=str)
    slices = collections.defaultdict(list)
    named  = set()
    check(len({event["pid"] for event in events}) == 1, "several processes")
    for event in events:
        check(event["ph"] in "XiMbe", "phase", event["ph"])
        if event["ph"] == "X":
            begin = nanoseconds(event, "ts")
            slices[event["tid"]].append((begin, begin +
                                         nanoseconds(event, "dur"),
                                         event["name"]))
        elif event["ph"] == "i":
            nanoseconds(event, "ts")
        elif event["ph"] == "M" and event["name"] == "thread_name":
            named.add(event["tid"])
    for thread in slices:
        check(thread in named, "thread", thread, "has no name")
        check_nesting(slices[thread])
    return events

def region_of(event):
    return event["name"] if event["cat"] == "run" else \
        event["args"].get("region")

gate = "it is no faster replayed than plain, or that is tried"

def compare(events, report):
    counts = collections.Counter()
    for event in events:
        if event["ph"] in "Xib":
            args = event["args"]
            key  = event["cat"], region_of(event)
            counts[key] += 1
            if event["cat"] == "run":
                counts[("how " + args["how"], event["name"])] += 1
            if event["cat"] == "fallback" and args["reason"] == gate:
                counts[("by gate", args["region"])] += 1
            if event["cat"] == "launch":
                counts[("patched", args["region"])] += args["patched"]
    for region in report["regions"]:
        name = region["name"]
        if name == "before the driver":
            continue
        is_  = lambda kind: counts[(kind, name)]
        wanted = {
            "runs": is_("run"),
            "launches": is_("launch"),
            "builds": is_("build"),
            "recordings": is_("recorded"),
            "barriers": is_("barrier"),
            "patched": is_("patched"),
            "replayed_runs": is_("how replayed") + is_("how variant"),
        }
        for key in wanted:
            check(region[key] == wanted[key], name, key, region[key],
                  "in the report,", wanted[key], "in the trace")
        # The gate sends several runs plain at a time.
        reasons = sum(reason["count"] for reason in region["fallbacks"]
                      if reason["reason"] != gate)
        traced  = is_("fallback") - is_("by gate")
        check(len(region["fallbacks"]) == 16 or reasons == traced,
              name, reasons, "fallbacks reported", traced, "traced")
        by_gate = [reason["count"] for reason in region["fallbacks"]
                   if reason["reason"] == gate]
        check(sum(by_gate) == region["unseen_runs"] >= is_("by gate"), name,
              by_gate, "reported of the gate,", is_("by gate"), "traced")

events = read(sys.argv[1])
if len(sys.argv) > 2:
    compare(events, json.load(open(sys.argv[2])))
END

# One program waits for work without calling the driver.
SIM_WORKER=1
export SIM_WORKER

# run PROGRAM VARIABLE=VALUE...: under the shim; its output is as it is plain.
run()
{
    program=$1
    shift
    rm -f "$trace" "$report"
    argument=
    [ "$program" != heat ] || argument=--small
    timeout 60 "$programs/$program" $argument > "$scratch/plain"
    timeout 60 env CGSHIM_TRACE="$trace" CGSHIM_REPORT="$report" \
        CGSHIM_DEFAULTS="$defaults" LD_PRELOAD="$SHIM_LIB" "$@" \
        "$programs/$program" $argument > "$scratch/out" \
        2> "$scratch/err" ||
        complain "$program: exit status $?: $(cat "$scratch/err")"
    cmp -s "$scratch/plain" "$scratch/out" || complain "$program: stdout differs"
    [ ! -s "$scratch/err" ] || complain "$program: $(cat "$scratch/err")"
}

# counts TRACE [REPORT]
counts()
{
    python3 -m json.tool "$1" > /dev/null || complain "$program: not JSON"
    python3 "$scratch/check.py" "$@" > "$scratch/said" 2>&1 ||
        complain "$program: $(cat "$scratch/said")"
}

has()
{
    grep -q -e "$1" "$trace" || complain "$program: the trace lacks $1"
}

# What happened, thread by thread.
for program in heat threads_at_once two_threads_in_turn foreign_sync joins \
    changing_args changing_sequence contexts copies_sets modules \
    nested_ranges sync_inside; do
    run $program
    counts "$trace" "$report"
done
run changing_sequence
counts "$trace" "$report"
has '"how":"recorded","run":1,'
has '"how":"replayed",'
has '"how":"variant",'
has '"cat":"issue",'
has '"reason":"a call was not as recorded"'
# The kernel knows a thread under an emulator by that one's name.
[ -n "${EMULATOR:-}" ] ||
    has '"name":"thread_name","ph":"M".*"name":"changing_sequen"'
run modules
has '"cat":"destroyed",.*"reason":"cuModuleUnload"'

# Runs that the gate sends plain, and its decisions.
run heat CGSHIM_DEFAULTS=gate=random
counts "$trace" "$report"
has '"how":"plain: the gate"'
# So long, and of one thread, that TSan has nothing to look for.
if ! LC_ALL=C grep -q __tsan_init "$SHIM_LIB"; then
    run settled CGSHIM_DEFAULTS=gate=on
    counts "$trace" "$report"
    has '"cat":"gate",.*"state":"'
fi

# What the timer issues is on its own track.
run polls_mapped CGSHIM_DEFAULTS="gate=off chunk=all"
counts "$trace" "$report"
has '"name":"thread_name",.*"name":"cgshim-timer"'
has '"reason":"work was held back for max_defer_us"'

# A start/end range that ends in another thread, and a run that has no end.
run nested_ranges CGSHIM_REGION_first= CGSHIM_REGION_inner=
counts "$trace" "$report"
run exit_inside
counts "$trace" "$report"
has '"how":"open at the end"'

# Names that no file and no JSON would take.
name=$(printf 'a"b\\c\td\033e\377/../f')
run const_args "CGSHIM_REGION_$name=nvtx=const*"
counts "$trace"
has '"name":"a\\"b\\\\c\\u0009d\\u001be\\ufffd/../f","cat":"run"'

# A child of fork writes nothing of its parent's; what leaks there is nothing
# that LeakSanitizer can tell about.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
export ASAN_OPTIONS
mkdir "$scratch/traces"
run forks
counts "$trace"
run forks CGSHIM_TRACE="$scratch/traces/%p"
[ "$(ls "$scratch/traces" | wc -l)" = 1 ] ||
    complain "forks: $(ls "$scratch/traces" | wc -l) traces"
for file in "$scratch"/traces/*; do
    counts "$file" "$report"
done

# A file that another process writes to is left to it; what a killed one leaves
# lacks nothing but its end.
program=heat
rm -f "$trace"
env CGSHIM_TRACE="$trace" CGSHIM_DEFAULTS="$defaults" LD_PRELOAD="$SHIM_LIB" \
    "$programs/heat" --size 256 --tile 16 --steps 16384 > /dev/null 2> "$scratch/err" &
killed=$!
waited=0
while [ -z "$(find "$trace" -size +200k 2> /dev/null)" ] &&
    [ $waited -lt 600 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
env CGSHIM_TRACE="$trace" LD_PRELOAD="$SHIM_LIB" "$programs/const_args" \
    > /dev/null 2> "$scratch/other"
grep -q '^cgshim: CGSHIM_TRACE=.*another process writes to it.*%p' \
    "$scratch/other" || complain "two processes: $(cat "$scratch/other")"
[ "$(wc -l < "$scratch/other")" = 1 ] || complain "two processes: more lines"
kill -KILL $killed
wait $killed 2> /dev/null
# As Perfetto does: events up to the last whole one.
python3 - "$trace" "$scratch/prefix.json" << 'END'
import json, sys
text = open(sys.argv[1]).read()
try:
    json.loads(text + "]")
except ValueError:
    text = text.rsplit(",\n", 1)[0]
open(sys.argv[2], "w").write(text + "]")
END
counts "$scratch/prefix.json"
[ "$(grep -c '"cat":"run"' "$scratch/prefix.json")" -gt 100 ] ||
    complain "a killed process left few events"

# Links are refused, and other files are not waited for.
ln -s nowhere "$scratch/link"
mkfifo "$scratch/fifo"
for target in "$scratch/link" "$scratch/fifo" "$scratch" "$scratch/no/trace"; do
    timeout 60 env CGSHIM_TRACE="$target" CGSHIM_DEFAULTS="$defaults" \
        LD_PRELOAD="$SHIM_LIB" "$programs/heat" --small \
        > "$scratch/out" 2> "$scratch/err" || complain "$target: status $?"
    [ "$(grep -c "^cgshim: CGSHIM_TRACE=$target: cannot be opened" \
        "$scratch/err")" = 1 ] || complain "$target: $(cat "$scratch/err")"
    [ "$(wc -l < "$scratch/err")" = 1 ] || complain "$target: more lines"
done
[ ! -e "$scratch/nowhere" ] || complain "a link was followed"

# A file system that is full, or a limit: what is there has its end.
(
    ulimit -f 20
    env CGSHIM_TRACE="$trace" CGSHIM_DEFAULTS="$defaults" \
        LD_PRELOAD="$SHIM_LIB" "$programs/threads_at_once" \
        > "$scratch/out" 2> "$scratch/err"
) || complain "a limit for files: exit status $?"
[ "$(grep -c '^cgshim: CGSHIM_TRACE=.*File too large; the trace ends' \
    "$scratch/err")" = 1 ] || complain "a limit: $(cat "$scratch/err")"

# Graphs. Without Graphviz: quoted strings, words and few kinds of statement.
is_dot()
{
    if command -v dot > /dev/null; then
        dot -Tsvg "$1" > /dev/null 2> "$scratch/dot" || return 1
        [ ! -s "$scratch/dot" ] || return 1
    fi
    LC_ALL=C awk '
    BEGIN { good = 1 }
    {
        line = $0
        # Each backslash takes the next byte along; no entity but &amp;.
        gsub(/"([^"\\&\001-\037]|\\[^\001-\037]|&amp;)*"/, "S", line)
        if (NR == 1) good = good && line == "digraph cgshim {"
        else if (line == "}") ended = NR
        else good = good && (line == "  label=S;" ||
            line == "  node [shape=box, fontname=S];" ||
            line ~ /^  n[0-9]+ \[label=S\];$/ ||
            line ~ /^  n[0-9]+ -> n[0-9]+;$/)
        if (line ~ /label=S\]/) { node = $1; nodes[node] = 1 }
        if (line ~ /->/) {
            sub(/;/, "", $3)
            good = good && ($1 in nodes) && ($3 in nodes)
        }
    }
    END { exit !(good && ended == NR) }' "$1"
}

dump=$scratch/dump
mkdir "$dump"
graphs=0
for program in heat joins copies_sets changing_sequence streams_default \
    event_pool modules two_threads_in_turn; do
    rm -f "$dump"/*
    run $program CGSHIM_DUMP="$dump"
    counts "$trace" "$report"
    built=$(awk '/"builds": / { sub(/,/, ""); n += $2 } END { print n + 0 }' \
        "$report")
    [ "$(ls "$dump" | wc -l)" = $((2 * built)) ] ||
        complain "$program: $built graphs, $(ls "$dump" | wc -l) files"
    for file in "$dump"/*.dot; do
        [ -e "$file" ] || continue
        graphs=$((graphs + 1))
        is_dot "$file" || complain "$program: $(head -n 5 "$file")"
        [ -s "${file%.dot}.txt" ] || complain "$program: no list for $file"
    done
done
[ $graphs -gt 20 ] || complain "$graphs graphs"

# The same once more leaves what is there alone.
rm -f "$dump"/*
run const_args CGSHIM_DUMP="$dump" CGSHIM_DEFAULTS="$defaults chunk=all"
sum=$(cat "$dump"/* | cksum)
run const_args CGSHIM_DUMP="$dump" CGSHIM_DEFAULTS="$defaults chunk=all"
rm "$dump"/constant-2.* || complain "const_args: no second pair of files"
[ "$(cat "$dump"/* | cksum)" = "$sum" ] || complain "const_args: overwritten"
grep -q '^ *argument 0, 8 bytes at 0: 0x[0-9a-f]*$' "$dump"/constant-1.txt ||
    complain "const_args: no arguments"
grep -q '^  n0 -> n1;$' "$dump"/constant-1.dot || complain "const_args: no edges"

rm -f "$dump"/*
run const_args "CGSHIM_REGION_$name=nvtx=const*" CGSHIM_DUMP="$dump"
[ -e "$dump/a_b_c_d_e__.._f-1.dot" ] || complain "names: $(ls "$dump")"
is_dot "$dump/a_b_c_d_e__.._f-1.dot" || complain "names: $(cat "$dump"/*.dot)"

[ $failed = 0 ]
