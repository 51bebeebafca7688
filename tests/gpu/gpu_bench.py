# SPDX-License-Identifier: Apache-2.0
"""What the Python programs of tests/gpu share: passes made in turn outside of
an NVTX range ("plain") and inside one ("shim"), each on a state of its own,
compared byte by byte, timed, and written as JSON for scripts/gpu-check.

With --alone all passes are outside of ranges, with --alone --marks inside; then
it is processes that are compared.

Nothing here knows of cgshim: without it both are plain.
"""

import argparse
import ctypes
import hashlib
import json
import os
import statistics
import sys
import time

PLAIN, SHIM = 0, 1
MODES = ("plain", "shim")


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", help="file of results")
    parser.add_argument("--rounds", type=int, default=15,
                        help="timed rounds of each mode")
    parser.add_argument("--alone", action="store_true",
                        help="no passes of one kind beside the other")
    parser.add_argument("--marks", action="store_true",
                        help="with --alone: all of them inside ranges")
    parser.add_argument("--only", help="only cases whose name holds this")
    return parser.parse_args()


def ctypes_ranges():
    """Push and pop by the library that scripts/gpu-check built."""
    path = os.environ.get("GPU_NVTX_LIB")
    if not path:
        sys.exit("GPU_NVTX_LIB does not name the library of nvtx_range.c")
    lib = ctypes.CDLL(path)
    lib.gpu_range_push.argtypes = [ctypes.c_char_p]
    return lambda name: lib.gpu_range_push(name.encode()), lib.gpu_range_pop


class Bench:
    """Runs cases; a case makes states, makes a pass over one and tells a
    state's bytes:

        make()           -> state, the same every time
        before(state, i) -> what comes before it and is not in the range; a
                            case need not have it
        run(state, i)    -> the i-th pass over it
        result(state)    -> bytes, after a wait

    sync(states) waits for all work on these states.
    """

    def __init__(self, args, push, pop, sync):
        self.args, self.push, self.pop, self.sync = args, push, pop, sync
        self.rows = []

    def _passes(self, case, name, mode, state, numbers):
        before = getattr(case, "before", None)
        start = time.perf_counter()
        for i in numbers:
            if before:
                before(state, i)
            if mode == SHIM:
                self.push(name)
            case.run(state, i)
            if mode == SHIM:
                self.pop()
        self.sync([state])
        return (time.perf_counter() - start) / len(numbers) * 1e6

    def _equal(self, case, states):
        self.sync(states)
        plain, shim = (case.result(s) for s in states)
        return plain == shim, plain

    def case(self, name, case, passes=10, warm_up=4, settle=40):
        if self.args.only and self.args.only not in name:
            return
        if self.args.alone:
            self._alone(name, case, passes, warm_up + 2 * settle)
            return
        states = [case.make(), case.make()]
        times = ([], [])
        equal = True
        # pass by pass at first: a result that is only late shows here
        for i in range(warm_up):
            for mode in (PLAIN, SHIM):
                self._passes(case, name, mode, states[mode], [i])
            same, data = self._equal(case, states)
            equal &= same
        # the shim may need some tens of runs until it knows a region
        done = warm_up + settle
        for mode in (PLAIN, SHIM):
            self._passes(case, name, mode, states[mode],
                         range(warm_up, done))
        for r in range(self.args.rounds):
            numbers = range(done, done + passes)
            for mode in ((PLAIN, SHIM), (SHIM, PLAIN))[r % 2]:
                times[mode].append(self._passes(case, name, mode, states[mode],
                                                numbers))
            same, data = self._equal(case, states)
            equal &= same
            done += passes
        self._row(name, times, equal, data)

    def _alone(self, name, case, passes, settle):
        """One kind only, and longer until it is timed: what finds regions by
        itself has to find them first."""
        mode = SHIM if self.args.marks else PLAIN
        state, done, times = case.make(), settle, []
        self._passes(case, name, mode, state, range(settle))
        for _ in range(self.args.rounds):
            times.append(self._passes(case, name, mode, state,
                                      range(done, done + passes)))
            done += passes
        self.sync([state])
        self.rows.append({
            "region": name, "us": round(statistics.median(times), 2),
            "min_us": round(min(times), 2), "equal": True,
            "hash": hashlib.sha256(case.result(state)).hexdigest()[:16]})
        print(f"{name:28s} {MODES[mode]} {statistics.median(times):9.1f} us",
              flush=True)

    def _row(self, name, times, equal, data):
        plain, shim = (statistics.median(t) for t in times)
        # of rounds that came one after the other: the machine was the same
        ratio = statistics.median(p / s for p, s in zip(*times))
        self.rows.append({
            "region": name, "plain_us": round(plain, 2),
            "shim_us": round(shim, 2),
            "plain_min_us": round(min(times[PLAIN]), 2),
            "shim_min_us": round(min(times[SHIM]), 2),
            "plain_over_shim": round(ratio, 4), "equal": equal,
            "hash": hashlib.sha256(data).hexdigest()[:16]})
        print(f"{name:28s} plain {plain:9.1f} us  shim {shim:9.1f} us  "
              f"{ratio:5.2f}  {'equal' if equal else 'DIFFERENT'}",
              flush=True)

    def finish(self):
        """Writes the results; the process' exit status."""
        if self.args.json:
            with open(self.args.json, "w", encoding="utf-8") as file:
                json.dump(self.rows, file, indent=1)
        return 0 if self.rows and all(r["equal"] for r in self.rows) else 1
