"""What ``apexrank compare`` says on half of a table, and what the other half says.

    python -m benchmarks.compare_study FOLDER [--seeds 2] [--jobs 2] [--json FILE]
    python -m benchmarks.compare_study --null 100

FOLDER has one Parquet file a table with a column ``target`` of 0 and 1 (``python -m benchmarks.tables FOLDER`` writes
them). Half of the rows, drawn at random, is compared on; its rankers, fitted on that half with the settings that did
best, then rank the other half. A *claim* is a difference at the top between the best ranker and logistic regression or
boosted trees whose interval leaves out 0; it is *false* where the other half shows none. *Confirmed* is a difference of
at least 5 points between the best and such a baseline that the other half shows beyond twice its standard error. The
*z* of all pairs of rankers, (compared - fresh) over their joint standard error, should have a deviation of 1.

``--null`` draws tables on which as many rankers as are compared by default do equally well, and counts claims.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from apexrank.comparison import Candidate, Comparison, compare_rankers, compare_table
from apexrank.comparison.result import BASELINES
from apexrank.errors import InputError
from apexrank.io import Recipe, Table
from apexrank.io.table_ranker import fit_table
from apexrank.rankers.logistic import LogisticRanker

LEAST = 0.05  # points that matter
RANKERS = 5  # of the default comparison


def halves(table: pl.DataFrame, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Random halves of each class."""
    rng, y = np.random.default_rng(seed), table["target"].to_numpy()
    order = [rng.permutation(np.flatnonzero(y == label)) for label in (0, 1)]
    first = np.sort(np.concatenate([rows[: len(rows) // 2] for rows in order]))
    return table[first], table[np.setdiff1d(np.arange(len(y)), first)]


def fresh_scores(found: Comparison, own: pl.DataFrame, other: pl.DataFrame) -> np.ndarray:
    """Scores of the other half by every ranker, fitted on the first."""
    chosen = zip(found.candidates, found.settings, strict=True)
    estimators = [candidate.estimator(setting) for candidate, setting in chosen]
    fits = [fit_table(Table(own), Recipe(target="target"), estimator)[0] for estimator in estimators]
    return np.array([ranker.score(Table(other)) for ranker in fits])


def difference(y: np.ndarray, one: np.ndarray, other: np.ndarray, found: Comparison) -> tuple[float, float]:
    """Difference at the top of two lists of the same rows, and its standard error."""
    gap = found.top.measure(y, one) - found.top.measure(y, other)
    k = max(1, round((found.top.share or 0) * len(y)))
    parts = np.zeros(len(y))
    for sign, scores in ((1, one), (-1, other)):
        first = np.argsort(-scores, kind="stable")[:k]
        parts[first] += sign * (y[first] - y[first].mean()) / k
    return gap, float(np.sqrt(parts @ parts))


def study(path: Path, seed: int) -> dict[str, Any]:
    """Compare on one half of a table, and look at the other."""
    own, other = halves(pl.read_parquet(path), seed)
    try:
        found = compare_table(Table(own), Recipe(target="target"), random_state=seed)
    except InputError as error:
        return {"table": path.stem, "seed": seed, "error": str(error)}
    y, scores, best = other["target"].to_numpy() == 1, fresh_scores(found, own, other), found.best
    pairs = []
    for i, j in combinations(range(len(scores)), 2):
        i, j = (i, j) if i == best else (j, i)
        said, (fresh, error) = found.difference(i, j), difference(y, scores[i], scores[j], found)
        judged = i == best and found.names[j] in BASELINES
        pairs.append(
            [found.names[i], found.names[j], said.value, said.low, said.standard_error, fresh, error, judged]
        )
    return {
        "table": path.stem,
        "seed": seed,
        "rows": len(own),
        "top": found.top.label,
        "best": found.names[best],
        "recommended": found.names[found.recommended],
        "kind": found.verdict.kind,
        "fresh": {name: found.top.measure(y, row) for name, row in zip(found.names, scores, strict=True)},
        "pairs": [list(map(_plain, pair)) for pair in pairs],
        "seconds": found.seconds,
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def summary(runs: list[dict[str, Any]]) -> str:
    """Claims, how many of them are false, and how many confirmed differences were claimed."""
    done = [run for run in runs if "pairs" in run]
    pairs = [pair for run in done for pair in run["pairs"]]
    judged = [pair for run in done for pair in run["pairs"] if pair[7] and run["kind"] != "too few to tell"]
    claims = [pair for pair in judged if pair[3] > 0]
    confirmed = [pair for pair in judged if pair[5] >= LEAST and pair[5] > 1.96 * pair[6]]
    z = np.array([(p[2] - p[5]) / np.hypot(p[4], p[6]) for p in pairs if np.hypot(p[4], p[6]) > 0])
    names = list(done[0]["fresh"])
    means = {name: np.mean([run["fresh"].get(name, np.nan) for run in done]) for name in names}
    means["recommended"] = np.mean([run["fresh"][run["recommended"]] for run in done])
    means["best"] = np.mean([run["fresh"][run["best"]] for run in done])
    lines = [
        f"{len(done)} runs on {len({run['table'] for run in done})} tables; refused: {len(runs) - len(done)}",
        f"verdicts: {dict(Counter(run['kind'] for run in done))}",
        f"recommended: {dict(Counter(run['recommended'] for run in done))}",
        f"claims {len(claims)}, false {sum(pair[5] <= 0 for pair in claims)}; confirmed differences of at least "
        f"{100 * LEAST:.0f} points {len(confirmed)}, found {sum(pair[3] > 0 for pair in confirmed)}",
        f"z of {len(z)} pairs: deviation {z.std():.2f}, beyond 1.96: {np.mean(np.abs(z) > 1.96):.1%}",
        "fresh rows, at the top: " + ", ".join(f"{name} {value:.3f}" for name, value in means.items()),
    ]
    return "\n".join(lines)


class Block(Candidate):
    """Logistic regression on three features, exchangeable with those of the others."""

    def scores(
        self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, X_test: np.ndarray
    ) -> np.ndarray:
        """Scores of the test rows."""
        own = slice(3 * int(self.name), 3 * int(self.name) + 3)
        return LogisticRanker(alpha=1e-3).fit(X[:, own], y).decision_function(X_test[:, own])[None]

    def estimator(self, setting: Any) -> LogisticRanker:
        """The model of all features, which nobody looks at."""
        return LogisticRanker()


def null(n: int, share: float, common: float, seed: int) -> bool:
    """Whether anything is claimed where all rankers do equally well."""
    rng = np.random.default_rng(seed)
    shared = np.tile(rng.normal(size=(n, 3)), RANKERS)
    X = np.sqrt(common) * shared + np.sqrt(1 - common) * rng.standard_t(5, size=(n, 3 * RANKERS))
    target = X.sum(axis=1) / RANKERS + rng.logistic(size=n)
    y = target > np.quantile(target, 1 - share)
    found = compare_rankers(X, y, candidates=[Block(str(b)) for b in range(RANKERS)], random_state=seed)
    return any(found.difference(found.best, base).low > 0 for base in (0, 3) if base != found.best)


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    parser.add_argument("--null", type=int, default=0, metavar="DRAWS")
    given = parser.parse_args()
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        if given.null:
            cases = [
                (n, share, common) for n in (500, 2000) for share in (0.03, 0.1, 0.3) for common in (0.2, 0.9)
            ]
            tasks = [(*case, seed) for case in cases for seed in range(given.null)]
            claimed = np.reshape(
                list(pool.map(null, *zip(*tasks, strict=True), chunksize=4)), (len(cases), -1)
            )
            for case, row in zip(cases, claimed, strict=True):
                print(
                    "{:5} rows, {:3.0%} positive, {:.0%} in common:".format(*case),
                    f"{row.mean():.1%} claimed",
                )
            print(f"in all: {claimed.mean():.1%} of {claimed.size} claimed")
            return
        jobs = [
            (path, seed) for seed in range(given.seeds) for path in sorted(given.folder.glob("*.parquet"))
        ]
        runs = []
        for run in pool.map(study, *zip(*jobs, strict=True)):
            runs.append(run)
            print(
                run["table"],
                run["seed"],
                run.get("error") or f"{run['kind']}: {run['recommended']}",
                flush=True,
            )
    if given.json:
        given.json.write_text(json.dumps(runs))
    print(summary(runs))


if __name__ == "__main__":
    main()
