import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from apexrank.errors import InputError, MissingExtraError
from apexrank.rankers import trees
from apexrank.rankers.logistic import LogisticRanker
from apexrank.rankers.trees import TreeRanker


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
            models.append(self.decision_function)
            return fit(self, *given, **named)

        monkeypatch.setattr(HistGradientBoostingClassifier, "fit", recorded)
        return models
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    train = lightgbm.train

    def trained(*given):
        booster = train(*given)
        models.append(lambda X, **early: booster.predict(X, raw_score=True, **early))
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


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_library_on_one_column_a_level(library, seed, missing):
    frame, y = typed(seed, 300 + 40 * seed, missing)
    ranker = TreeRanker(leaves=8, rounds=20).fit(frame[::2], y[::2])
    expected = library[-1](one_hot(frame, ranker.levels_))  # rows of the test have missing values, too
    np.testing.assert_allclose(ranker.decision_function(frame), expected, rtol=1e-12)
    np.testing.assert_array_equal(
        ranker.decision_function(pl.from_pandas(frame)), ranker.decision_function(frame)
    )
    train = frame[::2]
    rest = ranker.contributions(train).sum(axis=1) - ranker.decision_function(train)
    np.testing.assert_allclose(rest, -ranker.decision_function(train).mean(), atol=1e-9)
    ranker.forest_.check(4)


def test_a_push_grows_the_trees_of_its_objective(rows, library):
    from apexrank.integrations.boosting import PushObjective

    X, y = rows
    if trees.find_spec("lightgbm") is None:
        with pytest.raises(MissingExtraError, match="LightGBM"):
            TreeRanker(p=4).fit(X, y)
        return
    lightgbm = pytest.importorskip("lightgbm")
    ranker = TreeRanker(p=4, leaves=8, rounds=30).fit(X, y)
    options = {"num_leaves": 8, "min_data_in_leaf": 20, "deterministic": True, "force_row_wise": True}
    options |= {"objective": PushObjective(4), "num_threads": 1, "verbosity": -1}
    lightgbm.train(options, lightgbm.Dataset(X, y.astype(float)), 30)
    scores = ranker.staged(X, [7, 30])
    np.testing.assert_allclose(scores, [library[-1](X, num_iteration=7), library[-1](X)], rtol=1e-12)


def test_missing_numbers_go_with_the_majority_if_training_had_none(library):
    x = np.arange(100.0)[:, None]
    for y, majority in ((x.ravel() >= 60, 0.0), (x.ravel() >= 40, 99.0)):
        ranker = TreeRanker(leaves=2, rounds=5).fit(x, y)
        missing, expected = ranker.decision_function([[np.nan], [majority]])
        assert missing == expected


def test_texts_that_training_did_not_have_equal_no_level(library):
    frame, y = typed(0, 400, 0.0)
    ranker = TreeRanker(leaves=2, rounds=1).fit(frame[["city"]], y)
    split = ranker.levels_[0][int(ranker.forest_.low[0])]
    other = next(city for city in ranker.levels_[0] if city != split)
    scores = ranker.decision_function(pd.DataFrame({"city": ["elsewhere", None, other, split]}))
    assert scores[0] == scores[1] == scores[2] != scores[3]


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
    np.testing.assert_allclose(parts.sum(axis=1) - scores, -scores.mean(), atol=1e-9)
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
