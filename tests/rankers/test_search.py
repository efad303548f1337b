"""Searches and paths equal separate fits, on every design."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from apexrank import InputError, PNormPush, PNormPushCV, push_path
from apexrank.metrics import get_scorer
from apexrank.problem.blocks import ArrayBlocks
from apexrank.rankers.base import SeparableWarning

RNG = np.random.default_rng(0)
N, D = 1500, 6
X = RNG.normal(size=(N, D)) @ np.diag([1.0, 5.0, 0.2, 1.0, 1.0, 1.0]) + np.array([0, 0, 0, 0, 0, 1e5])
Y = (X[:, 0] + 0.3 * X[:, 1] + 1.5 * RNG.normal(size=N) > 1.0).astype(int)
WEIGHT = RNG.integers(0, 4, N).astype(float)
GROUPS = np.repeat(np.arange(N // 10), 10)
ROWS, BLOCKS = (X, Y), (ArrayBlocks(X, Y, rows=400), None)
GRID = {"ps": [1, 4, 16], "alphas": [1.0, 1e-4], "cv": 3}


def one_by_one(X, y, sample_weight=None, **options):
    """Held-out scores of fits on copies of the training rows."""
    options = GRID | options
    folds = StratifiedKFold(options["cv"]).split(X, y)
    scorer = get_scorer(options.get("scoring", "partial_auc"))
    scores = []
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
    return np.reshape(scores, (options["cv"], len(options["alphas"]) * len(options["ps"])))


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
def test_a_search_is_that_of_fits_one_by_one(design, weighted):
    """Columns in different units, one of them far from zero, and weights of 0."""
    rows = X.copy()
    if design in ("sparse", "single"):  # the former is never moved, the latter has too few digits
        rows[:, -1] -= 1e5
    rows = rows.astype(np.float32).astype(float) if design == "single" else rows
    weight = WEIGHT if weighted else None
    given, more = DESIGNS[design](rows, Y, weight)
    search = PNormPushCV(**GRID, tol=1e-8).fit(*given, **more)
    np.testing.assert_allclose(table_of(search), one_by_one(rows, Y, weight), atol=1e-6)
    best = PNormPush(search.p_, alpha=search.alpha_, tol=1e-8).fit(rows, Y, sample_weight=weight)
    np.testing.assert_allclose(search.coef_, best.coef_, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(search.intercept_, best.intercept_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("design", ["dense", "blocks", "torch"])
@pytest.mark.parametrize("alpha", ["auto", 1e-3])
def test_a_path_is_that_of_fits_one_by_one(design, alpha):
    given, more = DESIGNS[design](X, Y, WEIGHT)
    path = push_path(*given, [1, 4, 16], **more, alpha=alpha, tol=1e-8)
    for ranker, p in zip(path, [1, 4, 16], strict=True):
        alone = PNormPush(p, alpha=alpha, tol=1e-8).fit(X, Y, sample_weight=WEIGHT)
        assert ranker.p == p
        assert ranker.converged_
        np.testing.assert_allclose(ranker.alpha_, alone.alpha_, rtol=1e-6)
        np.testing.assert_allclose(ranker.coef_, alone.coef_, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(ranker.objective_, alone.objective_, rtol=1e-8)
        np.testing.assert_array_equal(ranker.predict(X), alone.predict(X))


@pytest.mark.parametrize("design", ["dense", "blocks", "dask", "torch"])
def test_infinite_p_and_an_l1_norm_on_every_design(design):
    noise = np.random.default_rng(0).normal(size=300)  # of its own: the same rows whatever test ran before
    y = (X[:300, 0] + 0.3 * X[:300, 1] + 0.1 * noise > 1).astype(int)
    given, more = DESIGNS[design](X[:300], y, None)
    options = {"ps": [4, np.inf], "alphas": [0.1], "cv": 3, "l1_ratio": 0.5}
    search = PNormPushCV(**options).fit(*given, **more)
    np.testing.assert_allclose(table_of(search), one_by_one(X[:300], y, **options), atol=1e-3)


@pytest.mark.parametrize("design", ["blocks", "torch"])
def test_groups_are_compared_inside_and_kept_whole(design):
    options = {"ps": [1, 4], "alphas": [1e-2], "cv": 3, "scoring": "auc"}
    apart = PNormPushCV(**options).fit(X, Y, groups=GROUPS)
    if design == "blocks":
        search = PNormPushCV(**options).fit(ArrayBlocks(X, Y, groups=GROUPS, rows=400), None)
    else:
        search = PNormPushCV(**options).fit(*in_torch(X, Y, None)[0], groups=GROUPS)
    np.testing.assert_allclose(table_of(search), table_of(apart), atol=1e-4)
    assert search.best_estimator_.p == apart.best_estimator_.p


def test_any_splitter_will_do():
    """Rows that are neither in training nor held out, and rows that are drawn twice."""
    twice = [(np.r_[0:500, 0:300], np.arange(600, 900)), (np.arange(700, 1200), np.arange(100, 400))]
    for cv in (ShuffleSplit(3, train_size=0.5, test_size=0.2, random_state=0), twice):
        folds = list(cv.split(X)) if hasattr(cv, "split") else cv
        searches = [PNormPushCV([4], [1e-2], cv=cv, scoring="auc").fit(*rows) for rows in (ROWS, BLOCKS)]
        for k, (train, test) in enumerate(folds):
            alone = PNormPush(4, alpha=1e-2).fit(X[train], Y[train])
            expected = get_scorer("auc")(alone, X[test], Y[test])
            for search in searches:
                np.testing.assert_allclose(search.cv_results_[f"split{k}_test_score"], expected, atol=1e-6)


def test_a_fold_of_one_class_has_no_measure():
    folds = [(np.arange(N), np.flatnonzero(label == Y)) for label in (0, 1)]
    for fold in folds:
        with pytest.raises(InputError, match="the measure is not defined"):
            PNormPushCV([4], [1e-2], cv=[fold]).fit(X, Y)


def test_separated_classes_warn_once_for_the_fit_that_is_kept():
    """The only regularisation is a small ridge, for which Newton's method needs many steps."""
    rows = X[:, :4].copy()
    rows[Y == 1, 0] += 8.0
    rows[Y == 0, 0] -= 8.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = PNormPushCV([1, 64], [1e-3, 1e-6], cv=3).fit(rows, Y)
    assert (search.cv_results_["mean_test_score"] == 1.0).all()
    with pytest.warns(SeparableWarning):  # without a ridge there is no minimum
        PNormPushCV([1], [0.0], cv=3).fit(rows, Y)


def test_scorers_of_rows_need_them_in_memory():
    def mean_margin(ranker, rows, labels):
        return float(np.mean(ranker.predict(rows) == labels))

    with pytest.raises(InputError, match="needs the rows in memory: give the name of a measure"):
        PNormPushCV(**GRID, scoring=mean_margin).fit(ArrayBlocks(X, Y, rows=400), None)
    expected = PNormPushCV(**GRID, scoring=mean_margin).fit(X, Y)
    torch = pytest.importorskip("torch")

    def of_tensors(ranker, rows, labels):
        assert isinstance(rows, torch.Tensor)
        return float((ranker.predict(rows) == labels).double().mean())

    search = PNormPushCV(**GRID, scoring=of_tensors).fit(*in_torch(X, Y, None)[0])
    np.testing.assert_allclose(table_of(search), table_of(expected), atol=3e-3)
