#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The wrapper: the program gets what it was given and ends as it ends, options
# are variables, and what is wrong is said before the program runs. In the
# source tree and installed, under each shell that is here.
#
# SHIM_LIB, SIM_DIR, PROGRAMS_DIR, DOORS_DIR, TOP_BUILD_DIR and CC are as
# everywhere.

set -u

here=$(cd "$(dirname "$0")" && pwd)
scripts=$(cd "$here/../scripts" && pwd)
wrapper=$scripts/cgshim
programs=${PROGRAMS_DIR:-programs}
failed=0

if [ -z "${SHIM_LIB:-}" ]; then
    echo "wrapper.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -n "${EMULATOR:-}" ]; then
    echo "the shells and tools here are not of the emulated CPU"
    exit 77
fi
if [ -n "${SIM_DIR:-}" ]; then
    LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi
# The build may be anywhere.
CGSHIM_LIB=$SHIM_LIB
export CGSHIM_LIB
unset LD_PRELOAD

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM
chmod 755 "$scratch"
cd "$scratch" || exit 99
mkdir tmp
TMPDIR=$scratch/tmp
export TMPDIR
out=$scratch/out
err=$scratch/err

complain()
{
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# try STATUS COMMAND...: what it prints is in out and err.
try()
{
    wanted=$1
    shift
    "$@" > "$out" 2> "$err"
    got=$?
    [ $got = "$wanted" ] ||
        complain "$*: exit status $got, not $wanted: $(cat "$err")"
}

# says FILE TEXT...: one line of the file has all of them.
says()
{
    file=$1
    shift
    cp "$file" "$scratch/lines"
    for text in "$@"; do
        grep -F -e "$text" "$scratch/lines" > "$scratch/left"
        cp "$scratch/left" "$scratch/lines"
    done
    [ -s "$scratch/lines" ] || complain "nothing says '$*': $(cat "$file")"
}

# says_only TEXT...: one line on stderr with all of them, nothing on stdout.
says_only()
{
    says "$err" "cgshim: " "$@"
    [ "$(wc -l < "$err")" = 1 ] || complain "$1: $(wc -l < "$err") lines:
$(cat "$err")"
    [ ! -s "$out" ] || complain "$1: something on stdout"
}

silent()
{
    [ ! -s "$err" ] || complain "$*: not silent: $(cat "$err")"
}

is()
{
    [ "$1" = "$2" ] || complain "$3: '$1', not '$2'"
}

# ---- What the program gets, under each shell ----

cat > show << 'END'
#!/bin/sh
for argument in "$@"; do
    printf '<%s>' "$argument"
done
END
chmod +x show
newline='
'

# each_shell FUNCTION: `wrap` is how the wrapper is called.
each_shell()
{
    for shell in "" dash "bash --posix" "busybox sh"; do
        [ -z "$shell" ] || command -v "${shell%% *}" > /dev/null || continue
        wrap="$shell $wrapper"
        "$1"
    done
}

odd_arguments()
{
    set -- 'a b' '' "it's" '"' "\\" "two${newline}lines${newline}" '*' '$HOME' \
        -r -- '--report=x' 'a=b' "$(printf '\001\033\377')"
    ./show "$@" > plain
    try 0 $wrap run ./show "$@"
    cmp -s plain "$out" || complain "$wrap: arguments: $(cat "$out")"
    silent "$wrap: run ./show"
    try 0 $wrap run -qv -- ./show "$@"
    cmp -s plain "$out" || complain "$wrap: arguments with -v: $(cat "$out")"
    try 0 $wrap regions -q ./show "$@"
    cmp -s plain "$out" || complain "$wrap: arguments of regions"
    for name in 'a=b' -dash 'two  blanks' "quote'" "new${newline}line"; do
        cp show "./$name"
        try 0 $wrap run -- "./$name" x
        is "$(cat "$out")" '<x>' "$wrap run ./$name"
        try 0 env PATH="$scratch:$PATH" $wrap run -- "$name" x
        is "$(cat "$out")" '<x>' "$wrap run $name"
    done
}

# What a shell itself changes is left out.
odd_environment()
{
    set -- 'no name=1' 'x-y=a b' "lines=1${newline}2" "n l=1${newline}2" \
        'quotes='\''"\' 'BASH_FUNC_f%%=() {  :; }' '-u=1' 'empty=' \
        'CGSHIM_REGION_a b=nvtx="c d"' 'CGSHIM_REGION_1=warmup=1'
    env "$@" env -0 > plain
    env "$@" $wrap run env -0 > "$out"
    for file in plain "$out"; do
        tr '\000\n' '\n\000' < "$file" | LC_ALL=C sort |
            LC_ALL=C grep -a -v -e '^_=' -e '^SHLVL=' -e '^PWD=' \
                -e '^OLDPWD=' -e '^LD_PRELOAD=' -e '^NVTX_INJECTION64_PATH=' \
                > "$file.sorted"
    done
    cmp -s plain.sorted "$out.sorted" ||
        complain "$wrap: environment: $(diff -a plain.sorted "$out.sorted")"
}

# Options first, then the environment's, each in its order.
order_of_regions()
{
    try 0 env CGSHIM_REGION_z= CGSHIM_REGION_a=warmup=1 'CGSHIM_REGION_m m=' \
        CGSHIM_REGION_b= $wrap check-config -r second: -r 'first of all' \
        -r a:warmup=2
    is "$(sed -n 's/^CGSHIM_REGION_\([^=]*\)=.*/\1/p' "$out" | tr '\n' ,)" \
        "second,first of all,a,z,m m,b," "$wrap: order of regions"
    says "$out" "CGSHIM_REGION_a=warmup=2 "
}

exit_status()
{
    for mode in "run" "run -qv" "regions -q"; do
        for status in 0 1 7 125 255; do
            try $status $wrap $mode sh -c "exit $status"
        done
        try 137 $wrap $mode sh -c 'kill -KILL $$'
        is "$(echo in | $wrap $mode cat)" in "$wrap $mode: stdin"
        is "$($wrap $mode sh -c 'read -r x || echo closed' <&-)" closed \
            "$wrap $mode: no stdin"
        for file in /proc/self/status /proc/self/fd; do
            is "$($wrap $mode sh -c "grep ^SigIgn $file; ls $file" \
                2> /dev/null)" \
                "$(sh -c "grep ^SigIgn $file; ls $file" 2> /dev/null)" \
                "$wrap $mode: $file"
        done
    done
    is "$($wrap run sh -c 'echo $PPID')" "$$" "$wrap run: the parent"
}

each_shell odd_arguments
each_shell odd_environment
each_shell order_of_regions
each_shell exit_status

# ---- Signals ----

# A program that waits, and says by which signal it was told to end.
cat > waits << 'END'
#!/bin/sh
for signal in HUP INT QUIT TERM USR1 USR2; do
    trap "echo $signal; exit 3" $signal
done
: > ready
for i in $(seq 1000); do sleep 0.05; done
END
chmod +x waits
wait_until_ready()
{
    tries=0
    while [ ! -e ready ] && [ $tries -lt 600 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    rm -f ready
}

# What is started in the background ignores INT and QUIT, under nohup HUP too.
signals="TERM USR1 USR2"
reset=
if env --default-signal true 2> /dev/null; then
    signals="$signals HUP INT QUIT"
    reset="env --default-signal"
fi
for mode in "run" "run -qv" "regions -q"; do
    for signal in $signals; do
        rm -f ready
        $reset "$wrapper" $mode ./waits > "$out" 2> "$err" &
        child=$!
        wait_until_ready
        kill -s "$signal" $child
        wait $child 2> /dev/null
        is $? 3 "$mode: status after $signal"
        is "$(cat "$out")" "$signal" "$mode: signal"
    done
    if [ -n "$reset" ]; then
        # The program and its wrapper die of it.
        for signal in INT=130 TERM=143; do
            rm -f ready
            $reset "$wrapper" $mode sh -c ': > ready; exec sleep 60' \
                > "$out" 2> "$err" &
            child=$!
            wait_until_ready
            kill -s "${signal%=*}" $child
            wait $child 2> /dev/null
            is $? "${signal#*=}" "$mode: death of $signal"
        done
    fi
done
# TSan has files of its own there for a moment.
is "$(find "$TMPDIR" -mindepth 1 ! -name "tsan.*")" "" "what is left in TMPDIR"

# ---- LD_PRELOAD ----

# Libraries that do nothing to these programs.
first=${DOORS_DIR:-doors}/.libs/librtld_next_second.so
second=$programs/.libs/libpair_breaker.so
preload_of()
{
    "$wrapper" run sh -c 'echo "$LD_PRELOAD"' 2> "$err"
    silent "run with LD_PRELOAD"
}
is "$(preload_of)" "$SHIM_LIB" "LD_PRELOAD"
for list in "$first $second" "$first:$second" " $first : $second "; do
    is "$(LD_PRELOAD=$list preload_of)" "$first:$second:$SHIM_LIB" "'$list'"
done
is "$(LD_PRELOAD="$first $SHIM_LIB $second" preload_of)" \
    "$first:$SHIM_LIB:$second" "LD_PRELOAD with the library"
is "$("$wrapper" run "$wrapper" run sh -c 'echo "$LD_PRELOAD"')" "$SHIM_LIB" \
    "the wrapper in itself"
mkdir other
ln -s "$SHIM_LIB" other/libcgshim.so
is "$(LD_PRELOAD="$first $scratch/other/libcgshim.so" preload_of)" \
    "$first:$SHIM_LIB" "LD_PRELOAD with another copy"
if "$programs/const_args" > plain 2> "$err"; then
    has_cuda=yes
    for list in "" "$first" "$first $SHIM_LIB"; do
        LD_PRELOAD=$list "$wrapper" run -o report.json "$programs/const_args" \
            > "$out" 2> "$err"
        cmp -s plain "$out" || complain "const_args with '$list'"
        [ -s report.json ] || complain "const_args with '$list': no report"
        rm -f report.json
    done
else
    has_cuda=
    echo "no CUDA: what needs it is left out"
fi

# ---- Options ----

# sets WANTED OPTION...: a line of the settings, here through check-config.
sets()
{
    line=$1
    shift
    try 0 "$wrapper" check-config "$@"
    grep -q -x -F -e "$line" "$out" || complain "$*: not $line: $(cat "$out")"
}
sets CGSHIM=observe --observe
sets CGSHIM=off --off
CGSHIM=off sets CGSHIM=on --on
sets "CGSHIM_REPORT=$scratch/a b" --report "a b"
sets CGSHIM_REPORT=stderr -ostderr
sets CGSHIM_REPORT=stderr -o stderr
sets "CGSHIM_TRACE=$scratch/t=u" --trace=t=u
sets "CGSHIM_TRACE=/t" -t /t
sets "CGSHIM_DUMP=/d" --dump /d
sets "CGSHIM_DUMP=/d" -D/d
sets CGSHIM_LOG=info --log info
sets CGSHIM_LOG=debug -l debug
sets CGSHIM_LOG_FILE=/l --log-file /l
sets CGSHIM_LOG_FILE=/l -L /l
sets "CGSHIM_EXCLUDE=a*,b c" --exclude 'a*,b c'
sets "CGSHIM_EXCLUDE=a" -x a
# Who excludes `true` is not told that all is off.
sets CGSHIM=on --exclude '*'
echo 'CGSHIM_LOG=warn' > config
sets CGSHIM_LOG=warn --config config
sets CGSHIM_LOG=warn -c config
sets CGSHIM_LOG=warn config
CGSHIM_LOG=error sets CGSHIM_LOG=info -l info config
rest="warmup=0 on_change=patch max_defer_us=1000 streams=join variants=8"
rest="$rest chunk=auto gate=on verify=0"
sets "CGSHIM_DEFAULTS=$rest memory_mb=256 verify_mb=1024 enable=1"
keys="warmup=1 on_change=eager max_defer_us=2 streams=separate variants=3"
keys="$keys chunk=all gate=off verify=4 memory_mb=5 verify_mb=6 enable=0"
sets "CGSHIM_DEFAULTS=$keys" --defaults "$keys"
sets "CGSHIM_DEFAULTS=$keys" -d "$keys"
sets "CGSHIM_DEFAULTS=$keys" --warmup 1 --on-change eager --max-defer-us 2 \
    --streams separate --variants 3 --chunk all --gate off --verify 4 \
    --memory-mb=5 --verify-mb 6 --enable 0
sets "CGSHIM_DEFAULTS=$keys" -d "warmup=1 on_change=eager enable=0" \
    --max_defer_us 2 --streams=separate --variants 3 --chunk all --gate off \
    --verify 4 --memory_mb 5 --verify_mb=6
sets CGSHIM_AUTO=0
sets CGSHIM_AUTO=1 --auto
sets CGSHIM_SAVE=/s --save /s
sets "CGSHIM_REGION_a=from=\"k_*\" to=\"x\"'\"'\"y\" $rest enable=1" \
    -r "a:from=k_* to=x'\"'y"
sets "CGSHIM_REGION_a=from=\"k\" calls=3 $rest enable=1" -r a:from=k\ calls=3
sets "CGSHIM_REGION_a=between=sync $rest enable=1" -r a:between=sync
sets "CGSHIM_REGION_step=$rest enable=1" -r step
sets "CGSHIM_REGION_step=$rest enable=1" --region=step:
sets "CGSHIM_REGION_a b=nvtx=\"d:step *\" $rest enable=1" \
    --region 'a b:nvtx="d:step *"'
sets "CGSHIM_REGION_it's=nvtx=\"a'b'\"'\"'\"\" $rest enable=1" \
    -r "it's:nvtx=a\"'b'\"'\"'"
sets "CGSHIM_REGION_st*=nvtx=\"st*\" $rest enable=1" --nvtx 'st*'
value="\"\"'\"'\"a\"'\"'\"='b' c\""
sets "CGSHIM_REGION_\"a\"_'b' c=nvtx=$value $rest enable=1" \
    -n "\"a\"='b' c"

# What is set reaches the program of each command that runs one.
for mode in run regions; do
    try 0 "$wrapper" $mode -q -t/t -D /d -n 'a b' env
    for line in CGSHIM_TRACE=/t CGSHIM_DUMP=/d \
        'CGSHIM_REGION_a b=nvtx="a b"'; do
        says "$out" "$line"
    done
done
says "$out" CGSHIM=observe
try 0 "$wrapper" run --auto --save /s --verify 2 -d gate=off env
for line in CGSHIM_AUTO=1 CGSHIM_SAVE=/s "CGSHIM_DEFAULTS=gate=off verify=2"; do
    says "$out" "$line"
done
try 0 env 'no name=1' "$wrapper" run -vq -r a true
says_only "LD_PRELOAD='$SHIM_LIB' 'CGSHIM_REGION_a='"
grep -q 'no name' "$err" && complain "run -v tells what was there before"

# refused TEXT... -- ARGUMENT...: one line with the texts, and status 125.
refused()
{
    count=0
    for text in "$@"; do
        [ "$text" != -- ] || break
        count=$((count + 1))
    done
    first_text=$1
    second_text=${2:-}
    [ $count = 2 ] || second_text=
    shift $((count + 1))
    try 125 "$wrapper" "$@"
    says_only "$first_text" "$second_text"
}
for command in run profile regions check-config report; do
    refused "$command: there is no option --regoin" -- \
        "$command" --regoin x true
    refused "$command: there is no option -Z" -- "$command" -Z true
done
refused "there is no option --regoin; see" -- run --regoin=x true
refused "there is no option -Z" -- run -qZ true
refused "there is no option --output" -- run --output x true
refused "there is no option --off" -- regions --off true
refused "there is no option --report" -- regions --report x true
refused "there is no option --save" -- regions --save x true
refused "there is no option --auto" -- profile --auto true
for option in --report --trace -t --dump --save; do
    refused "profile: there is no option $option" -- profile $option x true
done
refused "--region wants a value" -- run --region
refused "-r wants a value" -- run -qr
refused "--off takes no value" -- run --off=x true
refused "a region needs a name" -- run -r ''
refused "a region needs a name" -- run -r :warmup=1 true
refused "no '=' in the name of a region: a=b" -- run -r 'a=b:warmup=1' true
refused "region a b is given twice" -- run -r 'a b' -r 'a b:warmup=1' true
refused "no program is named" -- run
refused "no program is named" -- regions --
refused "no command is named" --
refused "there is no command ./app; see cgshim --help" -- ./app
refused "there is no command --regoin" -- --regoin
refused "no file is named" -- report
refused "--compare wants" -- report --compare a
refused "one file, not 2" -- check-config a b
refused '?[31m' -- "$(printf '\033[31m')"

# Each option is in the help of its command and in the manual, and each of the
# manual is in a help.
for command in run profile regions report check-config; do
    try 0 "$wrapper" "$command" --help
    silent "$command --help"
    says "$out" "usage: cgshim $command"
    [ "$(awk '{ if (length($0) > 80) print }' "$out")" = "" ] ||
        complain "$command --help: lines of more than 80 columns"
    cp "$out" help
    try 0 "$wrapper" "$command" -h
    cmp -s help "$out" || complain "$command -h"
    tr -c 'a-z-' '\n' < help | grep -x -e '--[a-z][a-z-]*' >> helps
done
try 0 "$wrapper" --help
says "$out" "usage: cgshim COMMAND"
tr -c 'a-z-' '\n' < "$out" | grep -x -e '--[a-z][a-z-]*' >> helps
sort -u helps > told
sed -e '/^\.Bl/d' -e '/^\.Dl/d' "$scripts/cgshim.1" | tr -c 'a-z-' '\n' |
    sed -n 's/^-\([a-z][a-z-]*\)$/--\1/p' | sort -u > manual
while read -r option; do
    grep -q -x -e "$option" manual || complain "the manual lacks $option"
done < told
while read -r option; do
    # That of env(1), which is told of.
    [ "$option" = --default-signal ] || grep -q -x -e "$option" told ||
        complain "no help has $option of the manual"
done < manual
# Keys of rules alone have none.
for name in $(sed -n '/cgs_config_keys\[\] = /,/^};/p' \
    "$here/../src/config.c" | tr '\n' ' ' | tr '{' '\n' |
    sed -n '/CGS_CONFIG_IN_RULES/d; s/^"\([a-z_]*\)".*/\1/p'); do
    option=--$(echo "$name" | tr _ -)
    grep -q -x -e "$option" told || complain "no option $option for a key"
done

# ---- check-config ----

try 0 env CGSHIM_REGION_a='nvtx="x:y z" warmup=3' CGSHIM_LOG=info \
    "$wrapper" check-config -t trace -d gate=off -r 'b:from="a b" to=c' \
    -r c:between=sync
silent check-config
says "$out" "# CGSHIM_DUMP is not set"
grep -v '^#' "$out" > settings
try 0 "$wrapper" check-config settings
grep -v '^#' "$out" > again
cmp -s settings again || complain "settings as a file: $(diff settings again)"
# The example that is installed means something.
sed 's/^#\(CGSHIM[A-Za-z_]*=\)/\1/' "$(dirname "$wrapper")/cgshim.conf" \
    > example
try 0 "$wrapper" check-config example
silent "the example"
[ "$(grep -c '^CGSHIM' "$out")" -ge 6 ] || complain "the example: $(cat "$out")"
# Blanks and quotes at the ends of a value are part of it.
try 0 env CGSHIM_EXCLUDE='"a b", c ' CGSHIM_REPORT='/r ' "$wrapper" check-config
grep -v '^#' "$out" > settings
says settings 'CGSHIM_EXCLUDE=""a b", c "'
says settings 'CGSHIM_REPORT="/r "'
try 0 "$wrapper" check-config settings
grep -v '^#' "$out" > again
cmp -s settings again || complain "ends of values: $(diff settings again)"
# All that is wrong is said, and nothing else.
echo 'CGSHIM_LOG=louder' > config
try 1 env CGSHIM_REGION_a=warmup=x 'CGSHIM_REGION_b b=what=1' CGSHIM_LGO=1 \
    CGSHIM=maybe "$wrapper" check-config -d 'nvtx=a' -t stderr config
[ ! -s "$out" ] || complain "check-config: settings in spite of mistakes"
is "$(grep -c '^cgshim: ' "$err")" 7 "check-config: mistakes"
is "$(wc -l < "$err")" 7 "check-config: lines"
for text in CGSHIM_REGION_a 'CGSHIM_REGION_b b: what=1' CGSHIM=maybe \
    CGSHIM_DEFAULTS CGSHIM_TRACE=stderr config:1 '(CGSHIM_LOG is)'; do
    says "$err" "$text"
done
try 1 "$wrapper" check-config no/such/file
says_only no/such/file "No such file"
# The program's own preloads do not speak in between.
try 0 env LD_PRELOAD="$first" "$wrapper" check-config
# Whatever is asked by mistake costs a program nothing.
CGSHIM_CHECK_CONFIG=1 LD_PRELOAD=$SHIM_LIB sh -c 'echo out' > "$out" 2> "$err"
is "$(cat "$out")" out "CGSHIM_CHECK_CONFIG in a program"

# ---- What keeps a program from running, or the library from being loaded ----

refused_program()
{
    wanted=$1
    text=$2
    shift 2
    try "$wanted" "$wrapper" run "$@"
    says_only "$text"
}
mkdir folder
echo 'echo hi' > plain_file
refused_program 127 "./no: there is no such program" ./no
refused_program 127 "no-such-program: no such program in any folder of PATH" \
    no-such-program
refused_program 127 "in any folder of PATH" -- ''
refused_program 126 "./folder: is a folder" ./folder
refused_program 126 "./plain_file: is not executable" ./plain_file
try 126 env PATH="$scratch" /bin/sh -c 'PATH=$0:/usr/bin:/bin exec "$@"' \
    "$scratch" "$wrapper" run plain_file
says_only "plain_file: is not executable"
chmod +x plain_file
is "$("$wrapper" run ./plain_file)" hi "a script without a first line"
script()
{
    printf "$@" > script
    chmod +x script
}
script '#!/no/such/sh -x\necho hi\n'
refused_program 127 "its interpreter /no/such/sh is not there" ./script
script '#! /usr/bin/env no-such-sh\n'
refused_program 127 "interpreter no-such-sh is in no folder of PATH" ./script
script '#!/usr/bin/env -S no-such-sh -x\n'
refused_program 127 "interpreter no-such-sh is in no folder of PATH" ./script
script '#!/bin/sh\r\necho hi\r\n'
refused_program 127 "ends in a carriage return" ./script
script '#!/usr/bin/env -S A=b sh -e\necho hi $A\n'
is "$("$wrapper" run ./script 2>&1)" "hi b" "a script with env"
script '#!/bin/sh -e\necho "$0" "$@"\n'
is "$(PATH=$scratch:$PATH "$wrapper" run script a 2>&1)" \
    "$scratch/script a" "a script on PATH"

# warned TEXT PROGRAM: one line on stderr, which -q leaves out.
warned()
{
    "$wrapper" run "$2" > "$out" 2> "$err"
    status=$?
    grep -F 'cgshim: ' "$err" > "$scratch/ours"
    says "$scratch/ours" "$2" "$1"
    is "$(wc -l < "$scratch/ours")" 1 "$2: lines"
    "$wrapper" run -q "$2" 2>&1 | grep -q -F 'cgshim: ' &&
        complain "$2: -q is not quiet"
}
cat > start.c << 'END'
void _start(void);
void _start(void)
{
#if defined(__aarch64__)
    register long number __asm__("x8") = 94;
    register long status __asm__("x0") = 5;

    __asm__ volatile("svc 0" : : "r"(number), "r"(status));
#else
    __asm__ volatile("syscall" : : "a"(231), "D"(5));
#endif
    __builtin_unreachable();
}
END
# runs_all_the_same TEXT PROGRAM: as it does without the wrapper.
runs_all_the_same()
{
    warned "$@"
    "$2" > /dev/null 2>&1
    is $status $? "$2: exit status"
}
# shellcheck disable=SC2086
if ${CC:-cc} -nostdlib -static -o static start.c 2> /dev/null; then
    runs_all_the_same "is linked statically" ./static
    script '#!%s/static\n' "$scratch"
    runs_all_the_same "(its interpreter $scratch/static)" ./script
    ln -s static link
    runs_all_the_same "is linked statically" ./link
    ${CC:-cc} -nostdlib -static-pie -o static-pie start.c 2> /dev/null &&
        runs_all_the_same "is linked statically" ./static-pie
else
    echo "there is no compiler that links statically here"
fi
echo 'int main(void) { return 4; }' > main.c
if ${CC:-cc} -Wl,--dynamic-linker=/lib/ld-musl-none.so.1 -o musl main.c; then
    warned "is linked to musl" ./musl
    ${CC:-cc} -Wl,--dynamic-linker=/no/ld.so -o unlinked main.c
    refused_program 127 "needs the dynamic linker /no/ld.so" ./unlinked
fi
for true in /bin/true /usr/bin/true; do
    [ ! -x "$true" ] || break
done
cp "$true" bits32
printf '\001' | dd of=bits32 bs=1 seek=4 conv=notrunc 2> /dev/null
warned "a 32-bit program" ./bits32
cp "$true" machine
printf '\050' | dd of=machine bs=1 seek=18 conv=notrunc 2> /dev/null
warned "a program for another machine" ./machine
cp "$true" short
printf '\177ELF' > short
warned "for another machine" ./short
loader=$(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 \
    2> /dev/null | head -n 1)
if [ -n "$loader" ]; then
    try 0 "$wrapper" run "$loader" "$true"
    silent "the dynamic linker as program"
fi

if [ "$(id -u)" = 0 ] && chown 65534:65534 musl 2> /dev/null; then
    cp "$true" setuid
    chown 65534 setuid
    chmod u+s setuid
    runs_all_the_same "is setuid" ./setuid
    cp "$true" setgid
    chown 0:65534 setgid
    chmod g+s setgid
    runs_all_the_same "is setgid" ./setgid
    cp "$true" own
    chmod u+s own
    try 0 "$wrapper" run ./own
    silent "a setuid program of one's own"
    # Others may not reach the source tree.
    cp "$wrapper" "$SHIM_LIB" "$scratch"
    cp "$true" capable
    if setcap cap_net_raw+ep capable 2> /dev/null &&
        setpriv --reuid=65534 --regid=65534 --clear-groups true 2> /dev/null
    then
        CGSHIM_LIB=$scratch/libcgshim.so setpriv --reuid=65534 --regid=65534 \
            --clear-groups "$scratch/cgshim" run ./capable > "$out" 2> "$err"
        says_only "./capable: has file capabilities"
        try 0 "$wrapper" run ./capable
        silent "file capabilities for root"
    else
        echo "file capabilities cannot be set here"
    fi
    rm -f cgshim libcgshim.so
else
    echo "not root, or no other owner can be set: no setuid programs"
fi

# ---- Programs without CUDA ----

try 0 "$wrapper" run true
silent "run true"
for mode in "run -v" regions; do
    try 0 "$wrapper" $mode true
    says "$err" "the program never initialised CUDA"
    try 137 "$wrapper" $mode sh -c 'kill -KILL $$'
    says "$err" "status 137, which stands for signal 9"
done
try 0 "$wrapper" run -v --off true
says "$err" "no report: CGSHIM=off"
try 0 "$wrapper" run -v -o report.json true
grep -q "never initialised" "$err" &&
    complain "the user's own report is judged"
says "$err" CGSHIM_REPORT=report.json

# ---- Where the library is ----

unset CGSHIM_LIB
tree=$scratch/dest
(
    unset MAKEFLAGS MFLAGS MAKELEVEL
    make -s -C "$TOP_BUILD_DIR" install DESTDIR="$tree" bindir=/opt/cg/bin \
        libdir=/opt/cg/lib/x86_64-linux-gnu mandir=/opt/cg/man \
        includedir=/opt/cg/include
) > "$out" 2>&1 || complain "make install: $(cat "$out")"
[ -s "$tree/opt/cg/man/man1/cgshim.1" ] || complain "no manual is installed"

# uses LIBRARY WRAPPER
uses()
{
    try 0 "$2" --version
    [ "$(cat "$out")" = "cgshim $version ($1)" ] ||
        complain "$2: $(cat "$out" "$err"), not $1"
    try 0 "$2" run sh -c 'echo "$LD_PRELOAD"'
    is "$(cat "$out")" "$1" "$2: LD_PRELOAD"
}
version=$(sed -n 's/^AC_INIT(\[cgshim\], \[\(.*\)\]).*/\1/p' \
    "$here/../configure.ac")
uses "$tree/opt/cg/lib/x86_64-linux-gnu/libcgshim.so" "$tree/opt/cg/bin/cgshim"
mv "$tree/opt/cg" "$scratch/moved"
uses "$scratch/moved/lib/x86_64-linux-gnu/libcgshim.so" \
    "$scratch/moved/bin/cgshim"
mkdir bin
ln -s ../moved/bin/cgshim bin/cg
ln -s "$scratch/bin/cg" bin/far
uses "$scratch/moved/lib/x86_64-linux-gnu/libcgshim.so" "$scratch/bin/far"
is "$(cd moved/bin && PATH=$PATH:. && cgshim --version)" \
    "cgshim $version ($scratch/moved/lib/x86_64-linux-gnu/libcgshim.so)" \
    "the wrapper on PATH"
for folder in lib lib64; do
    mkdir -p "any/bin" "any/$folder"
    cp "$scripts/cgshim" any/bin
    cp "$SHIM_LIB" "any/$folder"
    uses "$scratch/any/$folder/libcgshim.so" "$scratch/any/bin/cgshim"
    rm -r any
done
mkdir -p tree/scripts tree/build/src/.libs
cp "$scripts/cgshim" tree/scripts
cp "$SHIM_LIB" tree/build/src/.libs
uses "$scratch/tree/build/src/.libs/libcgshim.so" "$scratch/tree/scripts/cgshim"
CGSHIM_LIB=$SHIM_LIB
export CGSHIM_LIB
uses "$SHIM_LIB" "$scratch/tree/scripts/cgshim"
ln -s "$SHIM_LIB" libcgshim.so
CGSHIM_LIB=libcgshim.so
uses "$scratch/libcgshim.so" "$scratch/tree/scripts/cgshim"
CGSHIM_LIB=$scratch/nowhere/libcgshim.so
try 125 "$wrapper" run true
says_only "nowhere/libcgshim.so: there is no such library"
CGSHIM_LIB=$first
try 125 "$wrapper" check-config
says_only "does not answer"
unset CGSHIM_LIB
rm -r tree/build
try 125 tree/scripts/cgshim run true
says_only "libcgshim.so is not in" "CGSHIM_LIB=FILE says where it is"
for name in 'a b' a:b; do
    mkdir -p "$name/bin" "$name/lib"
    cp "$scripts/cgshim" "$name/bin"
    cp "$SHIM_LIB" "$name/lib"
    try 125 "$name/bin/cgshim" run true
    says_only "has a blank or a colon" "$name/lib/libcgshim.so"
done
CGSHIM_LIB=$SHIM_LIB
export CGSHIM_LIB

# ---- Reports ----

not_a_report()
{
    printf '%s' "$2" > no.json
    try 1 "$wrapper" report no.json
    says_only "no.json" "$1"
}
not_a_report "is empty" ""
not_a_report "it is not whole" '{'
not_a_report "it is not whole" '{"mode": "on", "regions": [{"name": "a"}'
not_a_report "no JSON" '{"mode": "on"]'
not_a_report "no JSON" '{"mode" "on"}'
not_a_report "no JSON" '{"mode": on}'
not_a_report "a string has no end" '{"mode": "on}'
not_a_report "more than one value" '{"mode": "on"} {}'
not_a_report "no report of cgshim" '{"a": [1, 2]}'
not_a_report "no report of cgshim" '{"schema": 1, "mode": "on", "regions": []}'
not_a_report "no report of cgshim" '{"schema": 1, "kind": "thing"}'
not_a_report "a profile, not a report" \
    '{"schema": 1, "kind": "profile", "regions": []}'
not_a_report "a report of schema 2, and only 1 is known here" \
    '{"schema": 2, "kind": "report", "regions": []}'
not_a_report "a report of schema " '{"kind": "report", "regions": []}'
try 1 "$wrapper" report none.json
says_only "none.json: there is no such file"
try 1 "$wrapper" report folder
says_only "folder: there is no such file"

# A report on one line, with strings that a terminal would obey.
printf '%s' '{"schema":1,"kind":"report","version":"1",
"program":"a\u001b[31m \"q\" \\ \u00e4\u0085","pid":7,"mode":"observe",
"active":false,"why_not":"no region ran","driver_version":0,"note":"n\u000a",
"launches":1234567,"copies":0,"sets":1,"swallowed_launches":0,"graphs":0,
"host_saved_ns":0,"advice":["a \\x1b b"],"regions":[]}' |
    tr -d '\n' > 'odd=1.json'
try 0 "$wrapper" report 'odd=1.json'
cat > wanted << 'END'
cgshim 1: NOT ACTIVE in a\x1b[31m "q" \ \u00e4\u0085 (pid 7), driver not known: no region ran
  note: n\n
  total: 0.0% of launches swallowed, 0 graphs launched, host time saved: 0.0 us
  seen: 1234567 launches, 0 copies, 1 sets in 0 runs, 0 of them replayed, 0 plain
  advice: a \x1b b
END
cmp -s wanted "$out" || complain "odd=1.json: $(diff wanted "$out")"

# What no program of these has, or only by chance: times, losses, a mistake, and
# many regions that ran once.
{
    cat << 'END'
{"schema": 1, "kind": "report", "version": "1", "program": "p", "pid": 7,
 "mode": "on", "active": true, "why_not": null, "driver_version": 12080,
 "note": null, "launches": 3000, "copies": 0, "sets": 0,
 "swallowed_launches": 2999, "graphs": 1, "host_saved_ns": -12345678901,
 "advice": [], "regions": [
 {"name": "g", "state": "replaying", "runs": 1000, "replayed_runs": 99,
  "plain_runs": 900, "unseen_runs": 900, "calls": 200, "seen_launches": 0,
  "swallowed": 198, "launches": 99, "patched": 0, "build_ns": 0,
  "device_bytes": 0, "host_saved_ns": 0, "verifies": true},
 {"name": "a", "state": "plain", "runs": 3, "replayed_runs": 2, "plain_runs": 1,
  "calls": 3000, "swallowed": 2999, "launches": 1, "patched": 1000000,
  "build_ns": 150000, "device_bytes": 1025, "host_saved_ns": -1260000,
  "plain_run_ns": 58999, "replayed_run_ns": 1234567,
  "fallbacks": [{"reason": "r", "count": 1}],
  "cuts": [{"reason": "c", "count": 2}], "verified": 1,
  "unverified": [{"reason": "u", "count": 1}],
  "mistake": {"run": 2, "nodes": 6, "base": 140248935137792, "bytes": 320,
   "offset": 1, "op_index": 5, "kernel": "k\u001b"},
  "first_divergence": null, "divergences": [{"op_index": 1, "call": "copy",
   "kernel": "copy", "what": "size", "arg": -1, "runs": 1, "share": 0.033,
   "pattern": null}],
  "advice": ["one", "two"]},
 {"name": "b", "state": "ended", "runs": 2, "replayed_runs": 0, "plain_runs": 0,
  "calls": 0, "swallowed": 0, "launches": 0, "verifies": true, "patched": 0, "build_ns": 0,
  "device_bytes": 0, "host_saved_ns": null, "plain_run_ns": 1,
  "replayed_run_ns": null, "verified": 2}
END
    for i in $(seq 15); do
        printf ', {"name": "a name that is long %s", "runs": 1,
            "host_saved_ns": 0}\n' "$i"
    done
    echo ']}'
} > many.json
try 0 "$wrapper" report many.json
cat > wanted << 'END'
cgshim 1: active in p (pid 7), driver 12.8
  total: about 99.9% of launches swallowed, 1 graph launched, host time saved: -12.3 s (1 region not known)
  seen: 3000 launches, 0 copies, 0 sets in 120 runs, 101 of them replayed, 1 plain
  not looked at: 900 runs that the gate sent plain
  region  runs  replayed  calls  swallowed  saved ms  graphs  patched  build ms  GPU KB  state
  g       1000        99    200      ~9.9%       0.0      99        0       0.0       0  replaying
    verified: none
  a          3         2   3000      99.9%      -1.2       1     1.0M       0.2       2  plain
    from run to run: 58.9 us plain, 1.2 ms replayed
    most often: in 3.3% of runs call 1, copy, size
    plain: 1 time: r
    cut: 2 times: c
    verified: 1 graph left what its calls leave
    not verified: 1 time: u
    WRONG: run 2, a graph of 6 calls left other bytes than these calls leave:
        buffer 0x7f8e3ff58200 of 320 bytes, first at byte 1, last taken by call 5, k\x1b
    advice: one
    advice: two
  b          2         0      0       0.0%         -       0        0       0.0       0  ended
    verified: 2 graphs left what their calls leave
  15 regions that ran once are left out
END
cmp -s wanted "$out" || complain "many.json: $(diff wanted "$out")"

cat > profile.json << 'END'
{"schema": 1, "kind": "profile", "regions": [
 {"name": "step", "run_ns": 200000, "expected_run_ns": 50000,
  "expected_gain": 4.0, "verdict": "launch-bound",
  "longest_gaps": [{"ns": 1, "before": "x", "after": "y"}]},
 {"name": "not \"now\"", "run_ns": 1000, "expected_run_ns": 2000,
  "expected_gain": 0.5, "verdict": "device-bound"},
 {"name": "late", "run_ns": null, "expected_run_ns": null,
  "expected_gain": null, "verdict": "not known"}],
 "outside": {"name": null, "run_ns": null, "verdict": "not known"}}
END
cat > report.json << 'END'
{"schema": 1, "kind": "report", "mode": "on", "regions": [
 {"name": "step", "state": "replaying", "plain_run_ns": 190000,
  "replayed_run_ns": 80000},
 {"name": "late", "state": "replaying", "plain_run_ns": 9000,
  "replayed_run_ns": 3000},
 {"name": "new", "state": "plain", "plain_run_ns": 9000,
  "replayed_run_ns": null}]}
END
cat > wanted << 'END'
  region     plain us  expected us  gain  achieved us  gain  plain of  verdict       state
  step          200.0         50.0  4.00         80.0  2.50  profile   launch-bound  replaying
  not "now"       1.0          2.0  0.50            -     -  profile   device-bound  -
  late            9.0            -     -          3.0  3.00  report    not known     replaying
  new             9.0            -     -            -     -  report    -             plain
us: from one start of a run to the next; gain: plain us / us;
-: not known, or the region is not in that file
END
for option in --compare -c; do
    try 0 "$wrapper" report $option profile.json report.json
    cmp -s wanted "$out" || complain "compare: $(diff wanted "$out")"
done
try 1 "$wrapper" report --compare report.json profile.json
says_only "report.json" "no profile of cgshim"
sed 's/"schema": 1/"schema": 3/' profile.json > later.json
try 1 "$wrapper" report --compare later.json report.json
says_only "later.json" "a profile of schema 3, and only 1 is known here"
try 1 "$wrapper" report --compare profile.json later.json
says_only "later.json" "a profile, not a report"
rm report.json

# ---- Programs with CUDA ----

# masked FILE: without what differs between two processes.
masked()
{
    grep -v '^cgshim: region ' "$1" |
        sed -e 's/(pid [0-9]*)/(pid N)/' -e 's/0x[0-9a-f]*/0xN/g'
}
# A table with times and sizes: without these, and their widths.
masked_more()
{
    masked "$1" | awk '{ sub(/ended after replays$/, "ended-after-replays") }
        /^  .*[0-9] +(replaying|recorded|plain|warm-up|ended|ended-.*)$/ {
        $(NF - 1) = $(NF - 2) = $(NF - 5) = "N" }
        sub(/host time saved: [-0-9.]* (s|ms|us)/, "host time saved: N") { }
        { $1 = $1; print }'
}

# same_table MASK PROGRAM OPTION...: what the wrapper makes of the JSON is what
# the library prints.
same_table()
{
    mask=$1
    program=$2
    shift 2
    argument=
    [ "$program" != heat ] || argument=--small
    "$wrapper" run "$@" -o stderr "$programs/$program" $argument \
        > /dev/null 2> library.table
    "$wrapper" run "$@" -o report.json "$programs/$program" $argument \
        > /dev/null 2>&1
    try 0 "$wrapper" report report.json
    $mask library.table > wanted
    $mask "$out" > got
    cmp -s wanted got || complain "$program $*: $(diff wanted got)"
}
if [ -n "$has_cuda" ]; then
    pace="max_defer_us=1000000000 gate=off chunk=all"
    for program in changing_args changing_sequence copies_sets const_args heat \
        nested_ranges program_graphs sync_inside; do
        same_table masked "$program" --observe
        same_table masked_more "$program" -d "$pace"
    done
    same_table masked const_args --off -x nothing --on -d enable=0
    same_table masked const_args --observe -r "$(printf 'q"\\\t\033ä'):nvtx=*"
    same_table masked const_args --observe \
        -r "$(printf 'too long a name \303\266\303\266\303\266\303\266'):nvtx=*"
    SIM_DRIVER_VERSION=12030 same_table masked const_args -d "$pace"
    for program in changing_args copies_sets program_graphs; do
        same_table masked_more "$program" -d "$pace" --verify 1
    done
    SIM_PLANT=drop same_table masked_more changing_args -d "$pace" --verify 1
    # The simulated driver alone leaves out what it is told to.
    [ -z "${SIM_DIR:-}" ] || says "$out" "WRONG: run 2, "

    rm -f ./*.json
    "$wrapper" run -o r.%p.json "$programs/const_args" > /dev/null
    "$wrapper" run -o r.%p.json "$programs/const_args" > /dev/null
    try 0 "$wrapper" report r.*.json
    is "$(grep -c '^cgshim ' "$out")" 2 "several reports"

    try 0 "$wrapper" regions "$programs/nested_ranges"
    "$programs/nested_ranges" > plain
    cmp -s plain "$out" || complain "regions: another output"
    for line in "outer 8 80 10 in 2 ways: 1 of 8 runs were as none before" \
        "inner 8 16 2 yes" "registered 8 16 2 yes, with other arguments" \
        "number 0 1 2 2 ran once" "no work 8 0 0 no work in it"; do
        tr -s ' ' < "$err" | sed 's/^ //' | grep -q -x -F "$line" ||
            complain "regions: not '$line': $(cat "$err")"
    done
    try 0 "$wrapper" regions -o list -r mine:nvtx='inn*' \
        "$programs/nested_ranges"
    cmp -s plain "$out" || complain "regions -o: another output"
    silent "regions -o"
    says list "1 region"
    says list " mine "
    try 0 "$wrapper" regions "$programs/changing_sequence"
    says "$err" "no: 18 of 33 runs were as none before"
    # Without ranges: what would be found. It gives way to ranges.
    try 0 "$wrapper" regions "$programs/loops" 2
    "$programs/loops" 2 > plain
    cmp -s plain "$out" || complain "regions without ranges: another output"
    says "$err" "no NVTX range was seen"
    says "$err" "CGSHIM_AUTO=1 (run --auto) makes regions"
    says "$err" "auto:k_hash:24 " "yes, with other arguments"
    try 0 "$wrapper" regions --auto "$programs/loops" 2
    says "$err" "auto:k_hash:24 "
    grep -q 'run --auto' "$err" && complain "regions --auto tells of --auto"
    try 0 "$wrapper" regions -r mine:from=k_hash\ calls=24 "$programs/loops" 2
    says "$err" " 1 region"
    says "$err" " mine "
    try 0 "$wrapper" regions "$programs/const_args"
    says "$err" " 1 region"
    grep -q auto "$err" && complain "regions: found in spite of ranges"
    # The user's own report is not touched, and has no second one beside it.
    echo own > own.json
    CGSHIM_REPORT=own.json "$wrapper" regions "$programs/const_args" \
        > /dev/null 2> "$err"
    is "$(cat own.json)" own "CGSHIM_REPORT under regions"
    try 0 "$wrapper" run -v "$programs/const_args"
    is "$(wc -l < "$err")" 1 "run -v: lines"

    # A rule of an option comes before one of the environment.
    CGSHIM_REGION_all='nvtx=*' "$wrapper" run -o report.json \
        -r 'mine of all:nvtx=const*' "$programs/const_args" > /dev/null
    says report.json '"name": "mine of all"'
fi

# ---- Profiles ----

try 0 "$wrapper" profile -q env
says "$out" CGSHIM_PROFILE=stderr
try 0 "$wrapper" profile -q -o "a b" env
says "$out" "CGSHIM_PROFILE=a b"
try 7 "$wrapper" profile -q sh -c 'exit 7'
try 0 "$wrapper" profile true
says_only "the program never initialised CUDA"
CGSHIM_LOG=warn try 0 "$wrapper" profile true
silent "profile with a log"
if [ -n "${SIM_DIR:-}" ] && [ -r "$SIM_DIR/libcupti.so.13" ]; then
    # Bound by its launches, also where replayed.
    SIM_LAUNCH_NS=20000
    export SIM_LAUNCH_NS
    "$programs/profiled" > plain
    try 0 "$wrapper" profile "$programs/profiled"
    cmp -s plain "$out" || complain "profile: another output"
    says "$err" "profile: $programs/profiled (pid "
    says "$err" "range 0 " " launch-bound"
    grep '^cgshim: ' "$err" && complain "profile: a line of the wrapper's own"
    try 0 "$wrapper" profile -o profile.json "$programs/profiled"
    cmp -s plain "$out" || complain "profile -o: another output"
    silent "profile -o"
    "$wrapper" run -o report.json "$programs/profiled" > /dev/null
    unset SIM_LAUNCH_NS
    try 0 "$wrapper" report --compare profile.json report.json
    # What each file says of the region.
    key()
    {
        sed -n "s/.*\"name\": \"range 0\".*\"$1\": \([0-9.]*\),.*/\1/p" \
            profile.json
    }
    us()
    {
        awk -v ns="$1" 'BEGIN { printf "%.1f", ns / 1000 }'
    }
    says "$out" "  range 0 " " $(us "$(key run_ns)") " \
        " $(us "$(key expected_run_ns)") " " $(key expected_gain) " \
        "  profile   launch-bound  "
    replayed=$(sed -n 's/^ *"replayed_run_ns": \([0-9]*\),$/\1/p' report.json)
    [ -z "$replayed" ] || says "$out" " $(us "$replayed") "
    try 1 "$wrapper" report profile.json
    says_only profile.json "a profile, not a report"
elif [ -n "${SIM_DIR:-}" ]; then
    echo "built without the headers of CUPTI: no profile"
    try 0 "$wrapper" profile "$programs/const_args"
    says "$err" "was built without the headers of CUPTI"
fi

# ---- The files themselves ----

if command -v shellcheck > /dev/null; then
    shellcheck "$wrapper" > "$out" || complain "shellcheck: $(cat "$out")"
fi
if command -v groff > /dev/null; then
    groff -ww -mdoc -Tascii -z "$scripts/cgshim.1" 2> "$err"
    silent "groff"
fi
if command -v mandoc > /dev/null; then
    mandoc -Tlint -Wwarning "$scripts/cgshim.1" > "$out" ||
        complain "mandoc: $(cat "$out")"
fi

[ $failed = 0 ]
