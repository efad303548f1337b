"""Rankers of other libraries beside ours: the same rows, the same measures, one run.

Each set is split into training and test halves, standardised by the first. Each method runs in a fresh process
with one thread: it loads the rows, fits a few of them to warm up, then all, and again until a second is over. The
shortest processor time counts, which is the wall time of an idle machine: with more threads, their waiting for each
other would decide on a busy one. Peak memory is how far the first fit of all rows raises the largest resident size
of the process (``ru_maxrss``): copies of the rows count, the rows and the libraries do not, nor what fits into
memory left over from the warm-up, so read a few MB as nothing.
Parameters are the defaults except where the note says otherwise.

All peers: ``pip install lightgbm torch tqdm && pip install --no-deps xgboost libauc``.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import forkserver, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from apexrank import IRPush, PNormPush, datasets, metrics
from apexrank.errors import MissingExtraError
from apexrank_papers.data import load_magic
from benchmarks.push_linear import make_data
from benchmarks.timing import report

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
LIST_LIMIT = 10_000  # LightGBM refuses longer lists: one list has to be cut into several
PAIR_LIMIT = 50_000_000  # 400 MB for each matrix of pairs
WARM_UP_ROWS = 1000
EPOCHS, BATCH = 5, 512

Scorer = Callable[[np.ndarray], np.ndarray]


class Method(NamedTuple):
    """``fit(X, y)`` gives the function from rows to scores."""

    fit: Callable[[np.ndarray, np.ndarray], Scorer]
    needs: tuple[str, ...] = ()
    note: str = ""
    max_pairs: float = np.inf


def estimator(model: Any, note: str = "") -> Method:
    return Method(lambda X, y: model.fit(X, y).decision_function, note=note)


def lightgbm_trees(X: np.ndarray, y: np.ndarray, objective: str) -> Scorer:
    import lightgbm

    lists = np.diff(np.r_[0 : len(y) : LIST_LIMIT, len(y)]) if objective == "lambdarank" else None
    rows = lightgbm.Dataset(X, y, group=lists)
    return lightgbm.train({"objective": objective, "verbosity": -1}, rows).predict


def xgboost_pairwise(X: np.ndarray, y: np.ndarray) -> Scorer:
    from xgboost import XGBRanker

    ranker = XGBRanker(objective="rank:pairwise", lambdarank_pair_method="mean")
    return ranker.fit(X, y, qid=np.zeros(len(y), dtype=np.int32)).predict


def libauc_pairwise(X: np.ndarray, y: np.ndarray) -> Scorer:
    import torch
    from libauc.losses.auc import PairwiseAUCLoss

    torch.manual_seed(0)
    rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    model, loss = torch.nn.Linear(X.shape[1], 1), PairwiseAUCLoss("logistic")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(y)).split(BATCH):
            optimizer.zero_grad()
            loss(model(rows[batch]), labels[batch]).backward()
            optimizer.step()
    return lambda X: model(torch.tensor(X, dtype=torch.float32)).detach().numpy().ravel()


def all_pairs(X: np.ndarray, y: np.ndarray, p: float = 4, alpha: float = 1e-6) -> Scorer:
    """The objective of ``PNormPush(p)`` summed pair by pair."""
    positives, negatives = X[y == 1], X[y == 0]

    def value_and_grad(w: np.ndarray) -> tuple[float, np.ndarray]:
        pairs = np.exp(np.subtract.outer(negatives @ w, positives @ w))
        heights = pairs.sum(axis=1)
        total = (heights**p).sum()
        push = heights ** (p - 1) / total
        grad = negatives.T @ (push * heights) - positives.T @ (push @ pairs)
        return np.log(total) / p + alpha / 2 * w @ w, grad + alpha * w

    w = minimize(value_and_grad, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B").x
    return lambda X: X @ w


METHODS = {
    "LogisticRegression()": estimator(LogisticRegression(), "one thread, as all methods"),
    "LightGBM binary": Method(lambda X, y: lightgbm_trees(X, y, "binary"), ("lightgbm",), "100 trees"),
    "LightGBM lambdarank": Method(
        lambda X, y: lightgbm_trees(X, y, "lambdarank"),
        ("lightgbm",),
        f"100 trees, lists of {LIST_LIMIT:,} rows",
    ),
    "XGBoost rank:pairwise": Method(xgboost_pairwise, ("xgboost",), "100 trees, random pairs"),
    "LibAUC pairwise, linear": Method(
        libauc_pairwise, ("torch", "tqdm", "libauc"), f"{EPOCHS} epochs, batches of {BATCH}"
    ),
    "all pairs, NumPy, p = 4": Method(all_pairs, max_pairs=PAIR_LIMIT),
    "PNormPush(p=1)": estimator(PNormPush(p=1)),
    "PNormPush(p=4)": estimator(PNormPush(p=4)),
    "PNormPush(p=16)": estimator(PNormPush(p=16)),
    "IRPush()": estimator(IRPush()),
    'PNormPush(loss="logistic")': estimator(PNormPush(loss="logistic")),
    'PNormPush(loss="hinge")': estimator(PNormPush(loss="hinge")),
}
DATA = {
    "magic": ("MAGIC", lambda: load_magic(return_X_y=True)),
    "push_example": ("make_push_example", lambda: datasets.make_push_example(200_000, return_X_y=True)),
    "million": ("Logistic model", lambda: make_data(2_000_000, 20)),
}
MEASURES = {
    "AUC": metrics.auc,
    "partial AUC 1%": lambda y, scores: metrics.partial_auc(y, scores, max_fpr=0.01),
    "precision at 100": lambda y, scores: metrics.precision_at(y, scores, k=100),
}


def save_halves(folder: Path, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Write a training and a test half; the labels of the first are given back."""
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    scaler = StandardScaler().fit(X[train])
    for name, rows in {"train": train, "test": test}.items():
        np.save(folder / f"{name}_X.npy", scaler.transform(X[rows]))
        np.save(folder / f"{name}_y.npy", y[rows].astype(np.int64))
    return y[train]


def resident_peak() -> float:
    """Largest resident size of this process so far, in MB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measure(name: str, folder: Path) -> dict:
    """Time, memory and test measures of one method; to be run in a process of its own."""
    fit = METHODS[name].fit
    X, y = np.load(folder / "train_X.npy"), np.load(folder / "train_y.npy")
    fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    peaks, times = [resident_peak()], list[float]()
    while sum(times) < 1:
        start = time.process_time()
        score = fit(X, y)
        times.append(time.process_time() - start)
        peaks.append(resident_peak())
    scores, y = score(np.load(folder / "test_X.npy")), np.load(folder / "test_y.npy")
    row = {"fit (CPU s)": min(times), "peak MB": peaks[1] - peaks[0]}
    return row | {measure: float(f(y, scores)) for measure, f in MEASURES.items()}


def reason_to_skip(method: Method, y: np.ndarray) -> str:
    pairs = float(np.sum(y == 1)) * float(np.sum(y == 0))
    if missing := [package for package in method.needs if find_spec(package) is None]:
        return f"skipped: pip install {' '.join(missing)}"
    return f"skipped: pairs take {8e-9 * pairs:,.1f} GB" if pairs > method.max_pairs else ""


def peer_rows(pool: ProcessPoolExecutor, folder: Path, y: np.ndarray) -> list[dict]:
    empty = dict.fromkeys(("fit (CPU s)", "ratio", "peak MB", *MEASURES), "")
    rows: list[dict] = []
    for name, method in METHODS.items():
        row = {"method": name, **empty, "note": reason_to_skip(method, y)}
        if not row["note"]:
            row |= pool.submit(measure, name, folder).result() | {"note": method.note}
            row["ratio"] = row["fit (CPU s)"] / (rows or [row])[0]["fit (CPU s)"]
        rows.append(row)
    return rows


def main() -> None:
    # Forked from a bare server, a process inherits neither the threads nor the largest resident size of this one.
    with patch.dict(os.environ, ONE_THREAD):
        forkserver.ensure_running()
    pool = ProcessPoolExecutor(1, mp_context=get_context("forkserver"), max_tasks_per_child=1)
    for key, (title, load) in DATA.items():
        with TemporaryDirectory() as name:
            folder = Path(name)
            try:
                y = save_halves(folder, *load())
            except MissingExtraError as error:
                print(f"{title}: skipped: {error}")
                continue
            title += f", {len(y):,} training rows ({int(y.sum()):,} positive) and as many test rows"
            report(f"peers_{key}", title, peer_rows(pool, folder, y))
    pool.shutdown()


if __name__ == "__main__":
    main()
