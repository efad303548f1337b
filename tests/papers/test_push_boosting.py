"""AdaBoost as a ranker, and the effect of p by model capacity."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

import apexrank_papers as papers
from apexrank import PNormPush
from apexrank_papers.push import boosting
from apexrank_papers.push.boosting import AdaBoostLoss, boosting_path, f_skew
from tests.oracles import numerical_gradient, push_objective


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    X = rng.random((80, 3))
    return X, X @ [1.0, 0.5, -1.0] + 0.5 * rng.normal(size=80) > 0.6


def test_adaboost_loss_and_its_gradient(small):
    _, positive = small
    scores = np.random.default_rng(1).normal(size=80)
    value, slope = AdaBoostLoss(positive).value_and_grad(scores)
    assert np.exp(value) == pytest.approx(np.exp(-scores[positive]).sum() + np.exp(scores[~positive]).sum())
    numeric = numerical_gradient(lambda s: AdaBoostLoss(positive).value_and_grad(s)[0], scores)
    np.testing.assert_allclose(slope, numeric, atol=1e-9)


def test_the_constant_makes_the_f_skew_vanish_and_ranks_as_rankboost_does(small):
    X, positive = small
    with_constant = np.column_stack([X, np.ones(len(X))])
    [(_, scores)] = boosting_path(with_constant, AdaBoostLoss(positive), [800])
    minimum = PNormPush(p=1, alpha=0).fit(X, positive).decision_function(X)
    assert abs(f_skew(positive, scores)[1]) < 1e-6
    assert push_objective(scores, positive) == pytest.approx(push_objective(minimum, positive), abs=1e-9)
    [(_, without)] = boosting_path(X, AdaBoostLoss(positive), [800])
    assert abs(f_skew(positive, without)[1]) > 1e-3
    assert push_objective(without, positive) > push_objective(minimum, positive) + 1e-3


def test_the_path_ends_at_adaboosts_minimum(small):
    X, positive = small
    sign = np.where(positive, 1, -1)
    expected = minimize(lambda w: np.exp(-sign * (X @ w)).sum(), np.zeros(3), tol=1e-12)
    (_, early), (rounds, late) = boosting_path(X, AdaBoostLoss(positive), [3, 800])
    assert rounds == 800
    np.testing.assert_allclose(late, X @ expected.x, atol=1e-4)
    assert np.exp(-sign * early).sum() > np.exp(-sign * late).sum()


def test_adaboost_ranker():
    result = papers.run("adaboost-ranker", rounds=500)
    words = {verdict.row: verdict.word for verdict in result.verdicts}
    assert len(words) == 12
    for claim in ("F-skew", "objective", "AUC"):
        assert words[f"pima: {claim}"] == "agrees"
    assert {words[f"{name}: without the constant"] for name in boosting.weak_rankers()} == {"yes"}
    assert (result.table["excess"] > -1e-12).all()
    assert result.table["round"].max() == 500
    assert len(result.figure.axes) == 9
    assert result.view.height == 9


def test_adaboost_ranker_says_so_when_it_has_not_converged():
    words = [verdict.word for verdict in papers.run("adaboost-ranker", rounds=5).verdicts]
    assert "differs" in words


def test_capacity(monkeypatch):
    short = partial(boosting._trees, depth=1, rounds=3)
    for unused in ("stumps", boosting.FULL):
        monkeypatch.setitem(boosting.MODELS, unused, boosting.Model(short))
    result = papers.run("capacity", n_splits=2)
    assert result.table.height == 12
    left = {row["model"]: row for row in result.table.filter(measure="left").to_dicts()}
    assert left["linear"]["change"] > 0.03
    assert abs(left["depth-3 trees"]["change"]) < left["linear"]["change"]
    assert left["depth-3 trees"]["p=1"] > left["linear"]["p=16"]
    assert [verdict.row for verdict in result.verdicts] == ["linear left", "depth-3 trees left"]


@pytest.mark.parametrize(
    ("linear", "trees", "words"),
    [
        (0.08, 0.0, ["agrees", "agrees"]),
        (0.08, -0.02, ["agrees", "agrees"]),
        (0.08, 0.04, ["agrees", "within noise"]),
        (0.08, -0.09, ["agrees", "differs"]),
        (-0.08, 0.0, ["differs", "differs"]),
    ],
)
def test_capacity_verdicts_follow_the_changes(linear, trees, words):
    values = np.zeros((6, len(boosting.MODELS), 2, len(boosting.MEASURES)))
    wobble = np.array([-1, 1, -0.5, 0.5, -0.2, 0.2]) * 0.005
    values[:, 0, 1, 0] = linear + wobble
    values[:, 2, 1, 0] = trees + wobble
    changes = {
        (model, "left"): boosting.mean_over_splits(values[:, m, 1, 0] - values[:, m, 0, 0])
        for m, model in enumerate(boosting.MODELS)
    }
    assert [verdict.word for verdict in boosting._capacity_verdicts(values, changes)] == words
