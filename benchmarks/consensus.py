"""Consensus of layers: 100,000 vertices, five layers of up to 1,000,000 links each, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from benchmarks.timing import report

VERTICES, LAYERS = 100_000, 5
LINKS = (125_000, 250_000, 500_000, 1_000_000)  # of each layer

MEASURE = """
import json, sys, time
import numpy as np
n, m, links = (int(x) for x in sys.argv[1:4])
from apexrank import ConsensusRank
from apexrank.graph import as_layers

def layer(k):
    # some vertices are popular in every layer, and each layer has links at random
    rng = np.random.default_rng(k)
    popular = np.random.default_rng(99).pareto(1.2, n) + 0.1
    sources = rng.integers(0, n, links)
    chosen = rng.choice(n, links, p=popular / popular.sum())
    return sources, np.where(rng.random(links) < 0.6, chosen, rng.integers(0, n, links))

given = [layer(k) for k in range(m)]
small = [(np.array([0, 1]), np.array([1, 0]))] * 2
ConsensusRank("blend").fit(small)  # compiled
began = time.perf_counter()
layers = as_layers(given)
read = time.perf_counter()
rank = ConsensusRank("blend").fit(layers)
done = time.perf_counter()
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
found = {"reading": read - began, "ranking": done - read, "peak": int(peak.split()[1]) / 1e6}
found |= {"steps": rank.n_iter_, "gap": rank.first_order_gap_, "stationarity": rank.stationarity_}
print(json.dumps(found | {"converged": bool(rank.converged_)}))
"""


def measured(links: int) -> dict:
    command = [sys.executable, "-c", MEASURE, str(VERTICES), str(LAYERS), str(links)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    rows, totals, a_step = [], [], []
    for links in LINKS:
        found = measured(links)
        total = found["reading"] + found["ranking"]
        totals.append(total)
        a_step.append(found["ranking"] / found["steps"])
        print(
            f"{LAYERS} x {links:,} links: read {found['reading']:.1f} s, ranked {found['ranking']:.1f} s in "
            f"{found['steps']} steps, gap {found['gap']:.1e}, |Tw - w| {found['stationarity']:.1e}, "
            f"peak {found['peak']:.2f} GB, converged {found['converged']}"
        )
        rows.append(
            {
                "what": f"{VERTICES:,} vertices, {LAYERS} x {links:,} links",
                "seconds": f"{total:.1f}",
                "limit": "60 s" if links == LINKS[-1] else "",
                "peak": f"{found['peak']:.2f} GB",
                "peak limit": "3 GB" if links == LINKS[-1] else "",
            }
        )
    report("consensus", "Consensus of layers", rows)
    for what, times in (("in all", totals), ("a step", a_step)):
        slope = np.polyfit(np.log(LINKS), np.log(times), 1)[0]
        print(f"growth with the number of links, {what}: exponent {slope:.2f} (1 is linear)")


if __name__ == "__main__":
    main()
