"""One value and gradient in score space, 1,000,000 scores (300,000 positives), beside ``np.argsort`` of the scores."""

from __future__ import annotations

import numpy as np

from apexrank.objectives import CrucialPairs, Push
from apexrank.prices import Power
from benchmarks.timing import report, seconds

LIMITS = {"exponential": None, "squared_hinge": (0.15, 4), "hinge": (0.15, 4), "logistic": (0.6, 12)}


def main() -> None:
    rng = np.random.default_rng(0)
    n = 1_000_000
    positive = np.zeros(n, dtype=bool)
    positive[rng.permutation(n)[: 3 * n // 10]] = True
    rows = []
    for spread in (3.0, 1e4):
        scores = spread * rng.standard_normal(n)
        base = seconds(lambda s=scores: np.argsort(s))
        for loss, limit in LIMITS.items():
            objective = Push(positive, loss=loss, price=Power(4))
            ours = seconds(lambda o=objective, s=scores: o.value_and_grad(s))
            rows.append(
                {
                    "loss": loss,
                    "spread of scores": spread,
                    "np.argsort (s)": base,
                    "ours (s)": ours,
                    "ratio": ours / base,
                    "limit": "" if limit is None else f"{limit[0]} s or {limit[1]} x",
                }
            )
    relevance, scores = rng.integers(0, 5, n), 3 * rng.standard_normal(n)
    base = seconds(lambda: np.argsort(scores))
    for loss in LIMITS:
        graded = CrucialPairs(relevance, loss=loss, price=Power(4))
        ours = seconds(lambda o=graded: o.value_and_grad(scores), repeats=2)
        rows.append(
            {
                "loss": f"{loss}, 5 levels",
                "spread of scores": 3.0,
                "np.argsort (s)": base,
                "ours (s)": ours,
                "ratio": ours / base,
                "limit": "",
            }
        )
    report("score_space", "1,000,000 scores, 300,000 positives, p = 4: value and gradient", rows)


if __name__ == "__main__":
    main()
