"""The stacked ranker: its weights, folds, groups, parts and time budget."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, minimize

from apexrank.datasets import make_letor_example
from apexrank.errors import InputError, MissingExtraError
from apexrank.metrics import ndcg
from apexrank.rankers import LetorRanker, MonotoneRetargeting, letor

LINEAR = ("linear", "additive")
with_lightgbm = pytest.mark.skipif(find_spec("lightgbm") is None, reason="LightGBM is not installed")


@pytest.fixture(scope="module")
def queries():
    made = make_letor_example(n_queries=30, random_state=0, noise=1.5)
    return made.data, made.target, made.groups


@pytest.fixture(scope="module")
def fitted(queries):
    X, y, groups = queries
    return LetorRanker(LINEAR).fit(X, y, groups=groups)


def seen(part, X, groups):
    """Features of a part: standardised over all rows for the linear part, also within queries for the others."""
    if part == "linear":
        return (X - X.mean(axis=0)) / X.std(axis=0)
    centred = X - np.column_stack([mean_of(column, groups) for column in X.T])
    deviation = np.sqrt(np.column_stack([mean_of(column**2, groups) for column in centred.T]))
    return np.column_stack([X, centred / np.where(deviation > 0, deviation, 1)])


def out_of_fold(ranker, X, y, groups):
    """Scores of each part by the models that did not see the row's query, from the folds alone."""
    lists = np.unique(groups, return_inverse=True)[1]
    fold = (np.random.RandomState(0).permutation(lists.max() + 1) % ranker.n_folds)[lists]
    columns = []
    for part in ranker.weights_:
        scores = np.empty(len(y))
        for k, models in enumerate(ranker.models_):
            scores[fold == k] = models[part].predict(seen(part, X, groups)[fold == k])
        columns.append(scores / ranker.units_[part])
    return np.column_stack(columns), fold


def retargeting_loss(scores, y, groups):
    """Half the squared distance of scores to targets ordered by grade with margins y, averaged over mixed queries."""
    values = []
    for group in np.unique(groups):
        own = groups == group
        if np.ptp(y[own]) > 0:
            # targets are free inside a grade: rows sorted by grade, then by score, ascend without the margins
            wanted = (scores[own] - y[own])[np.lexsort([scores[own], y[own]])]
            values.append(np.sum((isotonic_regression(wanted).x - wanted) ** 2) / 2)
    return np.mean(values)


def test_weights_minimise_the_retargeting_loss_of_out_of_fold_scores(queries, fitted):
    X, y, groups = queries
    S, _ = out_of_fold(fitted, X, y, groups)
    assert [np.std(S[:, j] - mean_of(S[:, j], groups)) for j in range(2)] == pytest.approx([1, 1])

    def loss(w):
        return retargeting_loss(S @ w, y, groups) + letor.STACKED / 2 * w @ w

    best = minimize(loss, [0.5, 0.5], bounds=[(0, None)] * 2, method="L-BFGS-B").x
    assert [*fitted.weights_.values()] == pytest.approx(best / best.sum(), abs=2e-3)
    assert best.min() > 0.01  # both parts count


def mean_of(values, groups):
    lists = np.unique(groups, return_inverse=True)[1]
    return (np.bincount(lists, values) / np.bincount(lists))[lists]


def test_settings_and_values_are_those_of_out_of_fold_scores(queries, fitted):
    X, y, groups = queries
    S, fold = out_of_fold(fitted, X, y, groups)
    for j, part in enumerate(LINEAR):
        assert fitted.oof_ndcg_[part] == pytest.approx(ndcg(y, S[:, j], groups=groups))
    weights = np.array([*fitted.weights_.values()])
    assert fitted.oof_ndcg_["stacked"] == pytest.approx(ndcg(y, S @ weights, groups=groups))
    # the penalty of the linear part, searched by hand
    values = []
    for alpha in letor.ALPHAS["linear"]:
        scores = np.empty(len(y))
        for k in range(5):
            out = fold == k
            linear, rows = (
                MonotoneRetargeting(alpha=alpha, solver="lbfgs", tol=1e-3),
                seen("linear", X, groups),
            )
            scores[out] = linear.fit(rows[~out], y[~out], groups=groups[~out]).predict(rows[out])
        values.append(ndcg(y, scores, groups=groups))
    assert fitted.settings_["linear"] == letor.ALPHAS["linear"][int(np.argmax(values))]


def test_the_score_is_the_weighted_mean_over_parts_and_folds(queries, fitted):
    X, _, groups = queries
    wanted = sum(
        weight
        / fitted.units_[part]
        * np.mean([models[part].predict(seen(part, X, groups)) for models in fitted.models_], axis=0)
        for part, weight in fitted.weights_.items()
    )
    assert fitted.predict(X, groups=groups) == pytest.approx(wanted)


@pytest.mark.parametrize("query_features", [False, True])
def test_rows_may_come_in_any_order(queries, query_features):
    X, y, groups = queries
    ranker = LetorRanker(LINEAR, query_features=query_features).fit(X, y, groups=groups)
    order = np.random.default_rng(1).permutation(len(y))
    again = LetorRanker(LINEAR, query_features=query_features).fit(X[order], y[order], groups=groups[order])
    assert again.settings_ == ranker.settings_
    assert [*again.weights_.values()] == pytest.approx([*ranker.weights_.values()], abs=1e-3)
    found = again.predict(X[order], groups=groups[order])
    assert found == pytest.approx(ranker.predict(X, groups=groups)[order], abs=2e-2)


# parts are fitted to a gradient of 1e-3, from which sums in another order may end elsewhere
PARTS = [LINEAR, pytest.param(("linear", "retarget"), marks=with_lightgbm)]


@pytest.mark.parametrize("parts", PARTS)
def test_weights_are_repetitions(queries, parts, monkeypatch):
    monkeypatch.setattr(letor, "ROUNDS", (5, 10))
    monkeypatch.setitem(letor.GROWN, "n_estimators", 10)
    X, y, groups = queries
    weight = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    weight[groups == groups[0]] = 0  # a query that is left out
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    options = {"query_features": True}
    weighted = LetorRanker(parts, **options).fit(X, y, groups=groups, sample_weight=weight)
    repeated = LetorRanker(parts, **options).fit(X[rows], y[rows], groups=groups[rows])
    assert weighted.settings_ == repeated.settings_
    assert [*weighted.weights_.values()] == pytest.approx([*repeated.weights_.values()], abs=1e-3)
    assert weighted.predict(X, groups=groups) == pytest.approx(repeated.predict(X, groups=groups), abs=2e-2)


def test_query_features_see_through_the_units_of_a_query():
    rng = np.random.default_rng(3)
    groups, X = np.repeat(np.arange(60), 10), rng.normal(size=(600, 2))
    y = np.digitize(np.abs(X[:, 0]), [0.7, 1.4])
    moved = (X * rng.uniform(1, 9, (60, 1))[groups]) + 20 * rng.normal(size=(60, 1))[groups]
    with_them, without = (LetorRanker(["additive"], query_features=known) for known in (True, False))
    train, held = groups < 40, groups >= 40
    scores = [
        ranker.fit(moved[train], y[train], groups=groups[train]).score(
            moved[held], y[held], groups=groups[held]
        )
        for ranker in (with_them, without)
    ]
    assert scores[0] > scores[1] + 0.1
    assert without.predict(moved[:1]).shape == (1,)
    with pytest.raises(InputError, match="`groups` are missing"):
        with_them.predict(moved)
    # the linear part has no features of queries
    linear = LetorRanker(["linear"]).fit(X, y, groups=groups)
    assert linear.predict(X[:1])[0] == pytest.approx(linear.predict(X, groups=groups)[0])


def test_without_groups_rows_are_split_and_predict_needs_none(queries):
    X, y, _ = queries
    ranker = LetorRanker(LINEAR, query_features=True).fit(X, y)
    assert len(ranker.models_) == 5
    assert ranker.predict(X[:1])[0] == pytest.approx(ranker.predict(X)[0])


def test_the_time_budget_ends_after_two_folds(queries, monkeypatch):
    X, y, groups = queries
    ranker = LetorRanker(LINEAR, time_budget=0).fit(X, y, groups=groups)
    assert len(ranker.models_) == 2
    assert sum(ranker.weights_.values()) == pytest.approx(1)
    clock = iter(range(100))
    monkeypatch.setattr(letor, "perf_counter", lambda: float(next(clock)))
    # at one second per fold the fourth would end after 4 s, including the second before the first
    assert len(LetorRanker(LINEAR, time_budget=4.5).fit(X, y, groups=groups).models_) == 3
    assert len(LetorRanker(LINEAR, time_budget=60).fit(X, y, groups=groups).models_) == 5


@with_lightgbm
def test_trees_take_part_where_scores_are_not_additive(monkeypatch):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(900, 3)), rng.integers(45, size=900)
    y = np.digitize(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=900), [0.3, 1.0])
    ranker = LetorRanker().fit(X[:600], y[:600], groups=groups[:600])
    assert [*ranker.weights_] == [*letor.PARTS]
    trees = sum(ranker.weights_[part] for part in letor.TREES)
    assert trees > 0.8
    held = {"groups": groups[600:]}
    additive = LetorRanker(LINEAR).fit(X[:600], y[:600], groups=groups[:600])
    assert ranker.score(X[600:], y[600:], **held) > additive.score(X[600:], y[600:], **held) + 0.1
    for part in letor.TREES:
        assert all(len(models[part].forest_.roots) == ranker.settings_[part] for models in ranker.models_)
    monkeypatch.setattr(letor, "LONGEST", 10)
    assert [*LetorRanker(n_folds=2).fit(X, y, groups=groups).weights_] == [*LINEAR, "retarget"]


def test_without_lightgbm_trees_are_left_out_or_refused(queries, monkeypatch):
    X, y, groups = queries
    monkeypatch.setattr(letor, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"no trees without LightGBM: pip install"):
        assert [*LetorRanker().fit(X, y, groups=groups).weights_] == [*LINEAR]
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match="lightgbm"):
        LetorRanker(["linear", "lambdarank"]).fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": []}, "`parts` is empty"),
        ({"parts": ["linar"]}, "unknown `part` 'linar'"),
        ({"n_folds": 1}, "n_folds"),
        ({"time_budget": -1}, "time_budget"),
    ],
)
def test_wrong_parameters_are_named(queries, options, message):
    X, y, groups = queries
    with pytest.raises(InputError, match=message):
        LetorRanker(**{"parts": LINEAR} | options).fit(X, y, groups=groups)


def test_missing_values_and_one_grade():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(200, 3)), np.repeat(np.arange(20), 10)
    y = (X[:, 0] > 0.5).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    assert LetorRanker(LINEAR).fit(X, y, groups=groups).score(X, y, groups=groups) > 0.8
    with pytest.raises(InputError, match="no pair to rank"):
        LetorRanker(LINEAR).fit(X, np.zeros(200), groups=groups)
    with pytest.raises(InputError, match="all rows are equal"):
        LetorRanker(LINEAR).fit(np.ones((4, 2)), np.ones(4))
