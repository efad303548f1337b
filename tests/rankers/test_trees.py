import numpy as np
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


@pytest.mark.parametrize("p", [None, 4.0])
def test_scores_are_those_of_lightgbm(rows, p):
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    from apexrank.integrations.boosting import PushObjective

    X, y = rows
    ranker = TreeRanker(p=p, leaves=8, rounds=30).fit(X, y)
    options = {"num_leaves": 8, "learning_rate": 0.1, "min_data_in_leaf": 20, "deterministic": True}
    options |= {
        "objective": "binary" if p is None else PushObjective(p),
        "force_row_wise": True,
        "num_threads": 1,
    }
    data = lightgbm.Dataset(X, y.astype(float))
    booster = lightgbm.train(options | {"verbosity": -1}, data, 30)
    np.testing.assert_allclose(ranker.decision_function(X), booster.predict(X, raw_score=True), rtol=1e-12)
    early = booster.predict(X, raw_score=True, num_iteration=7)
    np.testing.assert_allclose(ranker.staged(X, [7, 30])[0], early, rtol=1e-12)


def test_scores_are_those_of_scikit_learn_where_lightgbm_is_missing(rows, monkeypatch):
    monkeypatch.setattr(trees, "find_spec", lambda name: None)
    X, y = rows
    ranker = TreeRanker(leaves=8, rounds=30).fit(X, y)
    model = HistGradientBoostingClassifier(
        max_iter=30, max_leaf_nodes=8, min_samples_leaf=20, early_stopping=False, random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(ranker.decision_function(X), model.decision_function(X), rtol=1e-12)
    with pytest.raises(MissingExtraError, match="LightGBM"):
        TreeRanker(p=4).fit(X, y)


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
    with pytest.raises(InputError, match="alpha"):
        LogisticRanker(alpha=0).fit(*rows)


@pytest.mark.parametrize("kind", [LogisticRanker, TreeRanker])
def test_the_class_on_top_can_be_named(rows, kind):
    X, y = rows
    named = np.where(y, "alarm", "quiet")
    ranker = kind(pos_label="alarm").fit(X, named)
    np.testing.assert_allclose(ranker.decision_function(X), kind().fit(X, y).decision_function(X))
    assert (ranker.predict(X) == "alarm").sum() == kind().fit(X, y).predict(X).sum()
