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

MAX_SHIM_OVER_HAND = 1.03   # within 3% of the graph written by hand
MIN_PLAIN_OVER_SHIM = 3.5   # and so much faster than plain ...
MIN_LENGTH = 64             # ... in chains of that length and more
MIN_CHAIN_SHARE = 0.95      # of a chain's calls are swallowed
TARGETS = ("const", "swap", "scalar")  # chains that have these targets
MAX_FORK_OVER_HAND = 1.05   # forks and joins over two streams
MIN_PLAIN_OVER_FORK = 4.0
MAX_TIME_RATIO = 2.0        # between times that events tell


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
        row("bench", case["region"], "INFO",
            f"plain {case['plain_us']:.1f} shim {case['shim_us']:.1f} us, "
            f"plain/shim {case['plain_over_shim']:.2f}{more}")


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
    benches = [(r[1], r[2], r[3]) for r in rows if r[0] == "bench" and
               not r[1].startswith(("chain-", "fork-"))]
    parts = ["# GPU tests and benchmarks\n",
             markdown_table(("what", "value"), sorted(meta.items())),
             "Times are medians of rounds that alternate inside one process. "
             "`plain` launches outside of the NVTX range and `shim` inside it, "
             "`hand` is the same chain as a graph written by hand. Targets: "
             f"shim/hand at most {MAX_SHIM_OVER_HAND}, plain/shim at least "
             f"{MIN_PLAIN_OVER_SHIM} in chains of {MIN_LENGTH} and more; forks: "
             f"at most {MAX_FORK_OVER_HAND} and at least "
             f"{MIN_PLAIN_OVER_FORK}.\n",
             "## Chains of kernels, us an iteration\n", markdown_chains(raw),
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
