"""Costs and intervals of the other classes of convex functions in Acharyya 2013, sections 4.1.2 and 4.3.

C^s contains the s-strongly convex φ, C_l those with an l-Lipschitz gradient, and C_l^s those with both. The slopes of
the link ``(∇φ)⁻¹`` are at most 1/s, at least 1/l, or between the two. :class:`apexrank.objectives.link.UnknownLink` is
the cost of C^s, which is all that a fit needs. The other costs serve to check the claims of the chapter.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from apexrank.objectives.link import UnknownLink
from apexrank.rankers.link import Link


def smooth_cost(theta: ArrayLike, y: ArrayLike, lipschitz: float) -> tuple[float, np.ndarray]:
    """Cost of the best φ of C_l, l = ``lipschitz``, and its gradient with respect to θ.

    φ is in C_l if and only if φ* is 1/l-strongly convex, and ``φ(y) + φ*(θ) − yθ`` is symmetric in the two. This is
    therefore the cost of C^{1/l} with y and θ exchanged,

        m_l(θ) = max_{u in P(θ)} [<u,y> − |u|²/(2l)] + |θ|²/(2l) − <y,θ>.

    At the maximiser ``y − u/l`` is constant on pooled blocks. The gradient is ``θ/l − y`` plus its value at the same
    position in the order.

    Examples
    --------
    >>> smooth_cost([0.0, 1.0], [0.0, 3.0], lipschitz=2.0)
    (0.0, array([0., 0.]))
    >>> smooth_cost([0.0, 9.0], [0.0, 3.0], lipschitz=2.0)
    (1.125, array([-0.75,  0.75]))
    """
    scores, values = np.asarray(theta, dtype=float), np.asarray(y, dtype=float)
    return _smooth_cost(scores, values, lipschitz, np.argsort(scores, kind="stable"))


def _smooth_cost(
    scores: np.ndarray, values: np.ndarray, lipschitz: float, by_score: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the cost and the subgradient for the given order of equal scores."""
    rest, by_value = np.empty(len(values)), np.argsort(values, kind="stable")
    if np.ptp(scores) == 0:
        rest[by_score] = values[by_value]
        return 0.0, rest - values
    value, moved = UnknownLink(scores, strong_convexity=1 / lipschitz).value_and_grad(values)
    rest[by_score] = (values - (scores + moved) / lipschitz)[by_value]
    return value, rest + scores / lipschitz - values


def class_cost(theta: ArrayLike, y: ArrayLike, s: float, lipschitz: float) -> tuple[float, np.ndarray]:
    """Cost of the best φ of C_l^s, 0 < s < l, and its gradient: a Moreau envelope of the cost of C_{l−s}.

    φ is in C_l^s if and only if ``φ = s/2·v² + h`` with h in C_{l−s}, and ``φ*(θ) = min_p (θ − p)²/(2s) + h*(p)``.
    Hence

        m_l^s(θ) = min_p |θ − s·y − p|²/(2s) + m_{l−s}(p),    ∇m_l^s(θ) = (θ − s·y − p)/s,

    with p in the order of θ, where m_{l−s} is smooth: L-BFGS on the gaps of p.

    Examples
    --------
    >>> value, gradient = class_cost([0.0, 9.0], [0.0, 3.0], s=1.0, lipschitz=2.0)
    >>> round(value, 6), gradient.round(6).tolist()
    (1.125, [-0.75, 0.75])
    """
    scores, values = np.asarray(theta, dtype=float), np.asarray(y, dtype=float)
    order, target = np.argsort(scores, kind="stable"), scores - s * values

    def envelope(steps: np.ndarray) -> tuple[float, np.ndarray]:
        p = np.empty(len(scores))
        p[order] = np.cumsum(steps)
        value, slope = _smooth_cost(p, values, lipschitz - s, order)
        missed = target - p
        return value + float(missed @ missed) / (2 * s), np.cumsum((slope - missed / s)[order][::-1])[::-1]

    bounds = [(None, None)] + [(0, None)] * (len(scores) - 1)
    start = np.diff(np.sort(target), prepend=0.0)
    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(envelope, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    p = np.empty(len(scores))
    p[order] = np.cumsum(found.x)
    return float(found.fun), (target - p) / s


def class_interval(
    link: Link, theta: ArrayLike, s: float = 0.0, lipschitz: float = math.inf, gamma: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Interval of the values of all links through the given knots, by class of φ (§4.3, corrected).

    Between knots (θ_l, y_l) and (θ_u, y_u) the interval is

        [max(y_l + (θ − θ_l)/l, y_u − r(θ_u − θ)), min(y_u − (θ_u − θ)/l, y_l + r(θ − θ_l))]

    where r(t) = t/s for C_l^s, C^s (l = ∞) and C_l (s = 0), and ``t^{1/(γ−1)}/s`` for uniformly convex φ with the
    modulus ``s^{γ−1}·t^γ``, whose link is Hölder continuous (4.7).

    Examples
    --------
    >>> link = Link([0.0, 1.0], [0.0, 0.6])
    >>> [part.round(3).tolist() for part in class_interval(link, [0.25], s=1.0)]
    [[0.0], [0.25]]
    >>> [part.round(3).tolist() for part in class_interval(link, [0.25], s=1.0, lipschitz=5.0)]
    [[0.05], [0.25]]
    """
    at = np.asarray(theta, dtype=float)
    k = np.clip(np.searchsorted(link.knots, at, side="right") - 1, 0, len(link.knots) - 2)
    left, right = at - link.knots[k], link.knots[k + 1] - at
    low, high = link.values[k], link.values[k + 1]

    def reach(t: np.ndarray) -> np.ndarray:
        return t ** (1 / (gamma - 1)) / s if s > 0 else np.where(t > 0, math.inf, 0.0)

    return (
        np.maximum(low + left / lipschitz, high - reach(right)),
        np.minimum(high - right / lipschitz, low + reach(left)),
    )
