# SPDX-License-Identifier: Apache-2.0
"""Judges programs that were run several ways, each in processes of its own that
came in turn: plain, under the shim with ranges (marks), with regions that it
found by itself (auto) or with nothing to do (loaded), and as a graph written by
hand. For gpu_results.py, which prints the rows.

A folder has the results of each process as WAY-ROUND.json, what it printed as
WAY-ROUND.out, and reports of the shim: marks-report.json, auto-report.json, and
observe-report.json, which counts all launches.
"""

import json
import os
import statistics

MIN_PLAIN_OVER_SHIM = 0.98  # whatever a program does: never slower
MIN_HAND_GAIN = 0.9         # of what the hand-written graph gains
MIN_MARKS_GAIN = 0.8        # of what ranges gain, without them ...
MIN_LAUNCH_BOUND = 1.05     # ... where they gain as much as this
MAX_CHAIN_OVER_HAND = 1.05  # chains without ranges
MAX_WATCHING = 1.02         # less than that over plain: what never repeats

JUDGED = ("marks", "auto", "loaded")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_rounds(folder):
    """{way: [{region: row} of each round]}, of processes that ended well."""
    found = {}
    for name in sorted(os.listdir(folder)):
        way, _, number = name[:-len(".json")].rpartition("-")
        if name.endswith(".json") and number.isdigit():
            rows = {r["region"]: r for r in load(os.path.join(folder, name))}
            found.setdefault(way, {})[int(number)] = rows
    return {way: [rounds[n] for n in sorted(rounds)]
            for way, rounds in found.items()}


def read_report(folder, way):
    path = os.path.join(folder, f"{way}-report.json")
    return load(path) if os.path.exists(path) else None


def launches_share(folder, way):
    """Of all launches of the process, those that graphs did."""
    report, seen = read_report(folder, way), read_report(folder, "observe")
    if not report or not seen or not seen["launches"]:
        return None
    return report["swallowed_launches"] / seen["launches"]


def region_of(name, rounds, shares):
    """What came of one region, or whole program, in all ways."""
    ways = {}
    for way, processes in rounds.items():
        times = [p[name]["us"] for p in processes]
        ways[way] = {"us": round(statistics.median(times), 4),
                     "all_us": times}
        plain = [p[name]["us"] for p in rounds["plain"]]
        if way != "plain":
            # of processes that came one after the other
            ratios = sorted(p / t for p, t in zip(plain, times))
            ways[way]["plain_over"] = round(statistics.median(ratios), 4)
            ways[way]["plain_over_range"] = [round(ratios[0], 4),
                                             round(ratios[-1], 4)]
        if shares.get(way) is not None:
            ways[way]["replayed"] = round(shares[way], 4)
    first = rounds["plain"][0][name]
    return {"region": name, "cudart": first.get("cudart", "-"), "ways": ways}


def differing(name, rounds):
    """What has another result than the first plain process."""
    def result(row):
        return row["hash"], row.get("iterations"), row.get("equal", True)

    first = result(rounds["plain"][0][name])
    return [f"{name}: {way} round {i + 1}"
            for way, processes in sorted(rounds.items())
            for i, p in enumerate(processes) if result(p[name]) != first]


def gain(found, way, base):
    """The share of the time that `base` saves; None where it saves none."""
    us = {w: found["ways"][w]["us"] for w in ("plain", way, base)
          if w in found["ways"]}
    if us["plain"] <= us[base]:
        return None
    return (us["plain"] - us[way]) / (us["plain"] - us[base])


def gains_enough(found, way, base, least):
    us = {w: v["us"] for w, v in found["ways"].items()}
    return us["plain"] - us[way] >= least * (us["plain"] - us[base])


def targets(found, way):
    """Whether each target of a way is met; empty where it has none."""
    ways = found["ways"]
    met = []
    if found["region"].startswith("never-"):
        if way == "auto":
            met.append(1 / ways[way]["plain_over"] < MAX_WATCHING)
        return met
    met.append(ways[way]["plain_over"] >= MIN_PLAIN_OVER_SHIM)
    if "hand" in ways:
        met.append(gains_enough(found, way, "hand", MIN_HAND_GAIN))
    if (way == "auto" and "marks" in ways and
            ways["marks"]["plain_over"] >= MIN_LAUNCH_BOUND):
        met.append(gains_enough(found, way, "marks", MIN_MARKS_GAIN))
    return met


def verdict(met):
    if not met:
        return "INFO"
    return "PASS" if all(met) else "FAIL"


def as_share(value):
    return "-" if value is None else f"{value:.0%}"


def told(found, way):
    ways = found["ways"]
    low, high = ways[way]["plain_over_range"]
    text = (f"plain {ways['plain']['us']:.2f} {way} {ways[way]['us']:.2f} us, "
            f"plain/{way} {ways[way]['plain_over']:.3f} ({low:.3f} to "
            f"{high:.3f} in {len(ways[way]['all_us'])} pairs)")
    for base in ("hand", "marks"):
        if base in ways and base != way:
            text += (f", {base} {ways[base]['us']:.2f} us, "
                     f"{as_share(gain(found, way, base))} of its gain")
    if "replayed" in ways[way]:
        text += f", {ways[way]['replayed']:.1%} of the launches replayed"
    return text


def label(found, region, way):
    """The name of a row: a program of one case has its name."""
    alone = len(found["regions"]) == 1
    return f"{found['program'] if alone else region['region']}-{way}"


def judge(name, folder):
    """Rows, as (kind, name, status, detail), and what is kept of it."""
    rounds = read_rounds(folder)
    if not rounds.get("plain"):
        return [("test", f"{name}-equal", "FAIL", "no plain run")], None
    names = list(rounds["plain"][0])
    broken = [f"{way} round {i + 1} has other cases"
              for way, processes in sorted(rounds.items())
              for i, p in enumerate(processes) if set(p) != set(names)]
    if broken:
        return [("test", f"{name}-equal", "FAIL", "; ".join(broken[:4]))], None
    wrong = [line for n in names for line in differing(n, rounds)]
    count = sum(len(processes) for processes in rounds.values())
    rows = [("test", f"{name}-equal", "FAIL" if wrong else "PASS",
             "differ from plain: " + "; ".join(wrong[:4]) if wrong else
             f"{count} processes, {len(rounds)} ways, {len(names)} cases: "
             "bit-identical")]
    shares = {way: launches_share(folder, way) for way in ("marks", "auto")}
    found = [region_of(n, rounds, shares) for n in names]
    for way in ("marks", "auto"):
        if way in rounds and not names[0].startswith("never-"):
            report = read_report(folder, way)
            graphs = report["graphs"] if report else 0
            rows.append(("test", f"{name}-{way}-replayed",
                         "PASS" if graphs else "FAIL",
                         f"{graphs} graphs launched, "
                         f"{as_share(shares[way])} of the launches replayed"))
    kept_of = {"program": name, "regions": found}
    rows += [("bench", label(kept_of, f, way), verdict(targets(f, way)),
              told(f, way)) for f in found for way in JUDGED
             if way in f["ways"]]
    return rows, kept_of


def judge_chain(name, folder):
    """Chains without ranges, beside their graph in the same process."""
    plain = load(os.path.join(folder, "plain.json"))
    auto = load(os.path.join(folder, "auto.json"))
    hashes = {c["region"]: c["hash"] for c in plain}
    wrong = [c["region"] for c in plain + auto
             if not c["equal"] or hashes.get(c["region"]) != c["hash"]]
    wrong += [r for r in hashes if r not in {c["region"] for c in auto}]
    rows = [("test", f"{name}-equal", "FAIL" if wrong else "PASS",
             "differ: " + " ".join(wrong) if wrong else
             f"{len(auto)} cases bit-identical")]
    share = launches_share(folder, "auto")
    report = read_report(folder, "auto")
    rows.append(("test", f"{name}-replayed",
                 "PASS" if report and report["graphs"] else "FAIL",
                 f"{as_share(share)} of the launches replayed"))
    really = {c["region"]: c["shim_us"] for c in plain}
    cases = [{"variant": c["variant"], "length": c["length"],
              "cudart": c["cudart"], "plain_us": really.get(c["region"]),
              "auto_us": c["shim_us"], "hand_us": c["hand_us"],
              "auto_over_hand": c["shim_over_hand_paired"]} for c in auto]
    for c in cases:
        rows.append(("bench", f"{name}-{c['variant']}-{c['length']}",
                     chain_verdict(c),
                     f"plain {c['plain_us'] or 0:.1f} auto {c['auto_us']:.1f} "
                     f"hand {c['hand_us']:.1f} us, auto/hand "
                     f"{c['auto_over_hand']:.3f}"))
    return rows, {"program": name, "chains": cases,
                  "replayed": round(share, 4) if share is not None else None}


def chain_verdict(case):
    met = [case["auto_over_hand"] <= MAX_CHAIN_OVER_HAND]
    if case["plain_us"]:
        met.append(case["plain_us"] / case["auto_us"] >= MIN_PLAIN_OVER_SHIM)
    return verdict(met)


# --- Markdown -----------------------------------------------------------------

def kept(raw, key):
    return [found for name, found in sorted(raw.items())
            if name.startswith("ways-") and isinstance(found, dict) and
            key in found]


def names(raw):
    """Of the rows that the tables below show."""
    return ({label(found, f, way) for found in kept(raw, "regions")
             for f in found["regions"] for way in JUDGED} |
            {f"{found['program']}-{c['variant']}-{c['length']}"
             for found in kept(raw, "chains") for c in found["chains"]})


def markdown_programs(raw, table):
    rows = []
    for found in kept(raw, "regions"):
        for f in found["regions"]:
            for way in JUDGED:
                if way not in f["ways"]:
                    continue
                at = f["ways"][way]
                hand = f["ways"].get("hand")
                rows.append((
                    found["program"], f["region"], f["cudart"], way,
                    f"{f['ways']['plain']['us']:.2f}", f"{at['us']:.2f}",
                    f"{hand['us']:.2f}" if hand else "-",
                    f"{at['plain_over']:.3f}",
                    "{:.3f} - {:.3f}".format(*at["plain_over_range"]),
                    as_share(gain(f, way, "hand") if hand else None),
                    as_share(gain(f, way, "marks")
                             if way == "auto" and "marks" in f["ways"]
                             else None),
                    f"{at['replayed']:.1%}" if "replayed" in at else "-",
                    verdict(targets(f, way))))
    head = ("program", "case", "cudart", "way", "plain us", "us", "hand us",
            "plain/way", "pairs", "of hand's gain", "of marks' gain",
            "replayed", "target")
    return table(head, rows) if rows else "not run\n"


def markdown_chains(raw, table):
    rows = []
    for found in kept(raw, "chains"):
        for c in found["chains"]:
            rows.append((c["cudart"], c["variant"], c["length"],
                         f"{c['plain_us'] or 0:.1f}", f"{c['auto_us']:.1f}",
                         f"{c['hand_us']:.1f}", f"{c['auto_over_hand']:.3f}",
                         chain_verdict(c)))
    head = ("cudart", "variant", "kernels", "plain us", "auto us", "hand us",
            "auto/hand", "target")
    return table(head, rows) if rows else "not run\n"


def markdown(raw, table):
    return [
        "## Programs run several ways, us an iteration\n",
        "Each way is a process of its own, and they come in turn: medians of "
        "processes, the ratio is the median of pairs that came one after the "
        "other. `marks` has an NVTX range around each iteration, `auto` none "
        "and CGSHIM_AUTO=1, `loaded` neither, `hand` is a graph written by "
        "hand without the shim. `replayed` is of all launches of the process. "
        f"Targets: plain/way at least {MIN_PLAIN_OVER_SHIM}; "
        f"{MIN_HAND_GAIN:.0%} of the hand-written graph's gain; without ranges "
        f"{MIN_MARKS_GAIN:.0%} of the gain with them, where that is "
        f"{MIN_LAUNCH_BOUND} or more; what never repeats (`never-`) under "
        f"{MAX_WATCHING} of plain.\n",
        markdown_programs(raw, table),
        "## Chains without ranges, us an iteration\n",
        "`auto` and `hand` alternate inside one process, `plain` is another "
        f"one. Target: auto/hand at most {MAX_CHAIN_OVER_HAND}.\n",
        markdown_chains(raw, table)]
