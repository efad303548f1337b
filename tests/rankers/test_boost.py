import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from apexrank import InputError, PushBoost, datasets, metrics
from apexrank.rankers.base import p_classification_intercept
from tests.oracles import push_objective


class Spy(DecisionTreeClassifier):
    """Stump that records its weights."""

    def __init__(self, *, max_depth=1, random_state=None):
        super().__init__(max_depth=max_depth, random_state=random_state)

    def fit(self, X, y, sample_weight=None):
        self.weights_ = sample_weight
        return super().fit(X, y, sample_weight=sample_weight)


class Votes(ClassifierMixin, BaseEstimator):
    """Classifier with ``predict`` only: the sign of one column."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        pull = (sample_weight * np.where(y == 1, 1, -1)) @ np.sign(X - X.mean(axis=0))
        self.column_, self.sign_ = np.abs(pull).argmax(), np.sign(pull[np.abs(pull).argmax()])
        self.mean_ = X.mean(axis=0)
        return self

    def predict(self, X):
        return (self.sign_ * (X - self.mean_)[:, self.column_] > 0).astype(int)


@pytest.fixture(scope="module")
def wdbc():
    """Odd rows to fit, even rows to test; two noisy features."""
    X, y = load_breast_cancer(return_X_y=True)
    return X[1::2, [1, 4]], y[1::2], X[::2, [1, 4]], y[::2]


def papers_pair_weights(scores, positive, p):
    """``d̃_ik`` of JMLR 2009, Fig. 2, from all pairs."""
    d = np.exp(-(scores[positive][:, None] - scores[~positive][None, :]))
    return (d / d.sum()) * (d / d.sum()).sum(axis=0) ** (p - 1)


@pytest.mark.parametrize("p", [1, 4, 16])
def test_weights_are_the_papers_pair_weights_summed(wdbc, p):
    X, y = wdbc[:2]
    booster = PushBoost(Spy(), p, n_estimators=6, random_state=0).fit(X, y)
    before = [np.zeros(len(y)), *booster.staged_decision_function(X)]
    for weak, scores in zip(booster.estimators_, before, strict=False):
        d = papers_pair_weights(scores, y == 1, p)
        expected = np.empty(len(y))
        expected[y == 1], expected[y == 0] = d.sum(axis=1), d.sum(axis=0)
        np.testing.assert_allclose(weak.weights_ / weak.weights_.sum(), expected / expected.sum(), atol=1e-10)
    assert booster.estimators_[0].weights_.sum() == pytest.approx(len(y))


@pytest.mark.parametrize("p", [1, 4])
def test_one_binary_feature_takes_the_closed_form_step(p):
    x = np.repeat([1.0, 0.0, 1.0, 0.0], [30, 10, 15, 45])
    y = np.repeat([1, 1, 0, 0], [30, 10, 15, 45])
    booster = PushBoost(p=p).fit(x[:, None], y)
    # 30·45 pairs in the correct and 10·15 in the wrong order
    rise = np.log(30 * 45 / (10 * 15)) / (p + 1)
    above, below = booster.decision_function([[1.0], [0.0]])
    assert above - below == pytest.approx(rise, rel=1e-8)
    assert booster.n_iter_ == 1
    assert booster.stop_reason_ == "no edge"


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("p", [1, 8])
def test_every_round_lowers_the_push(wdbc, p, depth):
    X, y = wdbc[:2]
    tree = DecisionTreeClassifier(max_depth=depth)
    booster = PushBoost(tree, p, n_estimators=30, random_state=0).fit(X, y)
    assert (np.diff(booster.train_objective_) < 0).all()
    for value, scores in zip(booster.train_objective_[1:], booster.staged_decision_function(X), strict=True):
        assert value == pytest.approx(push_objective(scores, y == 1, p=p), rel=1e-9)


def test_steps_are_exact(wdbc):
    X, y = wdbc[:2]
    booster = PushBoost(p=4, n_estimators=2, random_state=0).fit(X, y)
    before, after = booster.staged_decision_function(X)
    along = [push_objective(before + a * (after - before), y == 1, p=4) for a in (0.99, 1.0, 1.01)]
    assert along[1] < min(along[0], along[2])
    short = PushBoost(p=4, n_estimators=1, learning_rate=0.25, random_state=0).fit(X, y)
    assert short.estimator_weights_[0] == pytest.approx(booster.estimator_weights_[0] / 4)


@pytest.mark.parametrize(
    "weak",
    [LogisticRegression(), GaussianNB(), Votes(), DecisionTreeRegressor(max_depth=2), Ridge()],
    ids=lambda weak: type(weak).__name__,
)
def test_any_weak_learner(wdbc, weak):
    X, y, test, y_test = wdbc
    booster = PushBoost(weak, n_estimators=5, random_state=0).fit(X, y)
    assert (np.diff(booster.train_objective_) < 0).all()
    assert booster.train_objective_[-1] == pytest.approx(
        push_objective(booster.decision_function(X), y == 1, p=4), rel=1e-9
    )
    assert metrics.auc(y_test, booster.decision_function(test)) > 0.7


def test_a_learner_without_weights_is_refused(wdbc):
    with pytest.raises(InputError, match=r"KNeighborsClassifier.fit takes no `sample_weight`"):
        PushBoost(KNeighborsClassifier()).fit(*wdbc[:2])


@pytest.mark.parametrize(
    "options",
    [
        {"price": "log1p", "side": "bottom"},
        {"side": "bottom", "p": 3},
        {"side": "both", "p": 2},
        {"price": "identity"},
        {"loss": "hinge", "p": 2},
        {"loss": "logistic", "p": 2},
    ],
    ids=str,
)
def test_the_whole_family(wdbc, options):
    X, y = wdbc[:2]
    booster = PushBoost(n_estimators=8, random_state=0, **options).fit(X, y)
    assert (np.diff(booster.train_objective_) < 0).all()
    assert booster.n_iter_ > 4
    expected = push_objective(booster.decision_function(X), y == 1, **options)
    assert booster.train_objective_[-1] == pytest.approx(expected, rel=1e-9)
    assert np.mean(booster.predict(X) == y) > 0.7


def test_stages(wdbc):
    X, y, test, _ = wdbc
    booster = PushBoost(n_estimators=12, random_state=3).fit(X, y)
    stages = list(booster.staged_decision_function(test))
    assert len(stages) == booster.n_iter_ == len(booster.estimators_) == 12
    np.testing.assert_allclose(stages[-1], booster.decision_function(test))
    fewer = PushBoost(n_estimators=5, random_state=3).fit(X, y)
    shift = booster.intercept_ - fewer.intercept_
    np.testing.assert_allclose(stages[4] - shift, fewer.decision_function(test), atol=1e-12)


def test_early_stopping_keeps_the_best_round(wdbc):
    X, y, test, y_test = wdbc
    booster = PushBoost(p=2, n_estimators=200, n_iter_no_change=15, scoring="auc", random_state=0)
    booster.fit(X, y, eval_set=(test, y_test))
    assert booster.stop_reason_ == "validation"
    assert booster.n_iter_ == 1 + booster.validation_scores_[1:].argmax()
    assert len(booster.validation_scores_) == len(booster.train_objective_) == booster.n_iter_ + 15 + 1
    best = metrics.auc(y_test, booster.decision_function(test))
    # sums of stumps come close to ties, which the intercept may merge
    assert best == pytest.approx(booster.validation_scores_[booster.n_iter_], abs=1e-3)
    every = PushBoost(p=2, n_estimators=booster.n_iter_ + 15, random_state=0).fit(X, y)
    staged = [metrics.auc(y_test, scores) for scores in every.staged_decision_function(test)]
    np.testing.assert_allclose(booster.validation_scores_[1:], staged, atol=1e-3)
    assert booster.intercept_ == pytest.approx(
        p_classification_intercept(booster.decision_function(X) - booster.intercept_, y == 1, None, 2)
    )


def test_a_share_of_the_rows_is_held_out(wdbc):
    X, y = wdbc[:2]
    booster = PushBoost(Spy(), n_estimators=30, validation_fraction=0.25, random_state=0).fit(X, y)
    assert len(booster.estimators_[0].weights_) == len(y) - round(0.25 * len(y))
    assert np.isfinite(booster.validation_scores_).all()
    with pytest.raises(InputError, match="not both"):
        booster.fit(X, y, eval_set=(X, y))
    with pytest.raises(InputError, match="labels that y does not have"):
        PushBoost().fit(X, y, eval_set=(X, y + 1))


def test_whole_groups_are_held_out(wdbc):
    X, y = wdbc[:2]
    groups, seen = np.arange(len(y)) // 15, []

    def scoring(estimator, X, y, groups):
        seen.append(groups)
        return metrics.auc(y, estimator.decision_function(X), groups=groups)

    PushBoost(n_estimators=3, validation_fraction=0.3, scoring=scoring, random_state=0).fit(
        X, y, groups=groups
    )
    held_out, counts = np.unique(seen[0], return_counts=True)
    assert 0 < len(held_out) < len(np.unique(groups))
    np.testing.assert_array_equal(counts, np.bincount(groups)[held_out])


def test_groups_are_ranked_inside_themselves(wdbc):
    X, y = wdbc[:2]
    groups = np.arange(len(y)) % 5
    booster = PushBoost(n_estimators=10, random_state=0).fit(X, y, groups=groups)
    scores = booster.decision_function(X)
    assert booster.train_objective_[-1] == pytest.approx(
        push_objective(scores, y == 1, groups, p=4), rel=1e-9
    )
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = clone(booster).set_fit_request(groups=True)
        scorer = metrics.get_scorer("auc").set_score_request(groups=True)
        aucs = cross_val_score(ranker, X, y, cv=GroupKFold(3), scoring=scorer, params={"groups": groups})
    assert aucs.min() > 0.6


def test_a_weak_ranker_that_separates_is_the_last():
    X, y = load_breast_cancer(return_X_y=True)
    booster = PushBoost(DecisionTreeClassifier(), random_state=0).fit(X, y)
    assert booster.stop_reason_ == "separated"
    assert booster.n_iter_ == 1
    assert metrics.r_max(y, booster.decision_function(X)) == 0
    np.testing.assert_array_equal(booster.predict(X), y)


def test_a_loss_that_reaches_zero_ends_the_rounds():
    X, y = np.arange(8.0)[:, None], np.array([0, 0, 1, 1, 0, 0, 1, 1])
    booster = PushBoost(loss="hinge", p=2, random_state=0).fit(X, y)
    assert booster.stop_reason_ in ("separated", "no edge")
    assert metrics.r_max(y, booster.decision_function(X)) == 0
    assert booster.n_iter_ < 100


@pytest.mark.parametrize("p", [1, 16])
def test_a_leaf_of_one_class_does_not_run_away(p):
    # a quarter of the positives stands alone: no pair speaks against lifting it for ever
    x, y = np.repeat([1.0, 0.0, 0.0], [10, 30, 40]), np.repeat([1, 1, 0], [10, 30, 40])
    booster = PushBoost(p=p, n_estimators=1).fit(x[:, None], y)
    above, below = booster.decision_function([[1.0], [0.0]])
    assert above - below == pytest.approx(np.log(1 + 2 * 80) / (p + 1))
    once = PushBoost(p=p, n_estimators=1).fit([[1.0], [0.0], [0.0]], [1, 1, 0], sample_weight=[10, 30, 40])
    assert np.ptp(once.decision_function([[1.0], [0.0]])) == pytest.approx(above - below)


def test_separated_sums_go_on():
    X, y = load_breast_cancer(return_X_y=True)
    booster = PushBoost(DecisionTreeClassifier(max_depth=3), n_estimators=60, random_state=0).fit(X, y)
    separated = [metrics.r_max(y, scores) == 0 for scores in booster.staged_decision_function(X)]
    assert separated.index(True) < 50
    assert booster.stop_reason_ == "n_estimators"
    assert (np.diff(booster.train_objective_) < 0).all()


def test_nothing_to_learn():
    booster = PushBoost().fit(np.ones((6, 1)), [0, 1, 0, 1, 0, 1])
    assert booster.stop_reason_ == "no edge"
    assert booster.n_iter_ == 0
    assert np.ptp(booster.decision_function([[0.0], [1.0]])) == 0
    assert list(booster.staged_decision_function([[0.0]])) == []


def test_depth_3_trees_learn_what_stumps_cannot():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 3))
    y = X[:, 0] * X[:, 1] > 0
    stumps, trees = (
        PushBoost(DecisionTreeClassifier(max_depth=depth), n_estimators=30, random_state=0)
        for depth in (1, 3)
    )
    stumps, trees = (
        metrics.auc(y[300:], b.fit(X[:300], y[:300]).decision_function(X[300:])) for b in (stumps, trees)
    )
    assert stumps < 0.65
    assert trees > 0.9


def test_feature_importances(wdbc):
    X, y = wdbc[:2]
    noise = np.random.default_rng(0).normal(size=len(y))
    booster = PushBoost(n_estimators=10, random_state=0).fit(np.column_stack([X, noise]), y)
    importances = booster.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances.argmin() == 2
    assert not hasattr(PushBoost(LogisticRegression(), n_estimators=2).fit(X, y), "feature_importances_")


def test_frames_sparse_pickle_and_verbose(wdbc, capsys):
    X, y, test, _ = wdbc
    booster = PushBoost(n_estimators=5, random_state=0, verbose=1).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert "objective" in lines[0]
    assert booster.feature_names_in_.tolist() == ["a", "b"]
    plain = PushBoost(n_estimators=5, random_state=0).fit(X, y)
    thin = PushBoost(n_estimators=5, random_state=0).fit(sparse.csr_array(X), y)
    expected = plain.decision_function(test)
    np.testing.assert_allclose(thin.decision_function(sparse.csc_matrix(test)), expected)
    np.testing.assert_allclose(booster.decision_function(pd.DataFrame(test, columns=["a", "b"])), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(plain)).decision_function(test), expected)


def test_a_push_clears_the_top_with_a_linear_weak_learner():
    X, y = datasets.make_push_example(4000, return_X_y=True)
    weak = LogisticRegression(C=1e-3)
    top = [
        metrics.precision_at(
            y[2000:],
            PushBoost(weak, p, n_estimators=60).fit(X[:2000], y[:2000]).decision_function(X[2000:]),
            k=50,
        )
        for p in (1, 16)
    ]
    assert top[1] > top[0] + 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"n_iter_no_change": 0}, "n_iter_no_change"),
        ({"p": np.inf}, "'p'"),
        ({"validation_fraction": 0.5, "scoring": "best"}, "unknown scorer"),
    ],
)
def test_bad_parameters(wdbc, options, message):
    with pytest.raises(ValueError, match=message):
        PushBoost(**options).fit(*wdbc[:2])
