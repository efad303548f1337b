"""Families × designs × penalties: every objective on every design with every penalty.

The table of docs/guide/compose.md is this product; combinations missing there must raise an error here.
"""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from apexrank import InputError, LinearRanker, MonotoneRetargeting, PNormPush
from apexrank.objectives import Retarget
from apexrank.penalties import Bounded, ElasticNet, Lasso, NonNegative, Quadratic, Ridge
from apexrank.problem import ArrayBlocks
from apexrank.solvers import CoordinateDescent

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
QUALITY = X @ [1.0, 0.7, -0.2] + RNG.normal(size=90)
LABELS = (X @ [1.0, 0.7, -0.2] + 0.1 * RNG.normal(size=90) > 0.5).astype(int)  # prevents collapse at p = inf
NOISY = (QUALITY > 0.5).astype(int)  # not separated on average, so a push in groups does not warn
GRADES = np.digitize(QUALITY, [-0.5, 0.8])
QUERIES = np.repeat(np.arange(9), 10)
WEIGHT = RNG.integers(1, 3, 90).astype(float)
STEPS = np.diff(np.eye(3), axis=0)

# objective, its parameters, labels, groups
FAMILIES = {
    "push": ("push", {"p": 2}, LABELS, None),
    "push, logistic": ("push", {"p": 2, "loss": "logistic"}, LABELS, None),
    "push, squared hinge": ("push", {"p": 2, "loss": "squared_hinge"}, LABELS, None),
    "IR push": ("push", {"price": "log1p", "side": "bottom"}, LABELS, None),
    "push in groups": ("push", {"p": 2}, NOISY, QUERIES),
    "infinite push": ("infinite_push", {}, LABELS, None),
    "infinite push, hinge": ("infinite_push", {"loss": "hinge"}, LABELS, None),
    "crucial pairs": ("pairs", {"p": 2}, GRADES, QUERIES),
    "retargeting": ("retarget", {}, GRADES, QUERIES),
    "retargeting, KL": ("retarget", {"divergence": "kl", "joint_convexity": True}, GRADES, QUERIES),
    "ListNet": ("listnet", {}, GRADES, QUERIES),
    "pointwise": ("pointwise", {}, GRADES, None),
    "NDCG consistent": ("ndcg_consistent", {}, GRADES, QUERIES),
    "unknown link": ("unknown_link", {}, QUALITY, None),
}
PENALTIES = {
    "ridge": Ridge(0.05),
    "elastic net": ElasticNet(0.05, 0.5),
    "lasso": Lasso(0.05),
    "w >= 0": NonNegative(Ridge(0.05)),
    "w'Pw": Quadratic(STEPS.T @ STEPS + 0.1 * np.eye(3), 0.05),
}
EMPTY = {("infinite push", "lasso"): "decreases without bound"}


def on_dask(ranker, y, groups):
    da = pytest.importorskip("dask.array")
    rows, *columns = (da.from_array(part, chunks=(37, 3)[: part.ndim]) for part in (X, y, WEIGHT))
    lists = None if groups is None else da.from_array(groups, chunks=37)
    return ranker.fit(rows, columns[0], sample_weight=columns[1], groups=lists)


def on_torch(ranker, y, groups):
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    return ranker.fit(torch.from_numpy(X), y, sample_weight=WEIGHT, groups=groups)


def in_blocks(ranker, y, groups):
    parts = ArrayBlocks(X, y, WEIGHT, rows=37)
    if groups is not None:  # cut anywhere, also inside a group
        parts.columns[2] = groups
    return ranker.fit(parts, None)


DESIGNS = {
    "sparse": lambda ranker, y, groups: ranker.fit(
        sparse.csr_array(X), y, sample_weight=WEIGHT, groups=groups
    ),
    "blocks": in_blocks,
    "Dask": on_dask,
    "device": on_torch,
}
DENSE = {}


def ranker_of(family, penalty):
    objective, options, _, _ = FAMILIES[family]
    return LinearRanker(objective, PENALTIES[penalty], objective_params=options, tol=1e-7)


def dense_fit(family, penalty):
    """Fit once for all designs."""
    if (family, penalty) not in DENSE:
        _, _, y, groups = FAMILIES[family]
        DENSE[family, penalty] = ranker_of(family, penalty).fit(X, y, sample_weight=WEIGHT, groups=groups)
    return DENSE[family, penalty]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_with_every_penalty(family, penalty):
    if (family, penalty) in EMPTY:
        with pytest.raises(InputError, match=EMPTY[family, penalty]):
            dense_fit(family, penalty)
        return
    ranker = dense_fit(family, penalty)
    assert ranker.converged_
    assert ranker.dual_gap_ <= 1e-5
    w = np.ravel(ranker.coef_)
    if penalty == "w >= 0":
        assert (w >= 0).all()
        assert (w == 0).any()
    rng = np.random.default_rng(1)
    labels, groups = FAMILIES[family][2], FAMILIES[family][3]
    objective = ranker._objective(labels, WEIGHT, groups)
    exact = getattr(objective, "limit", lambda scores: objective.value_and_grad(scores)[0])
    for size in (1e-3, 0.1, 1.0):  # no neighbour is better by more than the gap
        other = np.clip(w + size * rng.normal(size=3), *PENALTIES[penalty].bounds)
        value = exact(X @ other) / objective.count + PENALTIES[penalty].value(other)
        assert value >= ranker.objective_ - ranker.dual_gap_ - 1e-9


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_design_gives_the_dense_fit(family, penalty, design):
    if (family, penalty) in EMPTY:
        pytest.skip(EMPTY[family, penalty])
    dense = dense_fit(family, penalty)
    _, _, y, groups = FAMILIES[family]
    found = DESIGNS[design](ranker_of(family, penalty), y, groups)
    assert found.converged_
    slack = dense.dual_gap_ + found.dual_gap_ + 1e-9 * max(1.0, abs(dense.objective_))
    assert abs(found.objective_ - dense.objective_) <= slack
    loose = family.startswith("infinite")  # the minimum is certified to 1e-6, the coefficients to its root
    np.testing.assert_allclose(found.coef_, dense.coef_, atol=3e-3 if loose else 2e-5)


def test_the_named_estimators_are_compositions():
    push = PNormPush(p=2, alpha=0.05, tol=1e-9).fit(X, LABELS)
    ours = LinearRanker("push", Ridge(0.05), objective_params={"p": 2}, tol=1e-9).fit(X, LABELS)
    np.testing.assert_allclose(ours.coef_, push.coef_, rtol=1e-7)
    retarget = MonotoneRetargeting(alpha=0.05, tol=1e-9).fit(X, GRADES, groups=QUERIES)
    ours = LinearRanker(partial(Retarget, offsets="sqrt"), Ridge(0.05), tol=1e-9)
    np.testing.assert_allclose(ours.fit(X, GRADES, groups=QUERIES).coef_, retarget.coef_, rtol=1e-7)


def test_what_two_classes_have_and_grades_have_not():
    binary = LinearRanker().fit(X, LABELS)
    assert binary.coef_.shape == (1, 3)
    assert set(binary.predict(X)) == {0, 1}
    np.testing.assert_array_equal(binary.predict(X), (binary.decision_function(X) > 0).astype(int))
    assert binary.score(X, LABELS) == pytest.approx(np.mean(binary.predict(X) == LABELS))
    graded = LinearRanker("listnet").fit(X, GRADES, groups=QUERIES)
    assert graded.coef_.shape == (3,)
    assert not hasattr(graded, "decision_function")
    assert graded.score(X, GRADES, groups=QUERIES) > 0.8


def test_a_larger_alpha_means_the_same_on_more_rows():
    """Objectives are means, so repeating all rows or groups changes nothing."""
    for family in FAMILIES:
        objective, options, y, groups = FAMILIES[family]
        tol = 1e-6 if family.startswith("infinite") else 1e-7
        ranker = LinearRanker(objective, Ridge(0.05), objective_params=options, tol=tol)
        if options.get("price") == "log1p":
            continue  # the price depends on the number of negatives
        once = clone(ranker).fit(X, y, groups=groups)
        twice = None if groups is None else np.concatenate([groups, groups + 100])
        again = clone(ranker).fit(np.vstack([X, X]), np.concatenate([y, y]), groups=twice)
        atol = 3e-3 if family.startswith("infinite") else 1e-4
        np.testing.assert_allclose(again.coef_, once.coef_, atol=atol, err_msg=family)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": Lasso(-1.0)}, "`alpha` must be a finite number"),
        ({"penalty": Lasso(0.1), "solver": "coordinate"}, "solver 'coordinate' cannot fit an L1 penalty"),
        ({"penalty": NonNegative(), "solver": CoordinateDescent()}, "cannot fit bounds on the coefficients"),
        ({"penalty": Quadratic(np.eye(3)), "solver": "coordinate"}, "cannot fit a quadratic penalty"),
        ({"penalty": Bounded(Ridge(), 1.0, 2.0)}, "`bounds` must have low <= 0 <= high"),
        ({"objective": "infinite_push", "penalty": Lasso(0.1)}, "no minimum under a pure L1 penalty"),
        ({"objective": "infinite_push", "solver": "coordinate"}, "cannot fit p=inf"),
    ],
)
def test_refused_in_one_line(options, message):
    with pytest.raises(InputError, match=message) as error:
        LinearRanker(**options).fit(X, LABELS)
    assert "\n" not in str(error.value)


def test_penalties_have_parameters_for_a_grid_search():
    grid = {"penalty__base__alpha": [1e-3, 10.0], "penalty__high": [0.5, np.inf]}
    penalty = Bounded(Ridge(1.0), high=1.0)
    ranker = LinearRanker("push", penalty, objective_params={"p": 2})
    search = GridSearchCV(ranker, grid, cv=2, scoring="roc_auc").fit(X, NOISY)
    assert search.best_estimator_.penalty.base.alpha == search.best_params_["penalty__base__alpha"]
    assert penalty == Bounded(Ridge(1.0), high=1.0)  # as it was
    assert clone(ranker).set_params(penalty__base__alpha=2.0).penalty == Bounded(Ridge(2.0), high=1.0)
    smooth = Quadratic(np.eye(3), 1.0)
    assert smooth.value(np.ones(3)) == 1.5
    assert smooth.set_params(alpha=2.0).value(np.ones(3)) == 3.0
    assert Bounded().base == Ridge()
    Bounded().set_params(base__alpha=7.0)
    assert Bounded().base == Ridge()
    with pytest.raises(InputError, match="Ridge has no parameter 'beta': use alpha"):
        Ridge().set_params(beta=1.0)


def test_a_penalty_below_zero_is_refused_by_fit():
    for penalty in (Ridge(-1), Lasso(-1), ElasticNet(-1), NonNegative(Ridge(-1)), Quadratic(np.eye(3), -1)):
        with pytest.raises(InputError, match="`alpha` must be a finite number of at least 0, got -1"):
            LinearRanker("listnet", penalty).fit(X, GRADES, groups=QUERIES)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("push", "unknown `objective_params` q: the objective takes p, loss, price, side, balance"),
        ("listnet", "unknown `objective_params` q: the objective takes divergence, normalize"),
        ("unknown_link", "unknown `objective_params` q: the objective takes strong_convexity, normalize"),
        (partial(Retarget, margin=2.0), "unknown `objective_params` q: the objective takes"),
    ],
)
def test_unknown_parameters_of_the_objective_are_named(objective, message):
    with pytest.raises(InputError, match=message):
        LinearRanker(objective, objective_params={"q": 1}).fit(X, LABELS)
