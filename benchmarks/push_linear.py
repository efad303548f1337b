"""The linear P-Norm Push on 1,000,000 x 64 beside ``X @ w`` and scikit-learn's LogisticRegression."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from apexrank import IRPush, PNormPush, metrics
from apexrank.objectives import Push
from apexrank.prices import Power
from apexrank.problem import Problem
from benchmarks.timing import peak_megabytes, report, seconds


def make_data(n: int = 1_000_000, d: int = 64, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    direction = rng.standard_normal(d) / np.sqrt(d)
    return X, rng.random(n) < 1 / (1 + np.exp(1 - 2 * X @ direction))


def gradient_rows(X: np.ndarray, y: np.ndarray) -> list[dict]:
    rows = []
    for dtype in (np.float64, np.float32):
        rows_of_type, w = X.astype(dtype, copy=False), np.full(X.shape[1], 0.1)
        narrow = w.astype(dtype)
        base = seconds(lambda A=rows_of_type, v=narrow: A @ v)
        for name, objective in {
            "p = 4": Push(y, price=Power(4)),
            "IR Push": Push(y, price="log1p", side="bottom"),
        }.items():
            problem = Problem(rows_of_type, objective, 1e-6)
            ours = seconds(lambda problem=problem, w=w: problem.value_and_grad(w))
            rows.append(
                {
                    "value and gradient": f"{name}, {np.dtype(dtype).name}",
                    "X @ w (s)": base,
                    "ours (s)": ours,
                    "ratio": ours / base,
                    "limit": 1.6 if dtype is np.float64 else "",
                }
            )
    return rows


def fit_rows(X: np.ndarray, y: np.ndarray) -> list[dict]:
    rankers = {
        "LogisticRegression()": LogisticRegression(),
        "PNormPush(p=4)": PNormPush(p=4),
        "PNormPush(p=64)": PNormPush(p=64),
        "IRPush()": IRPush(),
    }
    rows: list[dict] = []
    for name, ranker in rankers.items():
        time = seconds(lambda ranker=ranker: ranker.fit(X, y), repeats=3)
        scores = ranker.decision_function(X)
        rows.append(
            {
                "fit": name,
                "time (s)": time,
                "ratio": time / rows[0]["time (s)"] if rows else 1.0,
                "limit": 0.6 if name == "PNormPush(p=4)" else "",
                "iterations": int(np.max(ranker.n_iter_)),
                "peak extra MB": peak_megabytes(lambda ranker=ranker: ranker.fit(X, y)),
                "AUC": metrics.auc(y, scores),
                "partial AUC 1%": metrics.partial_auc(y, scores, max_fpr=0.01),
            }
        )
    return rows


def main() -> None:
    X, y = make_data()
    report(
        "push_gradient",
        "1,000,000 x 64, one value and gradient (limit: at most 1.6 x X @ w)",
        gradient_rows(X, y),
    )
    report(
        "push_fit",
        "1,000,000 x 64, fit (limits: at most 0.6 x LogisticRegression, under 100 MB)",
        fit_rows(X, y),
    )


if __name__ == "__main__":
    main()
