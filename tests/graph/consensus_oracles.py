"""Slow, dense oracles for every quantity of a consensus ranking.

Layers are an array of m dense matrices, n by n, of weights that are not negative; layer weights λ an array n by m,
0 where a row of a layer is empty, whose other rows sum to 1.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.ndimage import generate_binary_structure, minimum_filter
from scipy.optimize import LinearConstraint, minimize
from scipy.special import logit, rel_entr, softmax, xlog1py, xlogy


def random_layers(seed, n=None, m=None, *, damping=None, silent=0.15, zeros=False):
    """Random problem: layers, some with empty rows, a teleport vector and a damping."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9)) if n is None else n
    m = int(rng.integers(2, 5)) if m is None else m
    layers = rng.gamma(0.7, size=(m, n, n)) * (rng.random((m, n, n)) < rng.uniform(0.25, 0.9)) + 0.0
    layers[rng.random((m, n)) < silent] = 0.0
    if not layers.any():
        layers[0, 0, -1] = 1.0
    teleport = rng.dirichlet(np.ones(n))
    if zeros:
        teleport[rng.random(n) < 0.5] = 0.0
        teleport[int(rng.integers(n))] += 0.5
        teleport /= teleport.sum()
    return layers, teleport, float(rng.uniform(0.5, 0.99)) if damping is None else damping


def shares_of(layers):
    """Divide rows by their sums; empty rows stay empty."""
    layers = np.asarray(layers, dtype=float)
    total = layers.sum(axis=2, keepdims=True)
    return np.divide(layers, total, out=np.zeros_like(layers), where=total > 0)


def opinions(layers):
    """Mask of the layers in which each vertex has links: n by m."""
    return (np.asarray(layers) > 0).any(axis=2).T


def prior_of(layers, prior=None):
    """Prior layer weights of every vertex, over the layers in which it has links, summing to 1."""
    has = opinions(layers)
    given = has * (np.ones(has.shape[1]) if prior is None else np.asarray(prior, dtype=float))
    total = given.sum(axis=1, keepdims=True)
    return np.divide(given, total, out=np.zeros_like(given), where=total > 0)


def transitions(layers, weights, teleport, damping):
    """The matrix of all t̂_i: links of the mixture and the teleport; the teleport alone for vertices without links."""
    mixed = np.einsum("...ik,kij->...ij", weights, shares_of(layers))
    silent = ~opinions(layers).any(axis=1)
    return np.where(silent[:, None], teleport, damping * mixed + (1 - damping) * teleport)


def stationary(T):
    """The w with ``w = wT`` that sums to 1."""
    n = len(T)
    system = np.vstack([np.eye(n) - T.T, np.ones(n)])
    return np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]


def phi(kind, t):
    """φ of a distribution, or of each row."""
    if kind == "squared":
        return 0.5 * (t**2).sum(axis=-1)
    if kind == "itakura-saito":
        return -np.log(t).sum(axis=-1)
    return xlogy(t, t).sum(axis=-1) + (xlog1py(1 - t, -t).sum(axis=-1) if kind == "logistic" else 0.0)


def slope(kind, t):
    """∇φ up to a constant; 0 for coordinates that are 0 and have no logarithm."""
    if kind == "squared":
        return t
    if kind == "itakura-saito":
        return -1 / t
    inside = np.where(t > 0, t, 0.5 if kind == "logistic" else 1.0)
    return logit(inside) if kind == "logistic" else np.log(inside)


def distances(kind, T, w):
    """``D_φ(t̂_i‖w)`` of every row."""
    if kind == "squared":
        return 0.5 * ((T - w) ** 2).sum(axis=1)
    if kind == "itakura-saito":
        return (T / w - np.log(T / w) - 1).sum(axis=1)
    more = rel_entr(1 - T, 1 - w).sum(axis=1) if kind == "logistic" else 0.0
    return rel_entr(T, w).sum(axis=1) + more


def disagreement(kind, T):
    """``Σ_i w_i D_φ(t̂_i‖w)`` with the stationary w."""
    w = stationary(T)
    there = w > 1e-13  # vertices that cannot be reached have weight 0, and no logarithm
    return float(w[there] @ distances(kind, T[there], np.maximum(w, 1e-300)))


def mutual_information(T, w):
    """Mutual information of two consecutive steps from w, from the joint distribution."""
    joint = w[:, None] * T
    return float(rel_entr(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())


def row_costs(kind, T, weights, prior, entropy=1.0, pull=0.0):
    """The c_i."""
    return entropy * phi(kind, T) + pull * rel_entr(weights, prior).sum(axis=1)


def cost(
    kind, layers, weights, teleport, damping, *, entropy=1.0, pull=0.0, prior=None, penalty=lambda w: 0.0
):
    """``V = Σ_i w_i c_i − φ(w)`` and the penalty of the ranks, computed densely."""
    T = transitions(layers, weights, teleport, damping)
    w = stationary(T)
    prior = prior_of(layers) if prior is None else prior
    return float(w @ row_costs(kind, T, weights, prior, entropy, pull) - phi(kind, w) + penalty(w))


def poisson(T, right):
    """The s with ``(I − T)s = right − <w, right>`` and least norm."""
    w = stationary(T)
    return np.linalg.lstsq(np.eye(len(T)) - T, right - w @ right, rcond=None)[0]


def weight_gradient(
    kind, layers, weights, teleport, damping, *, entropy=1.0, pull=0.0, prior=None, force=lambda w: 0.0
):
    """``∂V/∂λ_ik`` up to a constant in each row, including the other costs."""
    T = transitions(layers, weights, teleport, damping)
    w = stationary(T)
    prior = prior_of(layers) if prior is None else prior
    costs = row_costs(kind, T, weights, prior, entropy, pull)
    s = poisson(T, slope(kind, w) - costs - force(w))
    inner = damping * np.einsum("kij,ij->ik", shares_of(layers), entropy * slope(kind, T) - s)
    if pull:
        inner += pull * np.log(np.where(weights > 0, weights, 1) / np.where(prior > 0, prior, 1))
    return w[:, None] * inner


def first_order_gap(kind, layers, weights, teleport, damping, **costs):
    """``Σ_i Σ_k λ_ik g_ik − min_k g_ik`` over layers in which a vertex has links."""
    g = weight_gradient(kind, layers, weights, teleport, damping, **costs)
    has = opinions(layers)
    least = np.where(has.any(axis=1), np.where(has, g, np.inf).min(axis=1), 0.0)
    return float(((weights * g).sum(axis=1) - least).sum())


def hull_cost(kind, candidates, lam, prices, base, damping, *, entropy=1.0, pull=0.0, prior=None):
    """The function that :func:`apexrank.kernels.hulls.project` minimises, over all columns."""
    t = damping * lam @ candidates + base
    found = entropy * phi(kind, t) - float(prices @ t)
    return float(found + pull * rel_entr(lam, np.ones_like(lam) if prior is None else prior).sum())


def hull_gradient(kind, candidates, lam, prices, base, damping, *, entropy=1.0, pull=0.0, prior=None):
    """Derivatives of the hull cost with respect to λ, up to a constant."""
    t = damping * lam @ candidates + base
    steep = np.log(np.maximum(t, 1e-300)) if kind == "kl" else slope(kind, t)
    found = damping * candidates @ (entropy * steep - prices)
    return found + pull * np.log(np.maximum(lam, 1e-300) / prior) if pull else found


def nearest(kind, candidates, prices, base, damping, **costs):
    """Weights with the least hull cost, by SLSQP from the middle and again from its result."""
    rule = {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like}
    least = (
        1e-12 if costs.get("pull") or (kind in ("kl", "logistic") and not base.all()) else 0.0
    )  # logarithms are steep at 0

    def clean(x):
        x = np.maximum(x, least)
        return x / x.sum()

    def value(x):
        return hull_cost(kind, candidates, clean(x), prices, base, damping, **costs)

    def gradient(x):
        return hull_gradient(kind, candidates, clean(x), prices, base, damping, **costs)

    best = np.full(len(candidates), 1 / len(candidates))
    for _ in range(3):
        answer = minimize(
            value,
            best,
            jac=gradient,
            method="SLSQP",
            bounds=[(least, 1.0)] * len(candidates),
            constraints=rule,
            options={"ftol": 1e-16, "maxiter": 300},
        )
        best = min((best, clean(answer.x)), key=value)
    return best, value(best)


def free_descent(kind, layers, teleport, damping, start, constraints=(), **costs):
    """A local minimum of V over layer weights from a start, by SLSQP on the dense gradient."""
    has = opinions(layers)

    def full(x):
        weights = np.zeros(has.shape)
        weights[has] = x
        return weights

    def value(x):
        return cost(kind, layers, full(np.maximum(x, 0)), teleport, damping, **costs)

    def gradient(x):
        return weight_gradient(kind, layers, full(np.maximum(x, 0)), teleport, damping, **costs)[has]

    rows = np.repeat(np.arange(len(has)), has.sum(axis=1))
    sums = (rows == np.unique(rows)[:, None]).astype(float)
    rules = [LinearConstraint(sums, 1, 1), *constraints]
    answer = minimize(
        value,
        start[has],
        jac=gradient,
        method="SLSQP",
        bounds=[(0, 1)] * len(rows),
        constraints=rules,
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return full(np.maximum(answer.x, 0)), float(answer.fun)


def corroboration(layers, weights, teleport, damping, temperature):
    """Layer weights to which corroboration would move with equal priors, and the current ranks."""
    shares, w = shares_of(layers), stationary(transitions(layers, weights, teleport, damping))
    new = np.zeros_like(weights)
    for i, has in enumerate(opinions(layers)):
        mine = np.flatnonzero(has)
        borne_out = []
        for k in mine[: len(mine) if len(mine) > 1 else 0]:
            others = mine[mine != k]
            total = weights[i, others].sum()
            mixed = weights[i, others] @ shares[others, i] / total if total > 0 else w
            t = damping * shares[k, i] + (1 - damping) * teleport
            information = max(xlogy(t, t).sum() + np.log(len(w)), 0.01)
            background = damping * mixed + (1 - damping) * w
            borne_out.append(-rel_entr(t, background).sum() / (temperature * information))
        new[i, mine] = softmax(borne_out) if borne_out else 1.0
    return new, w


def best_lead(layers, teleport, damping, a, b):
    """The largest ``n·(w_a − w_b)`` over all layer weights: an average reward, so a pure choice attains it."""
    shares, n = shares_of(layers), len(teleport)
    rows = [
        damping * shares[has, i] + (1 - damping) * teleport if has.any() else teleport[None]
        for i, has in enumerate(opinions(layers))
    ]
    choices = np.array(list(product(*(range(len(each)) for each in rows))))
    w = stationaries(np.stack([each[choices[:, i]] for i, each in enumerate(rows)], axis=1))
    return float(n * (w[:, a] - w[:, b]).max())


def stationaries(T):
    """Stationary distributions of a stack of matrices."""
    n = T.shape[-1]
    system = np.eye(n) - np.swapaxes(T, 1, 2) + np.ones((n, n))
    return np.linalg.solve(system, np.ones((len(T), n, 1)))[..., 0]


def two_layer_minima(kind, layers, teleport, damping, levels=7, refine=12):
    """Local minima of V for two layers, lowest first: a grid over all λ_i, whose lowest points are refined."""
    both = np.flatnonzero(opinions(layers).all(axis=1))
    fixed = prior_of(layers)
    if not len(both):
        return [cost(kind, layers, fixed, teleport, damping)]

    def weights_at(x):
        weights = np.broadcast_to(fixed, (*x.shape[:-1], *fixed.shape)).copy()
        weights[..., both, 0], weights[..., both, 1] = x, 1 - x
        return weights

    def value(x):
        return cost(kind, layers, weights_at(x), teleport, damping)

    def gradient(x):
        g = weight_gradient(kind, layers, weights_at(x), teleport, damping)
        return g[both, 0] - g[both, 1]

    points = np.array(list(product(np.linspace(0, 1, levels), repeat=len(both))))
    T = transitions(layers, weights_at(points), teleport, damping)
    w = stationaries(T)
    values = (w * phi(kind, T)).sum(axis=1) - phi(kind, w)
    grid = values.reshape((levels,) * len(both))
    beside = generate_binary_structure(grid.ndim, 1)
    lowest = (grid <= minimum_filter(grid, footprint=beside, mode="nearest")).ravel()
    starts = points[lowest][np.argsort(values[lowest])][:refine]
    tight = {"ftol": 1e-15, "gtol": 1e-11}
    bounds = [(0, 1)] * len(both)
    found = [
        minimize(value, x, jac=gradient, method="L-BFGS-B", bounds=bounds, options=tight) for x in starts
    ]
    return sorted(float(each.fun) for each in found)
