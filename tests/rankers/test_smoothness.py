"""Strengths of terms: a dense implementation without shortcuts, constraints, and the evidence for pairs."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from apexrank.objectives.log_loss import LogLoss
from apexrank.preprocessing.ramps import learn_basis
from apexrank.problem.design import DenseDesign
from apexrank.problem.ramps import RampDesign, RampRows
from apexrank.rankers import smoothness
from apexrank.rankers.interactions import supported, with_pairs
from apexrank.rankers.smoothness import at_strength, find_strengths


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def ramps(rng):
    """A threshold, a bowl, noise, two values, levels and a pair, with missing values and weights."""
    n = 600
    X = np.column_stack(
        [rng.normal(size=(n, 3)), rng.integers(0, 2, n), rng.integers(0, 4, n), rng.random(n)]
    )
    lift = 2.0 * (X[:, 0] > 0.5) + X[:, 1] ** 2 - X[:, 3] + 0.7 * (X[:, 4] == 2) - 2 + 3 * X[:, 5] * X[:, 3]
    y = rng.random(n) < expit(lift)
    X[rng.random(n) < 0.1, 1] = np.nan
    weight = rng.integers(0, 3, n).astype(float)
    basis = learn_basis(X, weight, 9, {4: list("abcd")})
    return RampRows(X, with_pairs(basis, X, weight, [(3, 5)])), y, weight


def dense_strengths(X, y, weight, terms, strength, moves=1e-6):
    """Fellner–Schall updates one after another, with full inverses, until no logarithm moves by more than 1e-6."""
    X, strength = np.column_stack([np.ones(len(X)), X]), strength.copy()
    beta = np.zeros(X.shape[1])
    for _ in range(20_000):
        penalty = np.append(0.0, strength[terms])
        while True:
            p = expit(X @ beta)
            slope = X.T @ (weight * (p - y)) + penalty * beta
            V = np.linalg.inv(X.T @ ((weight * p * (1 - p))[:, None] * X) + np.diag(penalty))
            beta = beta - V @ slope
            if np.abs(V @ slope).max() < 1e-10:
                break
        variance, size = strength[terms] * np.diag(V)[1:], beta[1:] ** 2
        edf = np.bincount(terms, 1 - variance, len(strength))
        found = np.log(edf / np.maximum(np.bincount(terms, size, len(strength)), 1e-300))
        step = np.clip(found - np.log(strength), -3, 3)
        new = np.clip(strength * np.exp(step), smoothness.WEAKEST, smoothness.STRONGEST)
        moved, strength = np.abs(np.log(new / strength)).max(), new
        if moved < moves:
            return strength, edf
    raise AssertionError("the updates do not settle")


def test_strengths_are_those_of_a_dense_implementation(ramps):
    rows, y, weight = ramps
    used = np.unique(rows.basis.terms)
    terms = np.searchsorted(used, rows.basis.terms)
    objective = LogLoss(y, sample_weight=weight)
    start, w = np.ones(len(used)), np.zeros(rows.shape[1])
    found = find_strengths(RampDesign(rows), objective, terms, start, w, settled=1e-6)
    strength, edf = dense_strengths(rows.dense(slice(None)), y, weight, terms, start)
    np.testing.assert_allclose(np.log(found.strength), np.log(strength), atol=1e-3)
    np.testing.assert_allclose(np.bincount(terms, found.edf), edf, atol=1e-3)
    assert found.strength.max() > 100 * found.strength.min()
    usual = find_strengths(RampDesign(rows), objective, terms, start, w)
    np.testing.assert_allclose(np.bincount(terms, usual.edf), edf, atol=0.3)


def test_few_rows_give_what_many_would(ramps, rng):
    """Factors in rows and in coefficients: the same problem, with and without rows of weight 0."""
    rows, y, weight = ramps
    X, y, weight = rows.dense(slice(None))[:20], y[:20], weight[:20] + 0.5
    terms, n = rows.basis.terms, rows.basis.n_terms
    strength, v = np.exp(rng.normal(size=n)), 0.1 * rng.normal(size=X.shape[1])
    padded = np.vstack([X, rng.normal(size=(60, X.shape[1]))])
    signs = np.zeros(X.shape[1])
    signs[:3] = 1
    found = [
        at_strength(
            DenseDesign(some),
            LogLoss(
                np.append(y, np.zeros(len(some) - 20, bool)),
                sample_weight=np.append(weight, np.zeros(len(some) - 20)),
            ),
            terms,
            strength,
            v,
            signs,
            1e-6,
        )
        for some in (X, padded)
    ]
    assert (found[0].curvature.rows is None) != (found[1].curvature.rows is None)
    for name in ("v", "edf", "criterion"):
        np.testing.assert_allclose(getattr(found[0], name), getattr(found[1], name), atol=1e-8)
    some = np.array([1, 4, 7])
    np.testing.assert_allclose(*(each.curvature.covariance(some) for each in found), atol=1e-8)


def test_signs_are_kept_at_the_minimum(ramps):
    rows, y, weight = ramps
    X, terms, n = rows.dense(slice(None)), rows.basis.terms, rows.basis.n_terms
    signs = np.zeros(X.shape[1])
    signs[:8], signs[8:16] = -1, 1
    strength = np.full(n, 3.0)
    objective = LogLoss(y, sample_weight=weight)
    found = at_strength(DenseDesign(X), objective, terms, strength, np.zeros(len(terms)), signs, 1e-8)

    def cost(w):
        value, slope = objective.value_and_grad(X @ w)
        return value + 1.5 * w @ w, X.T @ slope + 3.0 * w

    bounds = [{1: (0, None), -1: (None, 0), 0: (None, None)}[sign] for sign in signs.tolist()]
    best = minimize(
        cost,
        np.zeros(len(terms)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    np.testing.assert_allclose(found.v / np.sqrt(3.0), best.x, atol=1e-5)
    held = (signs != 0) & (np.abs(best.x) < 1e-9)
    assert held.any()
    assert (found.edf[held] == 0).all()


def test_evidence_is_a_ratio_of_marginal_likelihoods(rng):
    """With normal noise the Bayes factor of a term is exact: the likelihood integrated with and without it."""
    n, terms = 40, np.repeat([0, 1, 2], [3, 2, 4])
    X = rng.normal(size=(n, 9))
    y = X[:, :3] @ [1.0, -1.0, 0.5] + 0.4 * X[:, 4] + rng.normal(size=n)

    def marginal(some):
        return (
            np.linalg.slogdet(C := np.eye(n) + X[:, some] @ X[:, some].T)[1] / -2
            - y @ np.linalg.solve(C, y) / 2
        )

    V = np.linalg.inv(X.T @ X + np.eye(9))
    mean = V @ X.T @ y
    factors = [marginal(terms >= 0) - marginal(terms != term) for term in range(3)]
    order = np.argsort(factors)
    least = factors[order[0]]
    assert supported(V, mean, terms, [0, 1, 2], least - 1e-6) == [0, 1, 2]
    # without the weakest, the evidence for the others is that of the smaller model
    rest = [term for term in range(3) if term != order[0]]
    smaller = [marginal(terms != order[0]) - marginal((terms != order[0]) & (terms != term)) for term in rest]
    assert supported(V, mean, terms, [0, 1, 2], min(smaller) - 1e-6) == rest
    assert supported(V, mean, terms, [0, 1, 2], min(smaller) + 1e-6) == [rest[int(np.argmax(smaller))]]
