"""Searches whose fits go through the rows together: the same as fits one by one, wherever the rows are."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from apexrank import InputError, PNormPush, PNormPushCV, checkpoint, push_path
from apexrank.metrics import get_scorer
from apexrank.problem.blocks import ArrayBlocks
from apexrank.rankers import push as push_module
from apexrank.rankers import together
from apexrank.rankers.base import SeparableWarning, fit_blocks

RNG = np.random.default_rng(0)
N, D = 1500, 6
X = RNG.normal(size=(N, D)) @ np.diag([1.0, 5.0, 0.2, 1.0, 1.0, 1.0]) + np.array([0, 0, 0, 0, 0, 1e5])
Y = (X[:, 0] + 0.3 * X[:, 1] + 1.5 * RNG.normal(size=N) > 1.0).astype(int)
WEIGHT = RNG.integers(0, 4, N).astype(float)
GROUPS = np.repeat(np.arange(N // 10), 10)
GRID = {"ps": [1, 4, 16], "alphas": [1.0, 1e-2, 1e-4], "cv": 3}


@pytest.fixture
def joint(monkeypatch):
    """Let small data take the way of large ones."""
    monkeypatch.setattr(push_module, "SMALL", 0)


def one_by_one(X, y, sample_weight=None, **options):
    """Held-out scores and coefficients of fits on copies of the training rows."""
    options = GRID | options
    folds = StratifiedKFold(options["cv"]).split(X, y)
    scorer = get_scorer(options.get("scoring", "partial_auc"))
    scores, coefs = [], []
    for train, test in folds:
        for alpha in options["alphas"]:
            for p in options["ps"]:
                weight = None if sample_weight is None else sample_weight[train]
                ranker = PNormPush(p, alpha=alpha, l1_ratio=options.get("l1_ratio", 0.0), tol=1e-8)
                ranker.fit(X[train], y[train], sample_weight=weight)
                measured = {} if sample_weight is None else {"sample_weight": sample_weight[test]}
                score = scorer._score_func
                value = score(y[test], ranker.decision_function(X[test]), **measured, **scorer._kwargs)
                scores.append(scorer._sign * value)
                coefs.append(ranker.coef_[0])
    shape = options["cv"], len(options["alphas"]) * len(options["ps"])
    return np.reshape(scores, shape), np.reshape(coefs, (*shape, X.shape[1]))


def table_of(search):
    return np.array([search.cv_results_[f"split{k}_test_score"] for k in range(GRID["cv"])])


def in_torch(X, y, weight):
    torch = pytest.importorskip("torch")
    X, y = torch.from_numpy(X), torch.from_numpy(y)
    return (X, y), {} if weight is None else {"sample_weight": torch.from_numpy(weight)}


def in_dask(X, y, weight):
    da = pytest.importorskip("dask.array")
    X, y = da.from_array(X, chunks=(400, -1)), da.from_array(y, chunks=400)
    return (X, y), {} if weight is None else {"sample_weight": da.from_array(weight, chunks=400)}


DESIGNS = {
    "dense": lambda X, y, weight: ((X, y), {"sample_weight": weight}),
    "columns": lambda X, y, weight: ((np.asfortranarray(X), y), {"sample_weight": weight}),
    "single": lambda X, y, weight: ((X.astype(np.float32), y), {"sample_weight": weight}),
    "sparse": lambda X, y, weight: ((sparse.csr_matrix(X), y), {"sample_weight": weight}),
    "blocks": lambda X, y, weight: ((ArrayBlocks(X, y, weight, rows=400), None), {}),
    "dask": in_dask,
    "torch": in_torch,
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_joint_search_is_that_of_fits_one_by_one(design, weighted, joint, monkeypatch):
    """Also with columns in different units, one of them far from zero, and weights of 0."""
    rows = X.copy()
    if design in ("sparse", "single"):  # the former is never moved, the latter has too few digits
        rows[:, -1] -= 1e5
    rows = rows.astype(np.float32).astype(float) if design == "single" else rows
    weight = WEIGHT if weighted else None
    fitted = {}
    keep = push_module.fit_folds
    monkeypatch.setattr(
        push_module, "fit_folds", lambda *args: fitted.setdefault("rankers", keep(*args))
    )
    given, more = DESIGNS[design](rows, Y, weight)
    search = PNormPushCV(**GRID, tol=1e-8).fit(*given, **more)
    scores, coefs = one_by_one(rows, Y, weight)
    np.testing.assert_allclose(table_of(search), scores, atol=1e-6)
    for own, expected in zip(fitted["rankers"], coefs, strict=True):
        for ranker, coef in zip(own, expected, strict=True):
            assert ranker.converged_
            spread = rows.std(axis=0)
            error = np.abs((ranker.coef_[0] - coef) * spread).max()
            assert error <= 1e-5 * max(1.0, np.abs(coef * spread).max())
    best = PNormPush(search.p_, alpha=search.alpha_, tol=1e-8).fit(rows, Y, sample_weight=weight)
    np.testing.assert_allclose(search.coef_, best.coef_, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(search.intercept_, best.intercept_, rtol=1e-4, atol=1e-4)
