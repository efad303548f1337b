"""Properties of every objective, for lists and scores of any kind."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from apexrank import objectives
from apexrank.divergences import DIVERGENCES
from apexrank.errors import InputError
from apexrank.losses import LOSSES
from apexrank.objectives import (
    CosineTargets,
    CrucialPairs,
    InfinitePush,
    LogLoss,
    PClassification,
    Push,
    Retarget,
    SoftmaxTargets,
    SquaredTargets,
    SwapLikelihood,
    UnknownLink,
    form_of,
)
from apexrank.objectives.retarget import known_divergence
from apexrank.objectives.swaps import telling_lists
from apexrank.prices import PRICES, Custom, Power
from apexrank.problem import Problem
from apexrank.submodular import Sqrt, Top
from apexrank.validation import Segments, segment
from tests.strategies import SEEDS, JudgedLists, judged_lists

SIDES = [{"side": "top"}, {"side": "bottom"}, {"side": "both", "balance": 0.5}]
few = settings(max_examples=4)


@dataclass(frozen=True, repr=False)
class Case:
    """One objective in a few variants, and its properties.

    ``largest`` is the largest score for which the value is a finite double; ``order_only`` says that grades count only
    by their order, ``rising`` that higher scores of the most relevant rows, or lower scores of the least relevant,
    never cost anything, and ``of_groups`` how the values of groups are combined.
    """

    name: str
    kind: type
    make: Callable[..., Any]
    variants: tuple[dict[str, Any], ...] = ({},)
    largest: float = 1e5
    convex: bool = True
    shifts: bool = True
    order_only: bool = True
    rising: bool = True
    weighted: bool = True
    of_groups: Callable[[list[float]], float] | None = np.mean

    def __repr__(self) -> str:
        return self.name

    def build(self, lists: JudgedLists) -> Any:
        return self.make(lists, **self.variants[lists.choice % len(self.variants)])

    def at(self, lists: JudgedLists, scores: np.ndarray) -> tuple[float, np.ndarray]:
        return self.build(lists).value_and_grad(scores)


# ---------------------------------------------------------------- the cases


def weights_and_groups(lists: JudgedLists) -> dict[str, Any]:
    return {"sample_weight": lists.weight, "groups": lists.groups}


def push(lists: JudgedLists, **options: Any) -> Push:
    return Push(lists.relevance > 0, **weights_and_groups(lists), **options)


def infinite_push(lists: JudgedLists, **options: Any) -> InfinitePush:
    return InfinitePush(lists.relevance > 0, beta=2.0, **weights_and_groups(lists), **options)


def classification(lists: JudgedLists, **options: Any) -> PClassification:
    return PClassification(push(lists, **options))


def log_loss(lists: JudgedLists) -> LogLoss:
    return LogLoss(lists.relevance > 0, sample_weight=lists.weight)


def graded(lists: JudgedLists, **options: Any) -> CrucialPairs:
    return CrucialPairs(lists.relevance, **weights_and_groups(lists), **options)


def listed(lists: JudgedLists, **options: Any) -> CrucialPairs:
    """All pairs of a group one by one, weighted by the difference of their grades."""
    gap = lists.relevance[:, None] - lists.relevance[None, :]
    upper, lower = np.nonzero((gap > 0) & (lists.groups[:, None] == lists.groups[None, :]))
    pairs = upper, lower, gap[upper, lower].astype(float)
    return CrucialPairs(pairs=pairs, n=len(lists), **weights_and_groups(lists), **options)


def fixed(kind: type) -> Callable[..., Any]:
    return lambda lists: kind(lists.relevance, groups=lists.groups, weight=lists.weight)


def retarget(lists: JudgedLists, **options: Any) -> Retarget:
    return Retarget(lists.relevance, **weights_and_groups(lists), **options)


def link(lists: JudgedLists, **options: Any) -> UnknownLink:
    return UnknownLink(lists.relevance, **weights_and_groups(lists), **options)


def swaps(lists: JudgedLists, **options: Any) -> SwapLikelihood:
    relevance = lists.relevance.astype(float)
    kept, telling = telling_lists(relevance, segment(lists.groups, len(lists)))
    return SwapLikelihood(relevance, lists=Segments(kept, telling.indptr, telling.names), **options)


def convex_combinations() -> list[tuple[str, dict[str, Any], float]]:
    """Every convex combination of a loss and a price, and the largest score."""
    chosen = []
    prices = [Power(1), Power(8), *(PRICES.get(name) for name in PRICES.members if name != "power")]
    for loss in map(LOSSES.get, LOSSES.members):
        for price in [*prices, Custom(lambda r: r + r**2, lambda r: 1 + 2 * r)]:
            try:
                form_of(loss, price)
            except InputError:
                continue
            largest = 1e5
            if loss.name == "exponential" and price.name in ("exponential", "custom"):
                largest = 1.0  # the exponential of a height that is an exponential itself
            order = f"-{price.order:g}" if price.name == "power" else ""
            chosen.append((f"{loss.name}-{price.name}{order}", {"loss": loss, "price": price}, largest))
    return chosen


def fitted_losses() -> list[str]:
    return [name for name in LOSSES.members if LOSSES.get(name).least_elasticity < np.inf]


def known_to_retargeting() -> list[str]:
    known = []
    for name in DIVERGENCES.members:
        try:
            known.append(known_divergence(name).name)
        except InputError:
            continue
    return known


ORDERS = [{"order": "hidden", "margin": 0.5}, {"order": "blocks", "offsets": "sqrt"}]
PUSHES = [
    Case(f"push-{name}", Push, push, tuple(atoms | side for side in SIDES), largest)
    for name, atoms, largest in convex_combinations()
]
INFINITE_PUSHES = [
    Case(f"infinite-{loss}", InfinitePush, infinite_push, tuple({"loss": loss} | side for side in SIDES))
    for loss in fitted_losses()
]
CLASSIFICATIONS = [
    Case(
        f"classification-{p}",
        PClassification,
        classification,
        tuple({"price": Power(p)} | side for side in SIDES),
        largest=30.0,  # it is the exponential of the push
        of_groups=None,
    )
    for p in (1, 4)
]
PAIRS = [
    case
    for name, atoms, largest in convex_combinations()
    for case in (
        Case(f"graded-{name}", CrucialPairs, graded, (atoms,), largest),
        Case(f"listed-{name}", CrucialPairs, listed, (atoms,), largest, order_only=False),
    )
]
FIXED = [
    Case(
        "squared-targets",
        SquaredTargets,
        fixed(SquaredTargets),
        order_only=False,
        rising=False,
        of_groups=np.sum,
    ),
    Case(
        "softmax-targets",
        SoftmaxTargets,
        fixed(SoftmaxTargets),
        order_only=False,
        rising=False,
        of_groups=np.sum,
    ),
    Case(
        "cosine-targets",
        CosineTargets,
        fixed(CosineTargets),
        convex=False,
        shifts=False,
        order_only=False,
        rising=False,
        of_groups=np.sum,
    ),
]
RETARGETS = [
    Case(
        f"retarget-{divergence}-{note}",
        Retarget,
        retarget,
        tuple({"divergence": divergence} | order | options for order in ORDERS),
        convex=divergence == "squared" or "joint_convexity" in options,
        order_only=False,
        rising=False,
        of_groups=np.sum,
    )
    for divergence in known_to_retargeting()
    for note, options in {
        "plain": {},
        "joint": {"joint_convexity": True},
        "mean": {"normalize": True},
    }.items()
]
LINKS = [
    Case(
        "link",
        UnknownLink,
        link,
        ({"strong_convexity": 0.3}, {"strong_convexity": 2.0, "normalize": True}),
        order_only=False,
        of_groups=np.sum,
    ),
]
SWAPS = [
    Case("swaps", SwapLikelihood, swaps, ({"f": Sqrt()}, {"f": Top(m=2) + Sqrt()}), weighted=False),
]
LOG_LOSSES = [Case("log-loss", LogLoss, log_loss, shifts=False, of_groups=None)]
CASES = [*PUSHES, *INFINITE_PUSHES, *CLASSIFICATIONS, *LOG_LOSSES, *PAIRS, *FIXED, *RETARGETS, *LINKS, *SWAPS]


def each(condition: Callable[[Case], bool] = lambda case: True) -> Any:
    return pytest.mark.parametrize("case", [case for case in CASES if condition(case)], ids=lambda c: c.name)


def test_every_objective_is_among_the_cases():
    public = set()
    for module in pkgutil.iter_modules(objectives.__path__, "apexrank.objectives."):
        for name, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if not name.startswith("_") and hasattr(found, "value_and_grad"):
                public.add(found)
    parents = {parent for kind in public for parent in kind.__mro__[1:]}
    written_out = {kind for kind in public if kind not in parents or kind is Push}
    assert written_out == {case.kind for case in CASES}
    assert {getattr(objectives, name) for name in objectives.__all__} - {form_of} == written_out


# ---------------------------------------------------------------- agreement of the numbers


def close(found: tuple[float, np.ndarray], expected: tuple[float, np.ndarray], rtol: float = 1e-9) -> None:
    """Value and gradient agree, relative to the larger of them and 1."""
    assert found[0] == pytest.approx(expected[0], rel=rtol, abs=rtol)
    scale = max(1.0, float(np.abs(expected[1]).max()))
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=rtol * scale)


@each()
@few
@given(judged_lists())
def test_the_order_of_rows_and_the_names_of_groups_do_not_matter(case, lists):
    value, grad = case.at(lists, lists.scores)
    moved, rows = lists.shuffled()
    names = np.array(["pear", "fig", "apple"])[moved.groups]
    close(case.at(moved.but(groups=names), moved.scores), (value, grad[rows]))


@each(lambda case: case.shifts)
@few
@given(judged_lists())
def test_only_differences_inside_a_group_matter(case, lists):
    objective = case.build(lists)
    value, grad = objective.value_and_grad(lists.scores)
    shift = np.array([3.0, -50.0, 100.0])[lists.groups]
    close(objective.value_and_grad(lists.scores + shift), (value, grad), rtol=1e-8)
    per_group = np.bincount(lists.groups, grad)
    assert np.abs(per_group).max() <= 1e-9 * max(1.0, np.abs(grad).max())


@each(lambda case: case.order_only)
@few
@given(judged_lists())
def test_grades_count_by_their_order(case, lists):
    other_grades = np.array([-5.0, 0.5, 0.75, 9.0])[lists.relevance]
    close(case.at(lists.but(relevance=other_grades), lists.scores), case.at(lists, lists.scores))


@each(lambda case: case.of_groups is not None)
@few
@given(judged_lists(most_rows=20))
def test_groups_do_not_see_each_other(case, lists):
    values, grads = [], np.zeros(len(lists))
    for group in np.unique(lists.groups):
        rows = np.flatnonzero(lists.groups == group)
        try:
            value, grads[rows] = case.at(lists.take(rows), lists.scores[rows])
        except InputError:
            continue  # nothing to rank
        values.append(value)
    share = case.of_groups([1.0] + [0.0] * (len(values) - 1))
    close(case.at(lists, lists.scores), (case.of_groups(values), share * grads))
    assert case.build(lists).over_groups in ("", {np.mean: "mean", np.sum: "sum"}[case.of_groups])


@each(lambda case: case.weighted and case.kind is not InfinitePush)
@few
@given(judged_lists(weighted=True), st.sampled_from([1.0, 30.0, 1e3]))
def test_weights_are_repetitions(case, lists, size):
    size = min(size, case.largest)
    repeated, rows = lists.repeated()
    value, grad = case.at(repeated, size * repeated.scores)
    # a gradient computed from the exponential of the value loses as many digits as the value has before its point
    rtol = 1e-9 + 1e-15 * abs(value)
    close(case.at(lists, size * lists.scores), (value, np.bincount(rows, grad, len(lists))), rtol)


@pytest.mark.parametrize("case", INFINITE_PUSHES, ids=lambda c: c.name)
@few
@given(judged_lists(weighted=True))
def test_weights_are_repetitions_in_the_limit(case, lists):
    repeated, _ = lists.repeated()
    assert case.build(lists).limit(lists.scores) == pytest.approx(
        case.build(repeated).limit(repeated.scores), rel=1e-12
    )


@each()
@few
@given(judged_lists(), st.sampled_from([np.float32, np.int64]))
def test_scores_of_any_type_of_number(case, lists, dtype):
    objective, scores = case.build(lists), (3 * lists.scores).astype(dtype)
    close(objective.value_and_grad(scores), objective.value_and_grad(scores.astype(float)), rtol=1e-13)


# ---------------------------------------------------------------- derivatives


@each()
@few
@given(judged_lists(ties=False), SEEDS)
def test_the_gradient_is_a_derivative(case, lists, seed):
    objective, scores, h = case.build(lists), lists.scores, 1e-5
    direction = np.random.default_rng(seed).normal(size=len(scores))
    value, grad = objective.value_and_grad(scores)
    after, before = (objective.value_and_grad(scores + t * direction)[0] for t in (h, -h))
    # at a kink the slope is anything between those of the two sides
    kink = abs(after - 2 * value + before) / (2 * h)
    assert abs(grad @ direction - (after - before) / (2 * h)) <= 1.01 * kink + 1e-8 * (1 + abs(value))


def second_derivatives(objective: Any, scores: np.ndarray) -> np.ndarray:
    total = np.zeros((len(scores), len(scores)))
    for factor, diagonal, U, S in objective.hessian(scores):
        low_rank = U @ S @ U.T
        total += factor * (
            np.diag(diagonal) + (low_rank.toarray() if sparse.issparse(low_rank) else low_rank)
        )
    return total


def has_hessian(case: Case) -> bool:
    one, two = np.array([0, 1]), np.zeros(2)
    return case.build(JudgedLists(one, np.zeros(2, int), None, two, two, 0)).has_hessian


@each(has_hessian)
@few
@given(judged_lists(ties=False, most_groups=1), SEEDS)
def test_the_hessian_is_the_derivative_of_the_gradient(case, lists, seed):
    objective, scores, h = case.build(lists), lists.scores, 1e-5
    direction = np.random.default_rng(seed).normal(size=len(scores))
    at, after, before = (objective.value_and_grad(scores + t * direction)[1] for t in (0, h, -h))
    moved = second_derivatives(objective, scores) @ direction
    kink = np.abs(after - 2 * at + before).max() / (2 * h)
    wrong = np.abs(moved - (after - before) / (2 * h)).max()
    assert wrong <= 1.01 * kink + 1e-8 * (1 + np.abs(at).max() + np.abs(moved).max())


# ---------------------------------------------------------------- convexity, bounds and limits


@each(lambda case: case.convex)
@few
@given(judged_lists(), st.sampled_from([1.0, 30.0, 1e3, 1e5]))
def test_convex_and_finite_at_scores_of_any_size(case, lists, size):
    objective, size = case.build(lists), min(size, case.largest)
    assert getattr(objective, "is_convex", True)
    a, b = size * lists.scores, size * lists.others
    (at_a, slope_a), (at_b, slope_b) = objective.value_and_grad(a), objective.value_and_grad(b)
    middle = objective.value_and_grad(0.5 * (a + b))[0]
    assert np.isfinite([at_a, at_b, middle]).all()
    assert np.isfinite(slope_a).all()
    assert np.isfinite(slope_b).all()
    rounding = 1e-10 * (1 + abs(at_a) + abs(at_b) + (np.abs(slope_a) + np.abs(slope_b)) @ np.abs(b - a))
    assert at_b >= at_a + slope_a @ (b - a) - rounding
    assert at_a >= at_b + slope_b @ (a - b) - rounding
    assert middle <= 0.5 * (at_a + at_b) + rounding


@each(lambda case: case.rising)
@few
@given(judged_lists())
def test_what_is_right_never_costs(case, lists):
    grad = case.at(lists, lists.scores)[1]
    for group in np.unique(lists.groups):
        rows = lists.groups == group
        counted = rows & (lists.weight > 0) if case.weighted and lists.weight is not None else rows
        grades = lists.relevance[counted]
        if len(grades):
            assert np.all(grad[rows & (lists.relevance >= max(grades.max(), 1))] <= 1e-12)
            assert np.all(grad[rows & (lists.relevance <= min(grades.min(), 2))] >= -1e-12)


def heights_of_misranked_pairs(lists: JudgedLists, above: np.ndarray) -> np.ndarray:
    """For each row, the weight of those that should be above it and are not, including ties."""
    wrong = lists.scores[:, None] <= lists.scores[None, :]
    weight = np.ones(len(lists)) if lists.weight is None else lists.weight
    return (weight[:, None] * (above & wrong)).sum(axis=0)


@pytest.mark.parametrize("case", [*PUSHES, *(c for c in PAIRS if c.make is graded)], ids=lambda c: c.name)
@few
@given(judged_lists(most_groups=1))
def test_it_bounds_the_priced_number_of_misranked_pairs(case, lists):
    """``R_{g,1} ≤ R_{g,ℓ}`` (JMLR 2009, sec. 3.1), with the natural logarithm for ln 2 times a logistic loss."""
    lists = lists.but(choice=0)  # the top side
    objective = case.build(lists)
    grade = lists.relevance if case.make is graded else (lists.relevance > 0).astype(int)
    above = grade[:, None] > grade[None, :]
    weight = np.ones(len(lists)) if lists.weight is None else lists.weight
    priced = (weight > 0) & ((weight[:, None] * above).sum(axis=0) > 0)
    unit = np.log(2) if objective.loss.name == "logistic" else 1.0
    heights = unit * heights_of_misranked_pairs(lists, above)[priced]
    with np.errstate(divide="ignore", invalid="ignore"):  # no pair may be misranked
        risk = np.log(weight[priced] @ objective.price.value(heights))
        least = objective.form(np.array([risk]), objective.price.order)[0][0]
    assert objective.value_and_grad(lists.scores)[0] >= least - 1e-9 * (
        1 + abs(least) if np.isfinite(least) else 1
    )


@each(lambda case: case.kind not in (Push, InfinitePush, CrucialPairs))
@few
@given(judged_lists(), st.sampled_from([0.0, 1.0, 1e3]))
def test_distances_are_not_negative(case, lists, size):
    objective = case.build(lists)
    value = objective.value_and_grad(min(size, case.largest) * lists.scores)[0]
    assert value >= -1e-9 * objective.total
    if case.kind is CosineTargets:
        assert value <= objective.n_groups


@pytest.mark.parametrize("loss", fitted_losses())
@few
@given(judged_lists(most_groups=1))
def test_a_larger_power_comes_nearer_to_the_highest_row(loss, lists):
    """``(Σ_k F_k^p)^{1/p}`` decreases with p to the largest height, and is at most ``K^{1/p}`` times that height."""
    lists = lists.but(weight=None)
    for side in SIDES[:2]:
        limit = infinite_push(lists, loss=loss, **side).limit(lists.scores)
        values = [
            push(lists, loss=loss, price=Power(p), **side).value_and_grad(lists.scores)[0]
            for p in (1, 2, 7, 64)
        ]
        priced = int(np.sum((lists.relevance > 0) == (side["side"] == "bottom")))
        in_logarithms = loss == "exponential"
        for p, value in zip((1, 2, 7, 64), values, strict=True):
            most = limit + np.log(priced) / p if in_logarithms else limit * priced ** (1 / p)
            assert limit - 1e-9 * (1 + abs(limit)) <= value <= most + 1e-9 * (1 + abs(most))
        assert np.all(np.diff(values) <= 1e-9 * (1 + np.abs(values[0])))


# ---------------------------------------------------------------- through the linear model


@each()
@settings(max_examples=3)
@given(judged_lists(ties=False), SEEDS)
def test_a_linear_model_sees_every_layout_alike(case, lists, seed):
    """A dense array is read once if the objective streams; other layouts need two passes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(lists), 3)) * (rng.uniform(size=(len(lists), 3)) < 0.7)
    objective, w = case.build(lists), rng.normal(size=3)
    layouts = [np.ascontiguousarray(X), np.asfortranarray(X), sparse.csr_array(X), sparse.csc_array(X)]
    one, *others = [Problem(layout, objective, 0.1, lists.weight) for layout in layouts]
    value, slope = objective.value_and_grad(X @ w)
    n = objective.count
    close(one.value_and_grad(w), (value / n + 0.05 * w @ w, X.T @ slope / n + 0.1 * w))
    for other in others:
        close(other.value_and_grad(w), one.value_and_grad(w))
        if objective.has_hessian:
            expected = one.hessian(w)
            scale = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(other.hessian(w), expected, rtol=0, atol=1e-9 * scale)


# ---------------------------------------------------------------- bugs found by these properties


def test_a_row_of_weight_0_does_not_hide_the_others_of_its_list():
    """The softmax was computed relative to the highest row, whose weight may be 0."""
    alone = SoftmaxTargets([1.0, 0.0]).value_and_grad(np.array([0.0, 1.0]))
    value, grad = SoftmaxTargets([1.0, 0.0, 1.0], weight=[1.0, 1.0, 0.0]).value_and_grad(
        np.array([0.0, 1.0, 1e4])
    )
    close((value, grad), (alone[0], np.append(alone[1], 0.0)), rtol=1e-14)


@pytest.mark.parametrize("loss", fitted_losses())
def test_weights_count_for_the_upper_rows_of_listed_pairs(loss):
    """They counted only for the lower rows."""
    scores, weight = np.array([0.5, 0.0, -0.25]), np.array([2.0, 0.0, 3.0])
    pairs = np.array([0, 1, 0]), np.array([1, 2, 2])
    listed_pairs = CrucialPairs(pairs=pairs, n=3, loss=loss, sample_weight=weight)
    close(
        listed_pairs.value_and_grad(scores),
        CrucialPairs([2, 1, 0], loss=loss, sample_weight=weight).value_and_grad(scores),
    )


def test_listed_pairs_far_apart_have_a_gradient():
    """A pair whose price is 0 in double precision had the slope 0·∞."""
    pairs = np.array([0, 0, 2]), np.array([1, 2, 3])
    value, grad = CrucialPairs(pairs=pairs, n=4, price=Power(8)).value_and_grad(
        np.array([0.0, 9e3, 800.0, 0.0])
    )
    assert value == pytest.approx(9e3)
    np.testing.assert_allclose(grad, [-1, 1, 0, 0], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "given_as", [{"relevance": [1, 0]}, {"pairs": ([0], [1]), "n": 2}], ids=["graded", "listed"]
)
def test_pairs_of_a_tiny_loss_have_a_gradient(given_as):
    """The reciprocal of a height of 1e-310 is infinite."""
    value, grad = CrucialPairs(loss="logistic", price="identity", **given_as).value_and_grad(
        np.array([713.0, 0.0])
    )
    assert 0 < value < 1e-305
    np.testing.assert_allclose(grad, [-value, value], rtol=1e-3)  # of numbers with few digits left


def test_single_precision_scores_cost_no_digits():
    """The smooth maximum of the infinite push was computed in single precision."""
    scores = np.linspace(0, 1, 5, dtype=np.float32)
    objective = InfinitePush([True, False, False, True, False], loss="logistic", beta=3.0)
    assert objective.value_and_grad(scores)[0] == objective.value_and_grad(scores.astype(float))[0]
    assert objective.limit(scores) == objective.limit(scores.astype(float))
