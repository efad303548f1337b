from itertools import islice

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from apexrank.errors import InputError
from apexrank.metrics import auc
from apexrank.rankers import trees
from apexrank.rankers.logistic import LogisticRanker
from apexrank.rankers.trees import TreeRanker
from tests.metamorphic.threads import with_threads


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=400) > 1


def typed(seed, n, missing):
    """Numbers and texts, and a rule that depends on both."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n).round(1), "b": rng.normal(size=n)})
    frame["city"] = rng.choice([*"uvwxyz"], n, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    frame["kind"] = pd.Categorical(rng.choice(["old", "new"], n))
    y = (
        frame["a"] + 2 * frame["city"].isin(["v", "x"]) - (frame["kind"] == "new") + 0.3 * rng.normal(size=n)
        > 1
    )
    return frame.mask(rng.random(frame.shape) < missing), y.to_numpy()


@pytest.fixture(params=["lightgbm", "scikit-learn"])
def library(request, monkeypatch):
    """Train with one of the libraries; its models are recorded as functions that score an expanded matrix."""
    models = []
    if request.param == "scikit-learn":
        monkeypatch.setattr(trees, "find_spec", lambda name: None)
        fit = HistGradientBoostingClassifier.fit

        def recorded(self, *given, **named):
            fit(self, *given, **named)
            best = max(1, int(np.argmax(self.validation_score_))) - 1
            models.append(lambda X: next(islice(self.staged_decision_function(X), best, None)))
            return self

        monkeypatch.setattr(HistGradientBoostingClassifier, "fit", recorded)
        return models
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    train = lightgbm.train

    def trained(*given, **named):
        booster = train(*given, **named)
        models.append(lambda X: booster.predict(X, raw_score=True))
        return booster

    monkeypatch.setattr(lightgbm, "train", trained)
    return models


def one_hot(frame, levels):
    """Numbers as they are, an indicator for each level, and one of rows with a level."""
    columns = [
        [*(column == level for level in levels[j]), *([column.notna()] if column.isna().any() else [])]
        if j in levels
        else [column]
        for j, (_, column) in enumerate(frame.items())
    ]
    return np.column_stack([np.asarray(part, dtype=float) for parts in columns for part in parts])


def folds_of(X, y, number=5):
    """Sorted rows, and their folds: the oracle of those of a bag."""
    order = np.lexsort([y, *X.T[::-1]])
    split = StratifiedKFold(number, shuffle=True, random_state=0)
    return order, [*split.split(X, y[order])]


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_the_mean_of_the_library_on_one_column_a_level(library, seed, missing):
    frame, y = typed(seed, 300 + 40 * seed, missing)
    train = frame[::2]
    ranker = TreeRanker(leaves=8, rounds=60).fit(train, y[::2])
    matrix = one_hot(frame, ranker.levels_)  # rows of the test have missing values, too
    expected = np.mean([model(matrix) for model in library], axis=0)
    assert len(library) == 5
    np.testing.assert_allclose(ranker.decision_function(frame), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(
        ranker.decision_function(pl.from_pandas(frame)), ranker.decision_function(frame)
    )
    rest = ranker.contributions(train).sum(axis=1) - ranker.decision_function(train)
    assert np.ptp(rest) < 1e-12
    ranker.forest_.check(4)


@pytest.mark.parametrize("extra", [False, True])
def test_the_bag_is_lightgbms_models_stopped_on_the_fold_that_they_have_not_seen(rows, extra):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = rows
    options = {"objective": "binary", "num_leaves": 16, "learning_rate": 0.03, "min_data_in_leaf": 10}
    options |= {"bagging_fraction": 0.8, "bagging_freq": 1, "feature_fraction": 0.8, "lambda_l2": 1}
    options |= {"deterministic": True, "force_row_wise": True, "num_threads": 1, "verbosity": -1}
    options |= {"extra_trees": extra, "seed": 0}
    order, folds = folds_of(X, y)
    expected, models = np.empty(len(y)), []
    for known, held in folds:
        data = lightgbm.Dataset(X[order[known]], y[order[known]].astype(float))
        other = data.create_valid(X[order[held]], y[order[held]].astype(float))
        stop = lightgbm.early_stopping(50, verbose=False)
        models.append(lightgbm.train(options, data, 2000, valid_sets=[other], callbacks=[stop]))
        expected[order[held]] = models[-1].predict(X[order[held]], raw_score=True)
    ranker = TreeRanker(extra=extra).fit(X, y)
    assert len(ranker.forest_.roots) == sum(model.best_iteration for model in models)
    np.testing.assert_allclose(ranker.oof_scores_, expected, rtol=1e-12)
    scores = np.mean([model.predict(X, raw_score=True) for model in models], axis=0)
    np.testing.assert_allclose(ranker.decision_function(X), scores, rtol=1e-12)


def test_out_of_fold_scores_are_those_of_unseen_rows(rows, library):
    X, y = rows
    noise = np.random.default_rng(1).random(len(y)) < 0.5
    ranker = TreeRanker().fit(X, noise)
    assert 0.4 < auc(noise, ranker.oof_scores_) < 0.6 < auc(noise, ranker.decision_function(X))
    assert auc(y, TreeRanker().fit(X, y).oof_scores_) > 0.8


def test_the_bag_does_not_depend_on_the_order_of_the_rows_or_the_number_of_threads(rows, library):
    X, y = rows
    order = np.random.default_rng(0).permutation(len(y))
    ranker, other = (TreeRanker(rounds=40) for _ in range(2))
    ranker.fit(X, y)
    with with_threads(2):
        other.fit(X[order], y[order])
    np.testing.assert_array_equal(ranker.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(ranker.oof_scores_[order], other.oof_scores_)


def test_rare_classes_have_fewer_folds(rows, library):
    X, _ = rows
    y = np.arange(len(X)) < 3
    ranker = TreeRanker().fit(X, y)
    assert len(library) == 3
    assert np.isfinite(ranker.oof_scores_).all()
    with pytest.raises(InputError, match="2 rows of each class"):
        TreeRanker().fit(X, np.arange(len(X)) < 1)
    with pytest.raises(InputError, match="2 rows of each class"):
        TreeRanker().fit(X, y, sample_weight=np.arange(len(X)) >= 2)


def test_missing_numbers_go_with_the_majority_if_training_had_none(library):
    x = np.arange(100.0)[:, None]
    for y, majority in ((x.ravel() >= 60, 0.0), (x.ravel() >= 40, 99.0)):
        ranker = TreeRanker(leaves=2, rounds=5).fit(x, y)
        missing, expected = ranker.decision_function([[np.nan], [majority]])
        assert missing == expected


def test_texts_that_training_did_not_have_equal_no_level(library):
    frame, y = typed(0, 400, 0.0)
    ranker = TreeRanker(leaves=2, rounds=1).fit(frame[["city"]], y)
    split = {ranker.levels_[0][int(code)] for code in ranker.forest_.low[ranker.forest_.left >= 0]}
    other = next(city for city in ranker.levels_[0] if city not in split)
    scores = ranker.decision_function(pd.DataFrame({"city": ["elsewhere", None, other, *split]}))
    assert scores[0] == scores[1] == scores[2]
    assert scores[0] not in scores[3:]


@pytest.mark.parametrize("text", [False, True])
def test_a_column_without_values_is_not_split(library, text):
    _, y = typed(0, 100, 0.0)
    frame = pd.DataFrame({"empty": np.full(100, None if text else np.nan)})
    assert np.ptp(TreeRanker(rounds=3).fit(frame, y).decision_function(frame)) == 0


def test_weights_are_repetitions_of_levels_and_missing_values(library):
    frame, y = typed(1, 300, 0.1)
    weight = np.random.default_rng(2).integers(0, 3, 300)
    frame["city"] = frame["city"].mask(weight == 0, "only here")
    weighted = TreeRanker(rounds=10).fit(frame, y, sample_weight=weight)
    taken = np.repeat(np.arange(300), weight)
    repeated = TreeRanker(rounds=10).fit(frame.iloc[taken], y[taken])
    assert weighted.levels_ == repeated.levels_
    np.testing.assert_array_equal(weighted.decision_function(frame), repeated.decision_function(frame))
    np.testing.assert_array_equal(weighted.oof_scores_[taken], repeated.oof_scores_)
    unseen = weight == 0
    np.testing.assert_array_equal(weighted.oof_scores_[unseen], weighted.decision_function(frame[unseen]))


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("left", 0, 0),  # a node that leads to itself would never end
        ("left", 0, 10_000),
        ("right", 0, -1),
        ("right", 0, 5),  # a child of another node
        ("feature", 0, 2),
        ("feature", 0, -1),
        ("roots", 1, -1),
        ("roots", 1, 1),
        ("high", 0, np.nan),
        ("value", -1, np.inf),
    ],
)
def test_trees_that_do_not_end_in_leaves_are_refused(rows, name, place, value):
    X, y = rows
    forest = TreeRanker(rounds=3, leaves=4).fit(X[:, :2], y).forest_
    forest.check(2)
    array = getattr(forest, name).copy()
    array[place] = value
    with pytest.raises(InputError, match=f"`{name}`"):
        forest._replace(**{name: array}).check(2)


@pytest.mark.parametrize("name", ["feature", "low", "mean", "base"])
def test_trees_with_arrays_of_other_types_or_lengths_are_refused(rows, name):
    X, y = rows
    forest = TreeRanker(rounds=3).fit(X, y).forest_
    array = np.ravel(getattr(forest, name))
    for other in (array[1:], array.astype(complex), array[None], array.tolist(), "text"):
        with pytest.raises(InputError, match=f"`{name}`"):
            forest._replace(**{name: other}).check(4)


def test_contributions_add_up_to_the_score_and_vanish_on_average(rows):
    X, y = rows
    ranker = TreeRanker(rounds=20).fit(X, y)
    parts, scores = ranker.contributions(X), ranker.decision_function(X)
    assert np.ptp(parts.sum(axis=1) - scores) < 1e-12
    np.testing.assert_allclose(parts.sum(axis=1).mean(), 0, atol=0.05 * scores.std())
    size = np.abs(parts).mean(axis=0)
    assert size[:2].min() > 3 * size[2:].max()


def test_logistic_ranker_is_scikit_learns(rows):
    X, y = rows
    ranker = LogisticRanker(alpha=0.01).fit(X, y)
    model = LogisticRegression(C=1 / (0.01 * 400), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ranker.coef_, model.coef_, rtol=1e-4)
    assert ranker.converged_
    assert ranker.grad_norm_ < 1e-7


def test_weights_of_the_logistic_ranker_are_repetitions(rows):
    X, y = rows
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = LogisticRanker(alpha=0.1).fit(X, y, sample_weight=weight)
    again = LogisticRanker(alpha=0.1).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, again.coef_, rtol=1e-6)


def test_no_penalty_is_refused(rows):
    with pytest.raises(ValueError, match="alpha"):
        LogisticRanker(alpha=0).fit(*rows)


def test_copies_of_a_row_share_a_fold_so_that_noise_is_not_learned(library):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.random(100) < 0.5
    ranker = TreeRanker().fit(X, y, sample_weight=np.full(100, 8))
    assert auc(y, ranker.oof_scores_) < 0.7
    assert len(ranker.forest_.roots) < 5 * 100


def test_a_column_of_two_values_is_learned(library):
    x, y = np.arange(80) % 2, np.arange(80) % 2
    assert auc(y, TreeRanker().fit(x[:, None], y).decision_function(x[:, None])) == 1
    y = y ^ (np.arange(80) < 20)
    assert auc(y, TreeRanker().fit(x[:, None], y).oof_scores_) > 0.6
