"""How the time of a fit grows with the number of rows, beside ``np.argsort`` of as many numbers."""

from __future__ import annotations

from functools import partial

import numpy as np

from apexrank import IRPush, PNormPush
from benchmarks.timing import report, seconds

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
RANKERS = {
    "exponential": PNormPush(p=4, solver="lbfgs"),
    "logistic": PNormPush(p=4, loss="logistic", solver="lbfgs"),
    "hinge": PNormPush(p=4, loss="hinge", solver="lbfgs"),
    "squared_hinge": PNormPush(p=4, loss="squared_hinge", solver="lbfgs"),
    "IR Push": IRPush(),
}


def exponent(times: list[float]) -> float:
    """Slope of log time against log rows."""
    return float(np.polyfit(np.log(SIZES), np.log(times), 1)[0])


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((max(SIZES), 4))
    y = rng.random(len(X)) < 1 / (1 + np.exp(1 - X @ [1.0, -1.0, 0.5, 0.0]))
    times = {"np.argsort": [seconds(lambda n=n: np.argsort(X[:n, 0]), repeats=3) for n in SIZES]}
    steps = {"np.argsort": [1] * len(SIZES)}
    for name, ranker in RANKERS.items():
        times[name], steps[name] = [], []
        for n in SIZES:
            large = n == max(SIZES)
            fit = partial(ranker.fit, X[:n], y[:n])
            times[name].append(seconds(fit, repeats=1 if large else 3, warm_up=not large))
            steps[name].append(int(ranker.n_iter_))
    sorting = exponent(times["np.argsort"])
    rows = [
        {
            "fit": name,
            **{f"{n:,} rows (s)": t for n, t in zip(SIZES, measured, strict=True)},
            "iterations": ", ".join(map(str, steps[name])),
            "exponent": exponent(measured),
            "limit": {"np.argsort": "", "exponential": "1.05", "IR Push": "1.05"}.get(
                name, f"{sorting + 0.08:.3f}"
            ),
        }
        for name, measured in times.items()
    ]
    report("growth", "Growth of the time of a fit with the number of rows, 4 features", rows)


if __name__ == "__main__":
    main()
