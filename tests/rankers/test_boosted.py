"""Boosted trees for graded relevance, against the libraries that grow them."""

import re
import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from apexrank.errors import InputError, MissingExtraError
from apexrank.integrations.boosting import BoosterMetric, PairsObjective, RetargetObjective
from apexrank.metrics import evaluate
from apexrank.problem import ArrayBlocks
from apexrank.rankers import BoostedRanker, boosted, libraries

LIBRARIES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed"))
    for name in ("lightgbm", "xgboost", "catboost")
]
every_library = pytest.mark.parametrize("library", LIBRARIES)
with_lightgbm = pytest.mark.skipif(find_spec("lightgbm") is None, reason="LightGBM is not installed")
N = 1200


@pytest.fixture(scope="module")
def lists():
    """Rows with missing values and categories, in unsorted queries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    X[rng.random(N) < 0.2, 1] = np.nan
    X[:, 4] = rng.permutation([3.0, 7.0, 8.0, 9.0, 20.0])[rng.integers(0, 5, N)]
    latent = X[:, 0] + np.nan_to_num(X[:, 1], nan=1.0) + np.isin(X[:, 4], [3, 8]) + 0.5 * rng.normal(size=N)
    return X, np.digitize(latent, [0.5, 1.5, 2.5]).astype(float), rng.integers(0, 40, N)


@pytest.fixture
def booster_of(monkeypatch):
    """The library's booster for a fitted ranker."""
    found = []

    def kept(read):
        return lambda booster, *rest: found.append(booster) or read(booster, *rest)

    for name in ("lightgbm_trees", "xgboost_trees", "catboost_trees"):
        monkeypatch.setattr(libraries, name, kept(getattr(libraries, name)))
    return found


def predicted(library, booster, ranker, X):
    """Scores computed by the library."""
    X = ranker._coded(X)
    if library == "lightgbm":
        return booster.predict(X, raw_score=True)
    if library == "xgboost":
        import xgboost

        kinds = ["c" if j in ranker._categories else "q" for j in range(X.shape[1])]
        data = xgboost.DMatrix(X, feature_types=kinds, enable_categorical=True)
        return booster.predict(data, output_margin=True)
    columns = []
    for j in range(X.shape[1]):
        known = ranker._categories.get(j)
        columns += [X[:, j]] if known is None else [X[:, j] == code for code in range(len(known))]
    return booster.predict(np.column_stack(columns))


@every_library
@pytest.mark.parametrize("objective", ["retarget", "listnet", "lambdarank"])
@pytest.mark.parametrize("categorical", [None, [4]])
def test_scores_are_those_of_the_library(lists, library, objective, categorical, booster_of):
    X, y, groups = lists
    ranker = BoostedRanker(
        objective, library=library, n_estimators=15, max_leaves=8, categorical_features=categorical
    ).fit(X, y, groups=groups)
    other = np.random.default_rng(1).permutation(X.ravel()).reshape(X.shape)
    other[:, [0, 2, 3]] = np.nan_to_num(other[:, [0, 2, 3]])
    other[:, 4] = np.nan_to_num(X[::-1, 4])
    # XGBoost sums in single precision
    close = {"rtol": 1e-12, "atol": 1e-12} if library != "xgboost" else {"rtol": 1e-5, "atol": 1e-6}
    for rows in (X, other):
        theirs = predicted(library, booster_of[0], ranker, rows)
        np.testing.assert_allclose(ranker.predict(rows), theirs, **close)
    assert len(np.unique(ranker.predict(X))) > 50


@every_library
def test_thresholds_of_single_precision_are_exact(library, booster_of):
    """Values near thresholds, which single precision may round either way, go to the same side as in the library."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 1))
    ranker = BoostedRanker("pointwise", library=library, n_estimators=5).fit(X, X[:, 0])
    base = np.unique(np.float32(ranker.forest_.threshold[ranker.forest_.left >= 0])).astype(float)
    near = [base]
    for step in (-np.inf, np.inf):
        single = np.nextafter(base.astype(np.float32), np.float32(step)).astype(float)
        middle = (base + single) / 2
        near += [single, middle, np.nextafter(middle, -np.inf), np.nextafter(middle, np.inf)]
    rows = np.concatenate(near)[:, None]
    theirs = predicted(library, booster_of[0], ranker, rows)
    np.testing.assert_allclose(ranker.predict(rows), theirs, rtol=1e-5, atol=1e-6)


@every_library
@pytest.mark.parametrize("objective", ["retarget", "listnet"])
def test_contributions_add_up_to_the_score(lists, library, objective):
    X, y, groups = lists
    ranker = BoostedRanker(objective, library=library, n_estimators=10, categorical_features=[4])
    parts, scores = ranker.fit(X, y, groups=groups).contributions(X), ranker.predict(X)
    left = parts.sum(axis=1) - scores
    np.testing.assert_allclose(left, left[0], atol=1e-9)
    if objective == "retarget":  # whose rows all have the same curvature, which XGBoost counts
        assert left[0] == pytest.approx(-scores.mean(), abs=1e-6)
    important = ranker.feature_importances_
    assert important.sum() == pytest.approx(1)
    assert important[[0, 1, 4]].min() > 3 * important[[2, 3]].max()


@every_library
def test_squared_errors_grow_the_trees_of_the_librarys_own(lists, library):
    """Oracle of slopes, curvatures and signs: "pointwise" is a regression on the relevance."""
    X, y, _ = lists
    ranker = BoostedRanker("pointwise", library=library, n_estimators=20, max_leaves=8, min_samples_leaf=5)
    scores = ranker.fit(X, y).predict(X) + y.mean()  # which has no say in ranks
    if library == "lightgbm":
        import lightgbm

        options = {"num_leaves": 8, "min_data_in_leaf": 5, "verbosity": -1}
        theirs = lightgbm.train(options, lightgbm.Dataset(X, y), 20).predict(X)
    elif library == "xgboost":
        import xgboost

        options = {"max_leaves": 8, "grow_policy": "lossguide", "max_depth": 0, "learning_rate": 0.1}
        options |= {"min_child_weight": 5, "reg_lambda": 0, "base_score": y.mean()}
        theirs = xgboost.train(options, xgboost.DMatrix(X, y), 20).predict(xgboost.DMatrix(X))
    else:
        import catboost

        options = {"depth": 3, "iterations": 20, "learning_rate": 0.1, "l2_leaf_reg": 0, "random_strength": 0}
        options |= {"bootstrap_type": "No", "boosting_type": "Plain", "boost_from_average": True}
        options |= {"verbose": False, "allow_writing_files": False, "leaf_estimation_iterations": 1}
        theirs = catboost.CatBoost(options | {"loss_function": "RMSE"}).fit(X, y).predict(X)
    np.testing.assert_allclose(scores, theirs, rtol=1e-4, atol=1e-5)


@with_lightgbm
@pytest.mark.parametrize("objective", ["retarget", "lambdarank"])
def test_fit_is_that_of_the_library_called_directly(lists, objective):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, groups = lists
    ranker = BoostedRanker(objective, n_estimators=20, max_leaves=8).fit(X, y, groups=groups)
    order = np.argsort(groups, kind="stable")
    options = {
        "objective": RetargetObjective() if objective == "retarget" else objective,
        "num_leaves": 8,
        "learning_rate": 0.1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(X[order], y[order], group=np.unique(groups, return_counts=True)[1])
    booster = lightgbm.train(options, data, 20)
    np.testing.assert_allclose(ranker.predict(X), booster.predict(X, raw_score=True), rtol=1e-12)


# ---------------------------------------------------------------- queries and labels


@with_lightgbm
def test_groups_have_any_ids_and_rows_any_order(lists):
    X, y, groups = lists
    ranker = BoostedRanker(n_estimators=10).fit(X, y, groups=groups)
    shuffled = np.random.default_rng(3).permutation(N)
    names = np.array([f"query {n}" for n in range(40)])[groups]
    again = BoostedRanker(RetargetObjective(), n_estimators=10).fit(
        X[shuffled], y[shuffled], groups=names[shuffled]
    )
    np.testing.assert_allclose(again.predict(X), ranker.predict(X), atol=1e-9)
    assert ranker.score(X, y, groups=groups) > 0.97
    assert BoostedRanker(n_estimators=10).fit(X, y).score(X, y, groups=groups) > 0.9


@every_library
@pytest.mark.parametrize("labels", [[-2.5, -1, 0, 1e6], [0, 1, 2, 1e12], [5, 5.25, 5.5, 5.75]])
@pytest.mark.parametrize("objective", ["retarget", "ndcg_consistent", "lambdarank"])
def test_any_labels(lists, library, labels, objective):
    X, y, groups = lists
    if objective == "ndcg_consistent" and max(labels) > 100:
        with pytest.raises(InputError, match="too large: use smaller grades"):
            BoostedRanker(objective, library=library).fit(X, np.array(labels)[y.astype(int)])
        return
    ranker = BoostedRanker(objective, library=library, n_estimators=10)
    scores = ranker.fit(X, np.array(labels)[y.astype(int)], groups=groups).predict(X)
    assert evaluate(y, scores, "ndcg", groups=groups)["ndcg"] > 0.9
    if objective == "lambdarank":  # grades are the numbers of the labels
        np.testing.assert_array_equal(scores, ranker.fit(X, y, groups=groups).predict(X))


def test_many_labels_become_31_grades():
    found = libraries.grades(np.linspace(-1, 1, 1000))
    np.testing.assert_array_equal(np.unique(found), np.arange(31))
    assert (np.diff(found) >= 0).all()


@with_lightgbm
def test_lists_of_any_length():
    X = np.random.default_rng(0).normal(size=(10_001, 1))
    y = (X[:, 0] > 1).astype(int)
    assert BoostedRanker(n_estimators=3).fit(X, y).score(X, y) > 0.99
    for objective in ("lambdarank", "rank_xendcg"):
        with pytest.raises(InputError, match=f"{objective} takes lists of at most 10,000 rows, got 10,001"):
            BoostedRanker(objective).fit(X, y)


# ---------------------------------------------------------------- held-out queries


@every_library
@pytest.mark.parametrize("metric", ["ndcg@10", "kendall_tau", RetargetObjective()])
def test_early_stopping_keeps_the_best_round(lists, library, metric):
    X, y, groups = lists
    held = groups < 10
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(N) < 0.3, rng.integers(0, 4, N), y)  # overfits soon
    ranker = BoostedRanker(
        library=library, n_estimators=60, learning_rate=0.3, eval_metric=metric, early_stopping_rounds=5
    )
    ranker.fit(X[~held], noisy[~held], groups=groups[~held], eval_set=(X[held], y[held], groups[held]))
    measure = BoosterMetric(metric, groups=groups[held])
    values = ranker.validation_scores_
    best = np.argmax(values) if measure.greater_is_better else np.argmin(values)
    assert ranker.n_iter_ == best + 1 == len(ranker.forest_.roots) < 60
    assert ranker.best_score_ == values[best]
    assert measure(y[held], ranker.predict(X[held])) == pytest.approx(ranker.best_score_, rel=1e-5)
    assert len(values) == (60 if library == "catboost" else best + 1 + 5)
    ranker.set_params(early_stopping_rounds=None)
    ranker.fit(X[~held], noisy[~held], groups=groups[~held], eval_set=(X[held], y[held], groups[held]))
    assert len(ranker.validation_scores_) == 60


@with_lightgbm
def test_validation_fraction_holds_out_whole_queries(lists, monkeypatch):
    X, y, groups = lists
    seen = []
    monkeypatch.setattr(
        boosted, "grow", lambda library, task: seen.append(task) or libraries.grow(library, task)
    )
    ranker = BoostedRanker(n_estimators=20, validation_fraction=0.25)
    scores = [clone(ranker).fit(X, y, groups=groups).predict(X) for _ in range(2)]
    np.testing.assert_array_equal(*scores)
    assert len(seen[0].lists.sizes) == 30
    assert len(seen[0].lists.y) + len(seen[0].watch.y) == N
    own, held = ({*rows[:, 0]} for rows in (seen[0].lists.X, seen[0].watch.X))
    assert not {*groups[np.isin(X[:, 0], [*own])]} & {*groups[np.isin(X[:, 0], [*held])]}
    with pytest.raises(InputError, match="holds out 0 of 1 groups: give more groups, or an `eval_set`"):
        ranker.fit(X, y)
    with pytest.raises(InputError, match="`validation_fraction` must be between 0 and 1"):
        ranker.set_params(validation_fraction=2).fit(X, y, groups=groups)
    assert not hasattr(BoostedRanker(n_estimators=2).fit(X, y, groups=groups), "best_score_")


# ---------------------------------------------------------------- columns and weights


@every_library
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_categories_of_frames(lists, library, frame):
    X, y, groups = lists
    ranker = BoostedRanker(library=library, n_estimators=10, categorical_features=[4])
    scores = ranker.fit(X, y, groups=groups).predict(X)
    names = list("abcde")
    numbers = frame(dict(zip(names, X.T, strict=True)))
    named = clone(ranker).set_params(categorical_features=["e"]).fit(numbers, y, groups=groups)
    np.testing.assert_array_equal(named.predict(numbers), scores)
    words = np.char.add("kind ", np.char.zfill(X[:, 4].astype(int).astype(str), 2))
    columns = dict(zip(names[:4], X.T[:4], strict=True))
    made = frame(columns | {"e": pd.Categorical(words) if frame is pd.DataFrame else words})
    if frame is pl.DataFrame:
        made = made.with_columns(pl.col("e").cast(pl.Categorical))
    by_word = clone(ranker).set_params(categorical_features=None).fit(made, y, groups=groups)
    np.testing.assert_array_equal(by_word.predict(made), scores)
    new = frame(columns | {"e": np.repeat("new", N)})
    assert np.isfinite(by_word.predict(new)).all()
    unseen = np.column_stack([X[:, :4], np.full(N, 1000.0)])
    np.testing.assert_array_equal(by_word.predict(new), ranker.predict(unseen))
    with pytest.raises(InputError, match="names the column 'f', which X does not have"):
        clone(ranker).set_params(categorical_features=["f"]).fit(numbers, y, groups=groups)
    with pytest.raises(InputError, match="column 4 holds categories"):
        clone(ranker).set_params(monotonic_cst={4: 1}).fit(X, y, groups=groups)


@every_library
def test_missing_values_that_training_did_not_have_are_refused(lists, library):
    X, y, groups = lists
    ranker = BoostedRanker(library=library, n_estimators=3).fit(X, y, groups=groups)
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(InputError, match="column 2 has missing values, but had none in training: fill them"):
        ranker.predict(bad)


@every_library
@pytest.mark.parametrize("sign", [1, -1])
def test_monotone_columns(lists, library, sign):
    X, y, groups = lists
    noisy = np.where(np.random.default_rng(0).random(N) < 0.3, 3 - y, y)
    at = np.repeat(X[:20], 50, axis=0)
    at[:, 0] = np.tile(np.linspace(-3, 3, 50), 20)

    def steps(signs):
        objective = "YetiRank" if library == "catboost" else "retarget"
        ranker = BoostedRanker(
            objective, library=library, n_estimators=20, monotonic_cst=signs, min_samples_leaf=5
        )
        scores = ranker.fit(X, noisy, groups=groups).predict(at)
        return sign * np.diff(scores.reshape(20, 50), axis=1)

    assert steps({0: sign}).min() >= 0
    assert steps([sign, 0, 0, 0, 0]).min() >= 0
    assert steps(None).min() < 0
    if library == "catboost":
        with pytest.raises(InputError, match="takes objectives of apexrank without `monotonic_cst`"):
            BoostedRanker(library=library, monotonic_cst={0: sign}).fit(X, y)


@every_library
@pytest.mark.parametrize("validation_fraction", [None, 0.3])
def test_weights_are_repetitions(lists, library, validation_fraction):
    X, y, groups = lists
    weight = np.random.default_rng(0).integers(0, 3, N) * (groups != 5)
    ranker = BoostedRanker(library=library, n_estimators=10, validation_fraction=validation_fraction)
    weighted = ranker.fit(X, y, groups=groups, sample_weight=weight).predict(X)
    again = np.repeat(np.arange(N), weight)
    np.testing.assert_array_equal(
        weighted, clone(ranker).fit(X[again], y[again], groups=groups[again]).predict(X)
    )
    halves = clone(ranker).fit(X, y, groups=groups, sample_weight=np.full(N, 0.5)).predict(X)
    np.testing.assert_allclose(halves, clone(ranker).fit(X, y, groups=groups).predict(X), atol=1e-6)


@every_library
def test_weights_of_objectives_of_the_libraries(lists, library):
    X, y, groups = lists
    ranker = BoostedRanker("lambdarank", library=library, n_estimators=5)
    plain = ranker.fit(X, y, groups=groups).predict(X)
    of_lists = ranker.fit(X, y, groups=groups, sample_weight=1.5 + (groups > 20)).predict(X)
    assert not np.allclose(of_lists, plain)
    of_rows = np.linspace(0.1, 1, N)
    if library == "lightgbm":
        assert not np.allclose(ranker.fit(X, y, groups=groups, sample_weight=of_rows).predict(X), plain)
        return
    with pytest.raises(InputError, match="takes one weight per group"):
        ranker.fit(X, y, groups=groups, sample_weight=of_rows)


@every_library
def test_shares_of_rows_and_columns_depend_on_the_seed_alone(lists, library):
    X, y, groups = lists
    ranker = BoostedRanker(library=library, n_estimators=10, subsample=0.5, colsample=0.5)
    first, same, other = (
        clone(ranker).set_params(random_state=seed).fit(X, y, groups=groups).predict(X) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.allclose(first, other)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_a_library_that_is_missing_is_named(lists, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=f"`library='{library}'` is not installed: pip install"):
        BoostedRanker(library=library).fit(*lists[:2])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"objective": "ndcg"}, "unknown `objective` 'ndcg': use one of retarget, pairs, push"),
        ({"objective": "rank_xendcg", "library": "xgboost"}, "unknown `objective` 'rank_xendcg'"),
        ({"objective": PairsObjective(groups=[1, 2])}, "the objective already has groups"),
        ({"library": "sklearn"}, "unknown `library` 'sklearn': use one of lightgbm, xgboost, catboost"),
        ({"eval_metric": "accuracies"}, "accuracies"),
        ({"n_estimators": 0}, "`n_estimators` must be a whole number of at least 1"),
        ({"max_leaves": 1}, "`max_leaves` must be a whole number of at least 2"),
        ({"min_samples_leaf": 0}, "`min_samples_leaf` must be a whole number of at least 1 or None"),
        (
            {"early_stopping_rounds": 0},
            "`early_stopping_rounds` must be a whole number of at least 1 or None",
        ),
        ({"learning_rate": -1}, "`learning_rate` must be a finite number of at least 0"),
        ({"subsample": 0}, "`subsample` must be between"),
        ({"monotonic_cst": [1]}, "`monotonic_cst` has 1 entries, X 5 columns"),
        (
            {"min_samples_leaf": 1000},
            "no column splits the rows (n_samples=1200) into two parts of at least 1000",
        ),
    ],
)
@with_lightgbm
def test_wrong_parameters(lists, parameters, words):
    with pytest.raises(InputError, match=re.escape(words)):
        BoostedRanker(**parameters).fit(*lists[:2])


@with_lightgbm
def test_rows_that_trees_do_not_take(lists):
    from scipy import sparse

    X, y, _ = lists
    with pytest.raises(InputError, match="sparse input is not supported by BoostedRanker"):
        BoostedRanker().fit(sparse.csr_array(np.nan_to_num(X)), y)
    with pytest.raises(InputError, match="needs its rows in memory"):
        BoostedRanker().fit(ArrayBlocks(np.nan_to_num(X), y), None)


@with_lightgbm
def test_parameters_of_the_library(lists):
    X, y, groups = lists
    ranker = BoostedRanker(n_estimators=3, library_params={"max_depth": 1}).fit(X, y, groups=groups)
    assert (np.diff(np.append(ranker.forest_.roots, len(ranker.forest_.value))) <= 4).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"reg_lambda": 100.0},
            "'reg_lambda', which is the ranker's own parameter l2",
        ),  # an alias of lambda_l2
        ({"min_child_samples": 9}, "which is the ranker's own parameter min_samples_leaf"),
        ({"application": "binary"}, "'application', which is the ranker's own parameter objective"),
        ({"max_dept": 3}, "'max_dept', which LightGBM does not know"),
        ({"linear_tree": True}, "gives scores that are not sums of leaves"),
        ({"zero_as_missing": True}, "gives scores that are not sums of leaves"),
    ],
)
@with_lightgbm
def test_parameters_of_lightgbm_that_would_be_ignored_or_not_kept(lists, params, message):
    X, y, groups = lists
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    ranker = BoostedRanker(n_estimators=5, subsample=0.7, library_params=params)
    with pytest.raises(InputError, match=re.escape(message)):
        ranker.fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"eta": 0.5}, "'eta', which is the ranker's own parameter learning_rate"),
        ({"base_score": 2.0}, "gives scores that are not sums of leaves"),
        ({"booster": "dart"}, "trees are read from XGBoost's booster 'gbtree', got 'dart'"),
        ({"booster": "gblinear"}, "trees are read from XGBoost's booster 'gbtree', got 'gblinear'"),
    ],
)
def test_parameters_of_xgboost_that_would_not_be_kept(lists, params, message):
    pytest.importorskip("xgboost", reason="xgboost is not installed")
    X, y, groups = lists
    ranker = BoostedRanker(n_estimators=5, library="xgboost", library_params=params)
    with pytest.raises(InputError, match=re.escape(message)):
        ranker.fit(X, y, groups=groups)


@with_lightgbm
@pytest.mark.parametrize("in_a_list", [False, True])
def test_held_out_queries_need_their_groups(lists, in_a_list):
    X, y, groups = lists
    held = [(X, y, groups)] if in_a_list else (X, y)
    with pytest.raises(InputError, match=r"`eval_set` must be one tuple \(X, y, groups\), as fit has groups"):
        BoostedRanker(n_estimators=5).fit(X, y, groups=groups, eval_set=held)
