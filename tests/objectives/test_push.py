import json
from pathlib import Path

import numpy as np
import pytest

from apexrank.errors import InputError
from apexrank.objectives import Push
from apexrank.objectives.base import log_form, plain_form, root_form
from apexrank.prices import Custom, Power
from tests.oracles import numerical_gradient, push_objective

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "push.json").read_text())
REGISTRY = [
    ("exponential", "log1p", 1),
    *(
        (loss, price, p)
        for loss in ("exponential", "logistic", "hinge", "squared_hinge")
        for price, p in (
            ("power", 1),
            ("power", 2),
            ("power", 4.5),
            ("power", 64),
            ("identity", 1),
            ("exponential", 1),
        )
    ),
]


def make(price, p, positive, **options):
    return Push(positive, price=Power(p) if price == "power" else price, **options)


def random_case(seed, n=23):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    positive[:2] = True, False
    return rng.normal(size=n), positive, rng


@pytest.mark.parametrize(
    "side", ["both", *(pytest.param(side, marks=pytest.mark.slow) for side in ("top", "bottom"))]
)
@pytest.mark.parametrize(("loss", "price", "p"), REGISTRY)
def test_against_the_sum_over_pairs_and_finite_differences(loss, price, p, side):
    scores, positive, rng = random_case(3)
    weight, groups = rng.integers(0, 4, len(scores)) / 2, rng.integers(0, 3, len(scores))
    for options in ({}, {"weight": weight}, {"groups": groups}, {"weight": weight, "groups": groups}):
        keywords = {"sample_weight": options.get("weight"), "groups": options.get("groups")}
        objective = make(price, p, positive, loss=loss, side=side, balance=0.7, **keywords)
        value, gradient = objective.value_and_grad(scores)

        def oracle(s, options=options):
            return push_objective(s, positive, loss=loss, price=price, p=p, side=side, balance=0.7, **options)

        assert value == pytest.approx(oracle(scores), rel=1e-12, abs=1e-12)
        # hinge: the scores are nowhere near a kink, and a small step stays away from it
        step = 1e-6 if loss == "hinge" else 1e-3 / max(p, 1)
        numeric = numerical_gradient(oracle, scores, step)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-8 * np.abs(numeric).max())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['loss']}-{v['price']}-{v['p']}-{v['side']}")
def test_conformance_vectors(vector):
    f, g = np.array(vector["pos"]), np.array(vector["neg"])
    scores, positive = np.concatenate([f, g]), np.arange(len(f) + len(g)) < len(f)
    p = vector["p"] or 1
    objective = make(vector["price"], p, positive, loss=vector["loss"], side=vector["side"])
    value, gradient = objective.value_and_grad(scores)
    # the vectors hold R and ∇R/R: undo the form that is minimised
    undo = {
        log_form: lambda: (p * value, p * gradient),
        root_form: lambda: (p * np.log(value), p * gradient / value),
        plain_form: lambda: (np.log(value), gradient / value),
    }
    log_risk, relative = undo[objective.form]()
    assert log_risk == pytest.approx(vector["log_value"], rel=1e-12)
    np.testing.assert_allclose(relative[: len(f)], vector["grad_over_value_pos"], rtol=1e-11, atol=1e-14 * p)
    np.testing.assert_allclose(relative[len(f) :], vector["grad_over_value_neg"], rtol=1e-11, atol=1e-14 * p)


def test_custom_price_equals_the_same_named_price():
    scores, positive, _ = random_case(5)
    ours = Push(positive, price="log1p", side="bottom").value_and_grad(scores)
    theirs = Push(positive, price=Custom(np.log1p, lambda r: 1 / (1 + r)), side="bottom").value_and_grad(
        scores
    )
    assert theirs[0] == pytest.approx(ours[0], rel=1e-13)
    np.testing.assert_allclose(theirs[1], ours[1], rtol=1e-12)


def test_extremes_are_finite_and_silent():
    rng = np.random.default_rng(0)
    scores = rng.uniform(-1e4, 1e4, 1_000_000)
    positive = rng.random(len(scores)) < 0.3
    value, gradient = Push(positive, price=Power(1024)).value_and_grad(scores)
    assert value == pytest.approx(-scores[positive].min() + scores[~positive].max(), rel=1e-3)
    assert np.isfinite(gradient).all()
    assert gradient[~positive].sum() == pytest.approx(1)
    assert gradient[positive].sum() == pytest.approx(-1)


def test_groups_without_pairs_are_left_out_and_counted():
    scores, positive = np.arange(5.0), np.array([True, False, True, True, False])
    groups = np.array(["a", "a", "b", "b", "c"])
    objective = Push(positive, groups=groups)
    assert (objective.n_groups, objective.n_groups_skipped) == (1, 2)
    value, gradient = objective.value_and_grad(scores)
    assert value == pytest.approx(Push(positive[:2]).value_and_grad(scores[:2])[0])
    assert gradient[2:].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": ["a", "b", "c"]}, "both classes"),
        ({"groups": ["a", "b"]}, "one id per row"),
        ({"side": "left"}, "unknown `side` 'left'"),
        ({"loss": "hinge", "price": "log1p"}, "log1p price with the hinge loss is not convex"),
        ({"loss": "zero_one"}, "zero_one loss evaluates rankings"),
        ({"sample_weight": [1, -1, 1]}, "negative in row 1"),
        ({"sample_weight": [0, 1, 1]}, "both classes, with positive weight"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        Push([True, False, False], **options)


def test_separated():
    objective = Push([True, True, False, False], groups=[0, 1, 0, 1])
    assert objective.separated(np.array([2.0, 1.0, 1.0, 1.0]))
    assert not objective.separated(np.array([1.0, 1.0, 1.0, 1.0]))
    assert not objective.separated(np.array([2.0, 0.0, 1.0, 1.0]))
    # a value below the threshold proves it for one group
    one = Push([True, False], price="log1p", side="bottom")
    assert one.value_and_grad(np.array([1.0, 0.0]))[0] < one.separable_below
    assert one.value_and_grad(np.array([0.0, 0.0]))[0] >= one.separable_below


def test_example_weights_are_the_papers_pair_weights():
    scores, positive, _ = random_case(12)
    p = 3.0
    d = np.exp(-(scores[positive][:, None] - scores[~positive][None, :]))
    d_tilde = d * d.sum(axis=0) ** (p - 1)
    d_tilde /= d_tilde.sum()
    weights = Push(positive, price=Power(p)).example_weights(scores)
    np.testing.assert_allclose(weights[positive], d_tilde.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(weights[~positive], d_tilde.sum(axis=0), rtol=1e-12)


def test_all_margins_met_costs_nothing_for_the_hinge_losses():
    positive = np.array([True, True, False])
    for loss in ("hinge", "squared_hinge"):
        for price, p in (("power", 1), ("power", 4), ("identity", 1)):
            value, gradient = make(price, p, positive, loss=loss).value_and_grad(np.array([3.0, 2.0, 0.5]))
            assert value == 0
            assert gradient.tolist() == [0, 0, 0]
