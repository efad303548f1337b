"""Merging 100,000 voters × 1,000 items beside the mean and a sort that any method needs."""

from __future__ import annotations

import numpy as np

from apexrank.aggregation.rank_aggregation import aggregate
from benchmarks.timing import peak_megabytes, report, seconds

VOTERS, ITEMS = 100_000, 1_000
LIMIT = 2.0  # times the mean and a sort, for Lovász–Bregman of raw scores


def data(voters: int = VOTERS, items: int = ITEMS) -> np.ndarray:
    """Noisy scores of items that differ a little, so that the order is not that of the noise."""
    scores = np.random.default_rng(0).standard_normal((voters, items))
    scores += np.linspace(0, 1, items)
    return scores


def main() -> None:
    scores = data()
    weights = np.random.default_rng(1).integers(1, 10, len(scores)).astype(float)
    # side by side in one run: what a user would write by hand, then the library
    works = {
        "scores.mean(0) and argsort": lambda: np.argsort(-scores.mean(0), kind="stable"),
        "lovasz-bregman": lambda: aggregate(scores),
        "lovasz-bregman, weights": lambda: aggregate(scores, weights),
        "combsum": lambda: aggregate(scores, method="combsum"),
    }
    slow = {
        "lovasz-bregman, minmax": lambda: aggregate(scores, normalize="minmax"),
        "borda": lambda: aggregate(scores, method="borda"),
        "rrf": lambda: aggregate(scores, method="rrf"),
    }
    best = dict.fromkeys(works, np.inf)
    for _ in range(5):  # taken in turns, so that a busy moment meets all of them
        for name, work in works.items():
            best[name] = min(best[name], seconds(work, repeats=1))
    best |= {name: seconds(work, repeats=1, warm_up=False) for name, work in slow.items()}
    base = best["scores.mean(0) and argsort"]
    rows = [
        {
            "method": name,
            "seconds": time,
            "times mean and sort": time / base,
            "limit": LIMIT if name == "lovasz-bregman" else "",
            "extra memory (MB)": peak_megabytes((works | slow)[name]),
        }
        for name, time in best.items()
    ]
    report("aggregation", f"{len(scores):,} voters × {scores.shape[1]:,} items", rows)


if __name__ == "__main__":
    main()
