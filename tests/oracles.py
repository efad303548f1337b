"""Slow, independent oracles: every pair is visited, nothing is factorised."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from apexrank.losses import LOSSES

LOG_PRICES = {
    "power": lambda log_r, p: p * log_r,
    "identity": lambda log_r, p: log_r,
    "exponential": lambda log_r, p: np.exp(log_r),
    "log1p": lambda log_r, p: np.log(np.log1p(np.exp(log_r))),
}
WITH_EXPONENTIAL_LOSS = {
    "power": lambda log_risk, p: log_risk / p,
    "identity": lambda log_risk, p: log_risk,
    "exponential": lambda log_risk, p: log_risk,
    "log1p": lambda log_risk, p: np.exp(log_risk),
}
WITH_OTHER_LOSSES = {
    "power": lambda log_risk, p: np.exp(log_risk / p),
    "identity": lambda log_risk, p: np.exp(log_risk),
    "exponential": lambda log_risk, p: log_risk,
}


def log_push_risk(f, g, loss="exponential", price="power", p=1.0, side="top", u=None, v=None):
    """Log of ``Σ_k v_k g(Σ_i u_i ℓ(f_i − g_k))`` (top), or of ``Σ_i u_i g(Σ_k v_k ℓ(f_i − g_k))`` (bottom)."""
    f, g = np.asarray(f, float), np.asarray(g, float)
    u = np.ones(len(f)) if u is None else u
    v = np.ones(len(g)) if v is None else v
    with np.errstate(divide="ignore"):
        margins = f[:, None] - g[None, :]
        log_loss = -margins if loss == "exponential" else np.log(LOSSES.get(loss).value(margins))
        axis, inner, outer = (0, u[:, None], v) if side == "top" else (1, v[None, :], u)
        log_heights = logsumexp(log_loss + np.log(inner), axis=axis)
        return float(logsumexp(LOG_PRICES[price](log_heights, p) + np.log(outer)))


def push_objective(
    scores,
    positive,
    groups=None,
    weight=None,
    loss="exponential",
    price="power",
    p=1.0,
    side="top",
    balance=1.0,
):
    """Objective of a ranker, group by group and pair by pair."""
    forms = WITH_EXPONENTIAL_LOSS if loss == "exponential" else WITH_OTHER_LOSSES
    scores, positive = np.asarray(scores, float), np.asarray(positive, bool)
    groups = np.zeros(len(scores)) if groups is None else np.asarray(groups)
    weight = np.ones(len(scores)) if weight is None else np.asarray(weight, float)
    factors = {"top": {"top": 1.0}, "bottom": {"bottom": 1.0}, "both": {"top": 1.0, "bottom": balance}}[side]
    values = []
    for q in np.unique(groups):
        up, down = (groups == q) & positive & (weight > 0), (groups == q) & ~positive & (weight > 0)
        if not (up.any() and down.any()):
            continue
        values.append(
            sum(
                factor
                * forms[price](
                    log_push_risk(scores[up], scores[down], loss, price, p, s, weight[up], weight[down]),
                    p,
                )
                for s, factor in factors.items()
            )
        )
    return float(np.mean(values))


def numerical_gradient(function, x, step=1e-5):
    """Central differences, fourth order."""
    x = np.asarray(x, float)
    gradient = np.empty_like(x)
    for i in range(len(x)):
        e = np.zeros_like(x)
        e[i] = step
        near, far = function(x + e) - function(x - e), function(x + 2 * e) - function(x - 2 * e)
        gradient[i] = (8 * near - far) / (12 * step)
    return gradient


def papers_coordinate_descent(M, p, rounds, minimise):
    """JMLR 2009, Fig. 2, literally: M has shape (I, K, n); pair weights d_ik are stored and updated."""
    I, K, n = M.shape
    lam, d = np.zeros(n), np.full((I, K), 1 / (I * K))
    for _ in range(rounds):
        d_tilde = d * d.sum(axis=0) ** (p - 1)
        edge = np.einsum("ik,ikj->j", d_tilde, M)
        j = int(np.abs(edge).argmax())
        step = minimise(
            lambda a, j=j, d=d: float(np.log(((d * np.exp(-a * M[:, :, j])).sum(axis=0) ** p).sum()))
        )
        lam[j] += step
        d = d * np.exp(-step * M[:, :, j])
        d /= d.sum()
    return lam
