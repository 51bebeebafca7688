# SPDX-License-Identifier: Apache-2.0
"""Judges what the programs of tests/gpu left behind, for scripts/gpu-check.

Every command but the last prints rows, "kind TAB name TAB status TAB detail":
a "test" is right or wrong, a "bench" meets its target or misses it, or has
none. `summary` makes the table, the JSON and the Markdown of all rows.
"""

import argparse
import json
import os
import statistics
import sys
import textwrap

import gpu_ways

MAX_SHIM_OVER_HAND = 1.03   # within 3% of the graph written by hand
MIN_PLAIN_OVER_SHIM = 3.5   # and so much faster than plain ...
MIN_LENGTH = 64             # ... in chains of that length and more
MIN_CHAIN_SHARE = 0.95      # of a chain's calls are swallowed
TARGETS = ("const", "swap", "scalar")  # chains that have these targets
MAX_FORK_OVER_HAND = 1.05   # forks and joins over two streams
MIN_PLAIN_OVER_FORK = 4.0
MIN_PLAIN_OVER_SHIM_EVER = 0.98  # whatever a region does: never slower
RECORDED = "recorded"            # a case that is nothing else, over and over
MIN_PLAIN_OVER_RECORDED = 0.5
# Regions that vary, over the graph written by hand; where all of the arguments
# change, over one in which nothing does.
MAX_VARY_OVER_HAND = {"sync-64": 1.05, "swap": 1.03, "scalar": 1.03}
# plain/shim of Python programs, which do much besides launching
MIN_BENCH = {"torch-adamw-single": 1.3, "torch-sgd-item": 1.0, "torch-mul-sync": 2.8,
             "cupy-cg": 1.4, "jax-step": 1.0}
MIN_BENCH_SHARE = {"torch-decode-cat": 0.9, "torch-decode-inplace": 0.9}
MAX_SWALLOWED_NS = 40       # more than a hook that returns at once
MAX_PASSED_NS = 5           # more than a hook that jumps on
JUDGED_CALLS = ("cuCtxGetCurrent", "cuDriverGetVersion", "cuStreamQuery")
MAX_PRELOAD_MS = 0.3        # of a program without CUDA
MAX_TIME_RATIO = 2.0        # between times that events tell
MAX_FORECAST_RATIO = 1.2    # between the gain forecast and the one achieved
# What the profile has to say of some regions.
BOUND = {"chain-const-64": "launch-bound", "chain-const-256": "launch-bound",
         "vary-long-kernels": "device-bound",
         "vary-short-1": "too few launches",
         "vary-host-100-short-sync": "host-bound",
         "torch-mul-inplace": "launch-bound"}
WORST = "worst-plain-over-shim"


def row(kind, name, status, detail):
    print("\t".join((kind, name, status, " ".join(str(detail).split()))))


def test(name, passed, detail):
    row("test", name, "PASS" if passed else "FAIL", detail)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def regions(report):
    return {r["name"]: r for r in report["regions"]}


def share(region):
    return region["swallowed"] / region["calls"] if region["calls"] else 0.0


def reasons(region):
    """Why a region was not replayed, in the report's own words."""
    told = [f"{f['count']} x {f['reason']}" for f in region["fallbacks"]]
    first = region["first_divergence"]
    if first:
        told.append(f"first divergence in run {first['run']}, call "
                    f"{first['op_index']}, {first['kernel']}, {first['what']}")
    return "; ".join(told)


def judge_swallowed(name, report, wanted, least):
    """A row that says how much of each wanted region was swallowed."""
    known = regions(report)
    worst, passed, told = None, True, []
    for region in wanted:
        if region not in known:
            passed = False
            told.append(f"{region}: not in the report")
            continue
        part = share(known[region])
        worst = part if worst is None else min(worst, part)
        if part < least or known[region]["swallowed"] == 0:
            passed = False
            told.append(f"{region}: {part:.1%} of {known[region]['calls']}"
                        f" calls, state {known[region]['state']}"
                        f" ({reasons(known[region]) or 'no reason told'})")
    told = told[:3] + ([f"{len(told) - 3} more"] if len(told) > 3 else [])
    if worst is not None:
        told.insert(0, f"{worst:.1%} at least")
    if report.get("note"):
        told.append(report["note"])
    test(name, passed, ", ".join(told))


def judge_equal(name, plain, shim, key):
    """Rows agree inside the run under the shim, and with the run without."""
    wrong = [r[key] for r in shim if not r["equal"]]
    plain_hashes = {r[key]: r["hash"] for r in plain}
    apart = [r[key] for r in shim if plain_hashes.get(r[key]) != r["hash"]]
    apart += [k for k in plain_hashes if k not in {r[key] for r in shim}]
    unsure = [r[key] for r in plain if not r["equal"]]
    told = [f"{len(shim)} cases bit-identical"]
    if wrong or apart or unsure:
        told = []
    if wrong:
        told.append("differ inside one process: " + " ".join(wrong))
    if apart:
        told.append("differ from the run without the shim: " + " ".join(apart))
    if unsure:
        told.append("differ without the shim: " + " ".join(unsure))
    test(name, not (wrong or apart or unsure), "; ".join(told))


def chain_verdict(case):
    targets = []
    if case["variant"] == "fork":
        targets.append(case["shim_over_hand"] <= MAX_FORK_OVER_HAND)
        targets.append(case["plain_over_shim"] >= MIN_PLAIN_OVER_FORK)
    if case["variant"] in TARGETS:
        targets.append(case["shim_over_hand"] <= MAX_SHIM_OVER_HAND)
        if case["length"] >= MIN_LENGTH:
            targets.append(case["plain_over_shim"] >= MIN_PLAIN_OVER_SHIM)
    if not targets:
        return "INFO"
    return "PASS" if all(targets) else "FAIL"


def command_chain(name, plain, shim, report):
    plain, shim = load(plain), load(shim)
    judge_equal(f"{name}-equal", plain, shim, "region")
    judge_swallowed(f"{name}-replayed", load(report),
                    [c["region"] for c in shim], MIN_CHAIN_SHARE)
    for case in shim:
        row("bench", f"{name}-{case['variant']}-{case['length']}",
            chain_verdict(case),
            f"plain {case['plain_us']:.1f} shim {case['shim_us']:.1f} hand "
            f"{case['hand_us']:.1f} us, plain/shim "
            f"{case['plain_over_shim']:.2f}, shim/hand "
            f"{case['shim_over_hand']:.3f}")
    really = {c["region"]: c["plain_us"] for c in plain}
    ratios = sorted(c["plain_us"] / really[c["region"]] for c in shim
                    if c["region"] in really)
    if ratios:
        row("bench", f"{name}-outside", "INFO",
            "launches outside of any region under the shim, over those of a "
            f"process without it: median {ratios[len(ratios) // 2]:.3f}, "
            f"{ratios[0]:.3f} to {ratios[-1]:.3f}")


def verdict(targets):
    if not targets:
        return "INFO"
    return "PASS" if all(targets) else "FAIL"


def vary_verdict(case):
    least = (MIN_PLAIN_OVER_RECORDED if case["case"] == RECORDED
             else MIN_PLAIN_OVER_SHIM_EVER)
    targets = [case["plain_over_shim"] >= least]
    if case["case"] in MAX_VARY_OVER_HAND:
        targets.append(case["shim_over_hand"] <=
                       MAX_VARY_OVER_HAND[case["case"]])
    return verdict(targets)


def vary_hand(case):
    """The hand-written graph's time and ratio, as text."""
    if "hand_us" not in case:
        return "-", "-"
    return f"{case['hand_us']:.1f}", f"{case['shim_over_hand']:.3f}"


def command_vary(name, shim, report):
    shim = load(shim)
    wrong = [c["case"] for c in shim if not c["equal"]]
    test(f"{name}-equal", shim and not wrong,
         "differ from plain: " + " ".join(wrong) if wrong else
         f"{len(shim)} cases bit-identical")
    known = regions(load(report))
    for case in shim:
        hand, over_hand = vary_hand(case)
        region = known.get(case["region"])
        more = (f", {share(region):.1%} of {region['calls']} calls swallowed, "
                f"{region['patched']} patched" if region else "")
        row("bench", case["region"], vary_verdict(case),
            f"plain {case['plain_us']:.1f} shim {case['shim_us']:.1f} hand "
            f"{hand} us, plain/shim {case['plain_over_shim']:.3f}, shim/hand "
            f"{over_hand}{more}")


def read_calls(folder):
    """Median over the processes, by part, call, door and what was loaded."""
    found = {}
    for name in sorted(os.listdir(folder)):
        part, kind, _ = name.split("-")
        for r in load(os.path.join(folder, name)):
            key = (part, r["what"], r["door"])
            found.setdefault(key, {}).setdefault(kind, []).append(r["ns"])
    return [{"part": part, "what": what, "door": door,
             **{f"{kind}_ns": round(statistics.median(values), 2)
                for kind, values in kinds.items()}}
            for (part, what, door), kinds in sorted(found.items())]


def calls_verdict(case):
    over = case["shim_ns"] - case["hook_ns"]
    if case["what"] == "launch in a region":
        return verdict([over <= MAX_SWALLOWED_NS])
    if case["what"] in JUDGED_CALLS:
        return verdict([over <= MAX_PASSED_NS])
    return "INFO"


def command_calls(name, folder, preload, out):
    cases = read_calls(folder)
    for case in cases:
        plain = f"plain {case['plain_ns']:.1f} " if "plain_ns" in case else ""
        row("bench", f"{name}-{case['what'].replace(' ', '-')}-{case['door']}",
            calls_verdict(case),
            f"{plain}hook {case['hook_ns']:.1f} shim {case['shim_ns']:.1f} ns,"
            f" {case['shim_ns'] - case['hook_ns']:+.1f} over the hook")
    with open(preload, encoding="utf-8") as file:
        words = file.read().split()
    times = dict(zip(words[::2], map(float, words[1::2])))
    row("bench", f"{name}-preload",
        verdict([times["difference"] < MAX_PRELOAD_MS]),
        f"/bin/true {times['plain']:.3f} ms, {times['preloaded']:.3f} with "
        f"the shim, {times['difference']:+.3f}")
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"calls": cases, "preload_ms": times}, file, indent=1)


def bench_verdict(case, region):
    name = case["region"]
    targets = [case["plain_over_shim"] >=
               MIN_BENCH.get(name, MIN_PLAIN_OVER_SHIM_EVER)]
    if name in MIN_BENCH_SHARE:
        targets.append(bool(region) and share(region) > MIN_BENCH_SHARE[name])
    return verdict(targets)


def command_bench(name, plain, shim, report):
    plain, shim = load(plain), load(shim)
    judge_equal(f"{name}-equal", plain, shim, "region")
    report = load(report)
    judge_swallowed(f"{name}-replayed", report, [r["region"] for r in shim],
                    0.0)
    known = regions(report)
    for case in shim:
        region = known.get(case["region"])
        more = (f", {share(region):.1%} of {region['calls']} calls swallowed, "
                f"{region['patched']} patched" if region else "")
        row("bench", case["region"], bench_verdict(case, region),
            f"plain {case['plain_us']:.1f} shim {case['shim_us']:.1f} us, "
            f"plain/shim {case['plain_over_shim']:.2f}{more}")


def command_profile(name, forecast, shim, plain):
    """What was forecast of each region against what came of it."""
    known = regions(load(forecast))
    plain, shim = load(plain), load(shim)
    wrong = [c["region"] for c in plain + shim if not c["equal"]]
    test(f"{name}-equal", plain and shim and not wrong,
         "differ: " + " ".join(wrong) if wrong else
         f"{len(plain)} cases bit-identical while profiled")
    for case in shim:
        region = known.get(case["region"])
        if region is None:
            test(f"{name}-{case['region']}", False, "not in the profile")
            continue
        wanted = BOUND.get(case["region"])
        if wanted:
            test(f"{name}-{case['region']}-verdict",
                 region["verdict"] == wanted,
                 f"{region['verdict']}, wanted {wanted}: {region['why']}")
        gain, achieved = region["expected_gain"], case["plain_over_shim"]
        near = (gain is not None and achieved > 0 and
                1 / MAX_FORECAST_RATIO <= gain / achieved <=
                MAX_FORECAST_RATIO)
        row("bench", f"{name}-{case['region']}", verdict([near]),
            f"forecast {gain}, achieved {achieved:.2f}; {region['verdict']}: "
            f"run {region['run_ns']} ns, plain really "
            f"{case['plain_us'] * 1000:.0f}; {region['why']}")


def command_swallowed(name, report, *wanted):
    judge_swallowed(name, load(report), wanted, 0.0)


def command_seen(name, own, report):
    own, report = load(own), load(report)
    kinds = ("launches", "copies", "sets")
    test(name, all(own[k] == report[k] for k in kinds),
         ", ".join(f"{k} {own[k]} made {report[k]} seen" for k in kinds))


def read_times(path):
    """The median of each column."""
    with open(path, encoding="utf-8") as file:
        columns = zip(*([float(t) for t in line.split()] for line in file))
        return [statistics.median(column) for column in columns]


def command_times(name, plain, shim):
    """Times told by events under the shim, against those told without it."""
    plain, shim = read_times(plain), read_times(shim)
    passed = len(plain) == len(shim) > 0 and all(
        p > 0 and 1 / MAX_TIME_RATIO <= s / p <= MAX_TIME_RATIO
        for p, s in zip(plain, shim))
    test(name, passed, ", ".join(f"{p:.3f} ms plain {s:.3f} ms shim"
                                 for p, s in zip(plain, shim)))


def read_counts(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        pairs = (line.rstrip("\n").rsplit(" ", 1) for line in file)
        return {key: int(value) for key, value in pairs}


def command_cupti(name, plain, shim):
    """Kernels by name in one row, copies and sets in another."""
    plain, shim = read_counts(plain), read_counts(shim)
    for suffix, wanted in (("kernels", False), ("copies-sets", True)):
        keys = sorted(k for k in set(plain) | set(shim)
                      if k.startswith("[") == wanted)
        wrong = [k for k in keys if plain.get(k, 0) != shim.get(k, 0)]
        told = [f"{k}: {plain.get(k, 0)} plain {shim.get(k, 0)} shim"
                for k in wrong[:4]]
        if not wrong:
            told = [f"{sum(plain.get(k, 0) for k in keys)} executions of "
                    f"{len(keys)} {'kinds' if wanted else 'kernels'}"]
        # without one kernel nothing was counted, which proves nothing
        test(f"{name}-{suffix}", not wrong and (bool(keys) or wanted),
             "; ".join(told))


def keep(rows, found, out):
    for r in rows:
        row(*r)
    if found:
        with open(out, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


def command_ways(name, folder, out):
    keep(*gpu_ways.judge(name, folder), out)


def command_bare_chain(name, folder, out):
    keep(*gpu_ways.judge_chain(name, folder), out)


def read_rows(path):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [r for r in rows if len(r) == 4]


def print_summary(rows):
    for kind, title in (("bench", "benchmarks"), ("test", "tests")):
        chosen = [r for r in rows if r[0] == kind]
        passed = [r[1] for r in chosen if r[2] == "PASS" and kind == "test"]
        if passed:
            print("passed tests:")
            print(textwrap.fill(" ".join(passed), 100, initial_indent="  ",
                                subsequent_indent="  ",
                                break_on_hyphens=False))
        rest = [r for r in chosen if not (kind == "test" and r[2] == "PASS")]
        if rest:
            print(f"{title}:" if kind == "bench" else "other tests:")
        for r in rest:
            print(f"  {r[2]:4s} {r[1]:30s} {r[3]}")
    status = [(r[0], r[2]) for r in rows]
    targets = [s for k, s in status if k == "bench" and s in ("PASS", "FAIL")]
    print(f"benchmarks: {targets.count('PASS')} of {len(targets)} with a "
          "target meet it")
    print(f"{status.count(('test', 'PASS'))} passed, "
          f"{status.count(('test', 'FAIL'))} failed, "
          f"{status.count(('test', 'SKIP'))} skipped")


def markdown_table(head, rows):
    lines = ["| " + " | ".join(head) + " |",
             "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(c).replace("|", "\\|") for c in r) + " |"
              for r in rows]
    return "\n".join(lines) + "\n"


def markdown_chains(raw):
    rows = []
    for name in sorted(raw):
        if (not name.startswith(("chain-", "fork-")) or
                not name.endswith("-shim") or
                not isinstance(raw[name], list)):
            continue
        for c in raw[name]:
            rows.append((c["cudart"], c["stream"], c["variant"], c["length"],
                         f"{c['plain_us']:.1f}", f"{c['shim_us']:.1f}",
                         f"{c['hand_us']:.1f}", f"{c['plain_over_shim']:.2f}",
                         f"{c['shim_over_hand']:.3f}", chain_verdict(c)))
    head = ("cudart", "stream", "variant", "kernels", "plain us", "shim us",
            "hand us", "plain/shim", "shim/hand", "target")
    return markdown_table(head, rows) if rows else "not run\n"


def markdown_vary(raw):
    known = raw.get("vary-report")
    known = regions(known) if isinstance(known, dict) else {}
    cases = raw.get("vary-shim")
    rows = []
    for c in cases if isinstance(cases, list) else []:
        region = known.get(c["region"])
        rows.append((c["case"], c["length"], f"{c['plain_us']:.1f}",
                     f"{c['shim_us']:.1f}", vary_hand(c)[0],
                     f"{c['plain_over_shim']:.3f}", vary_hand(c)[1],
                     f"{share(region):.1%}" if region else "-",
                     region["patched"] if region else "-", vary_verdict(c)))
    head = ("case", "kernels", "plain us", "shim us", "hand us", "plain/shim",
            "shim/hand", "swallowed", "patched", "target")
    return markdown_table(head, rows) if rows else "not run\n"


def markdown_benches(raw):
    rows = []
    for name, cases in sorted(raw.items()):
        part = name[:-len("-shim")]
        if (not name.endswith("-shim") or not isinstance(cases, list) or
                part == "vary" or part.startswith(("chain-", "fork-"))):
            continue
        known = raw.get(f"{part}-report")
        known = regions(known) if isinstance(known, dict) else {}
        for c in cases:
            region = known.get(c["region"])
            least = MIN_BENCH.get(c["region"], MIN_PLAIN_OVER_SHIM_EVER)
            least = [f"at least {least}"]
            least += [f"over {MIN_BENCH_SHARE[c['region']]:.0%} swallowed"
                      ] if c["region"] in MIN_BENCH_SHARE else []
            rows.append((part, c["region"], f"{c['plain_us']:.1f}",
                         f"{c['shim_us']:.1f}", f"{c['plain_over_shim']:.3f}",
                         f"{share(region):.1%}" if region else "-",
                         region["patched"] if region else "-",
                         ", ".join(least), bench_verdict(c, region)))
    head = ("program", "region", "plain us", "shim us", "plain/shim",
            "swallowed", "patched", "wanted", "target")
    return markdown_table(head, rows) if rows else "not run\n"


def markdown_calls(raw):
    found = raw.get("calls")
    if not isinstance(found, dict):
        return "not run\n"
    rows = [(c["what"], c["door"],
             f"{c['plain_ns']:.1f}" if "plain_ns" in c else "-",
             f"{c['hook_ns']:.1f}", f"{c['shim_ns']:.1f}",
             f"{c['shim_ns'] - c['hook_ns']:+.1f}", calls_verdict(c))
            for c in found["calls"]]
    times = found["preload_ms"]
    return (markdown_table(("call", "door", "plain ns", "hook ns", "shim ns",
                            "over the hook", "target"), rows) +
            f"\nA program without CUDA (/bin/true): {times['plain']:.3f} ms, "
            f"{times['preloaded']:.3f} ms with the shim.\n")


def worst_ratio(raw):
    """The least plain/shim of all that alternated in one process."""
    found = [(c["plain_over_shim"], c["region"])
             for name, cases in raw.items()
             if name.endswith("-shim") and isinstance(cases, list)
             for c in cases
             if "plain_over_shim" in c and c.get("case") != RECORDED]
    return min(found) if found else None


def add_worst(rows, raw):
    worst = worst_ratio(raw)
    if worst:
        rows.append(["bench", WORST,
                     verdict([worst[0] >= MIN_PLAIN_OVER_SHIM_EVER]),
                     f"worst plain/shim: {worst[0]:.3f}, of {worst[1]}"])


def markdown_regions(raw):
    rows = []
    for name in sorted(raw):
        report = raw[name]
        # runs under CUPTI and observing ones say nothing new
        if (not name.endswith("-report") or not isinstance(report, dict) or
                name.startswith("cupti-") or "-observe-" in name):
            continue
        for r in report.get("regions", []):
            rows.append((name[:-len("-report")], r["name"], r["runs"],
                         r["replayed_runs"], r["calls"], f"{share(r):.1%}",
                         r["launches"], r["patched"], r["nodes"],
                         f"{r['build_ns'] / 1e6:.1f}",
                         r["device_bytes"] // 1024, reasons(r)))
    head = ("process", "region", "runs", "replayed", "calls", "swallowed",
            "graph launches", "patched", "nodes", "build ms", "device KB",
            "fallbacks, first divergence")
    return markdown_table(head, rows) if rows else "not run\n"


def markdown(meta, rows, raw):
    tests = [(r[1], r[2], r[3]) for r in rows if r[0] == "test"]
    shown = {c["region"] for name, cases in raw.items()
             if name.endswith("-shim") and isinstance(cases, list)
             for c in cases if "region" in c}
    ways = gpu_ways.names(raw)
    benches = [(r[1], r[2], r[3]) for r in rows if r[0] == "bench" and
               r[1] not in shown and r[1] not in ways and r[1] != WORST and
               not r[1].startswith(("chain-", "fork-", "calls-"))]
    worst = [r[3] for r in rows if r[1] == WORST]
    parts = ["# GPU tests and benchmarks\n",
             markdown_table(("what", "value"), sorted(meta.items())),
             *(line + ".\n" for line in worst),
             "Times are medians of rounds that alternate inside one process. "
             "`plain` launches outside of the NVTX range and `shim` inside it, "
             "`hand` is the same chain as a graph written by hand. Targets: "
             f"shim/hand at most {MAX_SHIM_OVER_HAND}, plain/shim at least "
             f"{MIN_PLAIN_OVER_SHIM} in chains of {MIN_LENGTH} and more; forks: "
             f"at most {MAX_FORK_OVER_HAND} and at least "
             f"{MIN_PLAIN_OVER_FORK}.\n",
             "## Chains of kernels, us an iteration\n", markdown_chains(raw),
             "## Regions that vary, us an iteration\n",
             "`hand` of a case whose arguments change is a graph in which "
             "nothing does. Ratios are medians over rounds that came one "
             "after the other. Targets: plain/shim at least "
             f"{MIN_PLAIN_OVER_SHIM_EVER}; shim/hand at most " +
             ", ".join(f"{most} ({case})" for case, most in
                       MAX_VARY_OVER_HAND.items()) + ".\n",
             markdown_vary(raw),
             "## A call, ns\n",
             "`hook` does nothing but jump on, or in a region return at once. "
             f"Targets: a call that passes at most {MAX_PASSED_NS} ns over it,"
             f" one that is swallowed at most {MAX_SWALLOWED_NS}; a program "
             f"without CUDA takes less than {MAX_PRELOAD_MS} ms longer.\n",
             markdown_calls(raw),
             "## Libraries and frameworks, us a pass\n",
             markdown_benches(raw),
             *gpu_ways.markdown(raw, markdown_table),
             "## Other benchmarks\n",
             markdown_table(("name", "target", "result"), benches)
             if benches else "not run\n",
             "## Tests\n", markdown_table(("name", "status", "detail"), tests),
             "## What the shim reported\n", markdown_regions(raw)]
    return "\n".join(parts)


def read_raw(folder):
    raw = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            try:
                raw[name[:-len(".json")]] = load(os.path.join(folder, name))
            except ValueError as error:
                raw[name[:-len(".json")]] = f"not JSON: {error}"
    return raw


def command_summary(rows, raw, out, *pairs):
    rows = read_rows(rows)
    raw = read_raw(raw)
    meta = dict(pair.split("=", 1) for pair in pairs)
    add_worst(rows, raw)
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "gpu-check.json"), "w",
              encoding="utf-8") as file:
        json.dump({"machine": meta,
                   "rows": [dict(zip(("kind", "name", "status", "detail"), r))
                            for r in rows], "results": raw}, file, indent=1)
        file.write("\n")
    with open(os.path.join(out, "gpu-check.md"), "w",
              encoding="utf-8") as file:
        file.write(markdown(meta, rows, raw))
    print_summary(rows)


COMMANDS = {"chain": command_chain, "bench": command_bench,
            "vary": command_vary, "calls": command_calls,
            "profile": command_profile,
            "ways": command_ways, "bare-chain": command_bare_chain,
            "swallowed": command_swallowed, "seen": command_seen,
            "cupti": command_cupti, "times": command_times,
            "summary": command_summary}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("argument", nargs="*")
    args = parser.parse_args()
    if args.command == "summary":
        COMMANDS[args.command](*args.argument)
        return 0
    try:
        COMMANDS[args.command](*args.argument)
    except Exception as error:  # a result that is missing is a failed test
        row("test", args.argument[0], "FAIL",
            f"{type(error).__name__}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
