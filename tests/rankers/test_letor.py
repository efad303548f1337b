"""The mean of linear retargeting and bagged lambdaranks: its folds, its scores, weights and missing values."""

import sys

import numpy as np
import pytest
from scipy import sparse

from apexrank.datasets import make_letor_example
from apexrank.errors import InputError, MissingExtraError
from apexrank.metrics import ndcg
from apexrank.rankers import LetorRanker, MonotoneRetargeting, letor

lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")


@pytest.fixture(scope="module")
def queries():
    made = make_letor_example(n_queries=30, random_state=0, noise=1.5)
    return made.data, made.target, made.groups


@pytest.fixture(scope="module")
def fitted(queries):
    X, y, groups = queries
    return LetorRanker().fit(X, y, groups=groups)


def spread(scores, groups):
    lists = np.unique(groups, return_inverse=True)[1]
    return np.std(scores - (np.bincount(lists, scores) / np.bincount(lists))[lists])


def test_the_linear_score_is_the_mean_over_folds_with_the_best_penalty(queries, fitted):
    X, y, groups = queries
    lists, Z = np.unique(groups, return_inverse=True)[1], (X - X.mean(axis=0)) / X.std(axis=0)
    fold = (np.random.RandomState(0).permutation(lists.max() + 1) % 5)[lists]
    found = {}
    for alpha in letor.ALPHAS:
        held, coefs = np.empty(len(y)), []
        for k in range(5):
            out = fold == k
            linear = MonotoneRetargeting(alpha=alpha, solver="lbfgs", tol=1e-3)
            coefs.append(linear.fit(Z[~out], y[~out], groups=groups[~out]).coef_)
            held[out] = Z[out] @ coefs[-1]
        found[alpha] = ndcg(y, held, groups=groups), np.mean(coefs, axis=0) / X.std(axis=0), held
    assert fitted.alpha_ == max(found, key=lambda alpha: found[alpha][0])
    _, coef, held = found[fitted.alpha_]
    # fitted to a gradient of 1e-3, from which sums in another order may end elsewhere
    assert fitted.coef_ == pytest.approx(coef / (2 * spread(held, groups)), rel=1e-2, abs=1e-3)


def test_trees_are_lightgbms_of_every_fold(queries, monkeypatch):
    X, y, groups = queries
    boosters, given = [], []

    def recorded(rows, labels, lists, weight, held, seed):
        boosters.append(lambdarank(rows, labels, lists, weight, held, seed))
        given.append((rows[held], lists[held]))
        return boosters[-1]

    lambdarank = letor.lambdarank
    monkeypatch.setattr(letor, "lambdarank", recorded)
    ranker = LetorRanker().fit(X, y, groups=groups)
    assert len(boosters) == 5
    assert len(ranker.forest_.roots) == sum(booster.best_iteration for booster in boosters)
    held = [booster.predict(rows, raw_score=True) for booster, (rows, _) in zip(boosters, given, strict=True)]
    unit = spread(np.concatenate(held), np.concatenate([lists for _, lists in given]))
    trees = np.mean([booster.predict(X, raw_score=True) for booster in boosters], axis=0) / (2 * unit)
    assert ranker.predict(X) == pytest.approx(trees + X @ ranker.coef_)
    parts = ranker.contributions(X).sum(axis=1) - ranker.predict(X)
    assert parts == pytest.approx(np.full(len(X), parts[0]))


def test_trees_improve_a_linear_score_that_does_not_fit():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(1200, 3)), rng.integers(60, size=1200)
    y = np.digitize(X[:, 0] + np.abs(X[:, 1]) + 0.3 * rng.normal(size=1200), [0.5, 1.5])
    train, held = groups < 40, groups >= 40
    ranker = LetorRanker().fit(X[train], y[train], groups=groups[train])
    linear = MonotoneRetargeting().fit(X[train], y[train], groups=groups[train])
    scores = [one.score(X[held], y[held], groups=groups[held]) for one in (ranker, linear)]
    assert scores[0] > scores[1] + 0.02


def test_rows_may_come_in_any_order(queries, fitted):
    X, y, groups = queries
    order = np.random.default_rng(1).permutation(len(y))
    again = LetorRanker().fit(X[order], y[order], groups=groups[order])
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_weights_are_repetitions(queries):
    X, y, groups = queries
    weight = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    weight[groups == groups[0]] = 0  # a query that is left out
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = LetorRanker().fit(X, y, groups=groups, sample_weight=weight)
    repeated = LetorRanker().fit(X[rows], y[rows], groups=groups[rows])
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    halves = LetorRanker().fit(X, y, groups=groups, sample_weight=np.where(y > 0, 1.5, 1.0))
    assert not np.array_equal(halves.predict(X), LetorRanker().fit(X, y, groups=groups).predict(X))


def test_without_groups_rows_are_split(queries):
    X, y, _ = queries
    ranker = LetorRanker(3).fit(X, y)
    assert ranker.score(X, y) > 0.8
    assert ranker.predict(X[:1])[0] == pytest.approx(ranker.predict(X)[0])


def test_missing_values_become_the_mean(queries):
    X, y, groups = queries
    X = X.copy()
    X[::5, 0] = np.nan
    ranker = LetorRanker().fit(X, y, groups=groups)
    assert ranker.mean_ == pytest.approx(np.nanmean(X, axis=0))
    filled = np.where(np.isnan(X), ranker.mean_, X)
    np.testing.assert_array_equal(ranker.predict(X), ranker.predict(filled))
    assert ranker.score(X, y, groups=groups) > 0.8


def test_labels_that_are_no_grades(queries, fitted):
    X, y, groups = queries
    ranker = LetorRanker().fit(X, y / 2 - 1, groups=groups)
    assert ranker.score(X, y, groups=groups) > 0.8
    assert letor.grades(np.arange(62.0)).max() == 30


def test_without_lightgbm_it_names_the_extra(queries, monkeypatch):
    X, y, groups = queries
    monkeypatch.setattr(letor, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"apexrank\[boosting\]"):
        LetorRanker().fit(X, y, groups=groups)


def test_what_it_cannot_fit_is_refused(queries):
    X, y, groups = queries
    with pytest.raises(ValueError, match="n_folds"):
        LetorRanker(1).fit(X, y, groups=groups)
    with pytest.raises(InputError, match="two different rows"):
        LetorRanker().fit(np.ones((4, 2)), np.ones(4))
    with pytest.raises(InputError, match="no pair to rank"):
        LetorRanker().fit(X, np.zeros(len(y)), groups=groups)
    with pytest.raises(InputError, match="at most 10,000 rows, got 30,000"):
        LetorRanker(2).fit(np.arange(30_000.0)[:, None], np.arange(30_000) % 3)
    with pytest.raises(TypeError, match="Sparse"):
        LetorRanker().fit(sparse.csr_array(X), y, groups=groups)
