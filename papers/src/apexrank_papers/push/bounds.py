"""Generalisation bounds: risk on new data against risk on training data (JMLR 2009, sec. 4, Theorems 2 and 3).

Three related bounds are here, too: `r_max_bounds` (Theorem 1) bounds the height of the highest negative by the risk;
`link_stability` and `link_concentration` bound the change of the coefficients of a fit with an unknown link when y
changes or is noisy.

With I positives and K negatives drawn at random, the probability that *some* ranker f of the class F has
``R_true(f) ≥ R_empirical,θ(f) + ε`` is at most

    2·N(F, εθ/8)·( exp(−2·K·max{(ε²/16)·R_min^{2(p−1)}, (ε/4)^{2p}}) + exp(−ε²·I/8 + ln K) ).

Here R is the risk ``( mean over negatives of (share of positives at or below it)^p )^{1/p}``, which
`apexrank.metrics.p_norm_risk` gives with ``normalize=True`` and ``margin=θ``; R_min is the smallest true risk in
the class, and N its covering number in L_∞. Theorem 3 is the whole formula, Theorem 2 the one with R_min = 0.

The bounds hold for every distribution, so they are far from tight. They are useful for their shape: they show how many
more examples a larger p, a smaller ε or a richer class needs. Four facts about the bound:

* The maximum is ``(ε/4)²·max{R_min, ε/4}^{2(p−1)}``: Theorem 3 is better than Theorem 2 exactly when R_min > ε/4.
* The bound falls with I and ε and grows with p, but with K it falls only at first, because of its ``ln K``.
* R_{p,min} grows with p, so R_{1,min}, one minus the best true AUC in the class, can replace it at every p.
* The ``ln K`` and the factor 2 can be dropped (``sharp=True``): ``N·(exp(−2·K·max{…}) + exp(−ε²·I/8))`` holds, too.

*Proof of the last point.* Fix a ranker and a φ between 0 and 1, and split its deviation as the paper does, into
``R_true − R_DS`` (negatives drawn) and ``R_DS − R_empirical`` (positives drawn), each at least ε/4. Only one side of
McDiarmid's inequality is needed for the first: ``exp(−2·K·max{…})``. For the second keep the negatives fixed. The
empirical risk is a norm, scaled by ``K^{−1/p}``, of the vector of heights/I, whose mean over the positives is the
vector of R_DS. A norm is convex, so by Jensen ``E R_empirical ≥ R_DS``. Exchanging one positive moves each entry by
at most 1/I, and with it the norm. McDiarmid's inequality for the norm as a whole gives ``exp(−2·I·(ε/4)²)``, without
a union over the negatives. ∎
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, inf, lgamma, log, log1p
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import eigsh

from apexrank.errors import InputError
from apexrank.prices import PRICES, Price

MOST_DENSE = 3000  # largest size of a Gram matrix that is decomposed densely
LogCovering = float | Callable[[float], float]

_SMALLEST_RATE = 1e-290  # its reciprocal, the number of negatives, is still well inside a float


def log_covering_linear(radius: float, norm_bound: float, feature_bound: float, n_features: int) -> float:
    """Upper bound ``n·ln(1 + 2·B·X/r)`` on the log covering number of a norm-bounded linear class.

    The class is ``{x ↦ w·x : |w| ≤ B}`` on ``|x|_* ≤ X`` for any norm and its dual; the Euclidean norm is its own dual.

    *Proof.* ``sup_x |w·x − v·x| ≤ X·|w − v|``, so it is enough to cover the ball of radius B in R^n by balls of
    radius ``s = r/X``. Choose points of that ball more than s apart until no further one fits; now each point of
    the ball is within s of a chosen one. The balls of radius s/2 around the N chosen points are disjoint and lie in
    the ball of radius ``B + s/2``; comparing volumes, ``N·(s/2)^n ≤ (B + s/2)^n``, that is ``N ≤ (1 + 2B/s)^n``.
    The centres belong to the class, which Theorem 3 needs for its R_min.

    Parameters
    ----------
    radius : float
        Radius r of the balls in L_∞; the theorems use ``ε·θ/8``.
    norm_bound, feature_bound : float
        B and X.
    n_features : int
        n, the dimension of w.

    Examples
    --------
    >>> round(log_covering_linear(0.5, norm_bound=1.0, feature_bound=1.0, n_features=3), 6)
    4.828314
    """
    for name, value in (("radius", radius), ("norm_bound", norm_bound), ("feature_bound", feature_bound)):
        _check(name, value, 0, inf)
    return n_features * log1p(2 * norm_bound * feature_bound / radius)


def log_covering_sloppy(radius: float, theta: float, p: float, n_rankers: int) -> float:
    """Log size of a sloppy cover of the weighted means of weak rankers with values in [0, 1].

    A sloppy cover may miss some rows by more than its radius. JMLR 2009, sec. 4, suggests it to tighten the bounds
    (after R. E. Schapire and others, *Boosting the margin*, 1998). The cover consists of the means of m rankers, with
    repetition: ``N = C(n + m − 1, m)``, ``m = ⌈2·(ln 4 + p·ln(16/ε))/r²⌉`` for the radius ``r = ε·θ/8``. So ``ln N``
    grows with the *logarithm* of the number of rankers, whereas `log_covering_linear` grows with the number itself, and
    with p by a factor of at most p. Count a ranker twice if it may also be used reversed, as 1 − h.

    *Proof* that it can replace N in Theorems 2 and 3. Draw the m rankers by the weights of f. By Hoeffding's
    inequality their mean g is further than ``τ = r/2`` from f(x) with probability at most ``2·exp(−2mτ²)``, for any x.
    So the shares of such rows among positives and negatives, on new data and in the sample, add up to at most
    ``η = 8·exp(−2mτ²) ≤ 2·(ε/16)^p`` in the mean, hence for some g of the cover. With φ of slope 1/θ, Minkowski's
    inequality bounds ``|R_φ(f) − R_φ(g)|`` by ``2τ/θ + η₊ + η₋^{1/p}``: misplaced positives cost their share,
    misplaced negatives its p-th root. Twice ``2τ/θ`` is ε/4; the rest is at most ``η + 2·(η/2)^{1/p} ≤ ε/8 + ε/8``. So
    ``R_true − R_empirical`` is as large for g as for f up to ε/2, which is all that the theorems use of a cover. And
    the g belong to the class. ∎

    Parameters
    ----------
    radius : float
        Radius r; the theorems use ``ε·θ/8``, and ε is found from it.
    theta, p : float
        As in `failure_log_probability`.
    n_rankers : int
        n, the number of weak rankers.

    Examples
    --------
    Compare the size of the cover with that of the Euclidean ball of the same dimension, which contains the means.

    >>> sloppy = [log_covering_sloppy(0.025, 0.5, 2, n) for n in (10**3, 10**6, 10**9)]
    >>> linear = [log_covering_linear(0.025, 1.0, n**0.5, n) for n in (10**3, 10**6, 10**9)]
    >>> [f"{a:.0e} {b:.0e}" for a, b in zip(sloppy, linear)]
    ['4e+03 8e+03', '1e+05 1e+07', '3e+05 1e+10']
    """
    for name, value in (("radius", radius), ("theta", theta)):
        _check(name, value, 0, inf)
    epsilon = 8 * radius / theta
    _check("epsilon", epsilon, 0, 1)
    _check("n_rankers", n_rankers, 0, inf, right_open=True)
    _check_p(p)
    m = ceil(2 * (log(4) + p * log(16 / epsilon)) / radius**2)
    return lgamma(n_rankers + m) - lgamma(n_rankers) - lgamma(m + 1)


def failure_log_probability(
    epsilon: float,
    theta: float,
    p: float,
    n_positives: float,
    n_negatives: float,
    log_covering: LogCovering,
    r_min: float = 0.0,
    *,
    sharp: bool = False,
) -> float:
    """Logarithm of the bound of JMLR 2009, Theorem 3 (Theorem 2 with ``r_min=0``); vacuous above 0.

    Parameters
    ----------
    epsilon : float in (0, 1]
        ε, the excess of the true risk over the training risk.
    theta : float
        θ > 0, the margin at which the training risk is taken.
    p : float
        Power of the push, at least 1.
    n_positives, n_negatives : float
        I and K.
    log_covering : callable or float
        ``ln N(F, r)`` as a function of the radius r, for example `log_covering_linear` or `log_covering_sloppy` with
        their other arguments bound by `functools.partial`. For a finite class pass the number ``ln |F|``.
    r_min : float in [0, 1]
        R_min or a lower bound on it. The smallest true risk of the centres of the cover is valid, too (sec. 10).
    sharp : bool
        Drop the ``ln K`` and the factor 2 of the printed bound, which are not needed (see the proof above).

    Returns
    -------
    float
        Natural logarithm of the bound; finite even where the bound itself would underflow or overflow.

    Examples
    --------
    >>> from functools import partial
    >>> linear = partial(log_covering_linear, norm_bound=1.0, feature_bound=1.0, n_features=10)
    >>> round(failure_log_probability(0.2, 0.1, 1, 50_000, 50_000, linear), 3)
    -171.628
    >>> round(failure_log_probability(0.2, 0.1, 1, 50_000, 50_000, linear, sharp=True), 3)
    -182.448
    """
    log_classes = _log_covers(epsilon, theta, log_covering, sharp)
    negatives, positives = _exponents(epsilon, p, n_positives, n_negatives, r_min, sharp)
    return log_classes + float(np.logaddexp(negatives, positives))


def failure_probability(
    epsilon: float,
    theta: float,
    p: float,
    n_positives: float,
    n_negatives: float,
    log_covering: LogCovering,
    r_min: float = 0.0,
    *,
    sharp: bool = False,
) -> float:
    """Bound of JMLR 2009, Theorem 3, at most 1; parameters as in `failure_log_probability`.

    Examples
    --------
    >>> two_rankers = 0.6931471805599453
    >>> round(failure_probability(0.5, 0.1, 1, 400, 400, two_rankers), 4)
    0.006
    >>> failure_probability(0.5, 0.1, 8, 400, 400, two_rankers)
    1.0
    """
    sizes = n_positives, n_negatives
    return exp(min(0.0, failure_log_probability(epsilon, theta, p, *sizes, log_covering, r_min, sharp=sharp)))


def negatives_needed(
    epsilon: float,
    delta: float,
    theta: float,
    p: float,
    log_covering: LogCovering,
    *,
    n_positives: float = inf,
    r_min: float = 0.0,
    sharp: bool = False,
) -> float:
    """Smallest number K of negatives for which the bound is at most δ (JMLR 2009, Theorems 2 and 3, solved for K).

    With I → ∞ it is ``K = (ln 2N − ln δ) / (2·rate)``, where ``rate = (ε/4)²·max{R_min, ε/4}^{2(p−1)}``. Each further
    unit of p multiplies it by ``max{R_min, ε/4}^{−2}``.

    Parameters
    ----------
    epsilon, theta, p, log_covering, r_min, sharp
        As in `failure_log_probability`.
    delta : float in (0, 1)
        δ, the allowed probability of failure.
    n_positives : float
        I; infinite by default.

    Returns
    -------
    float
        A whole number; inf beyond about 1e290.

    Raises
    ------
    InputError
        If there are too few positives for any number of negatives.

    Examples
    --------
    >>> [negatives_needed(0.4, 0.05, 0.1, p, 0.0) for p in (1, 2, 3)]
    [185.0, 18445.0, 1844440.0]
    >>> [negatives_needed(0.4, 0.05, 0.1, p, 0.0, r_min=0.5) for p in (1, 2, 3)]
    [185.0, 738.0, 2952.0]
    """
    _check("delta", delta, 0, 1, right_open=True)
    log_budget = log(delta) - _log_covers(epsilon, theta, log_covering, sharp)
    rate = _rate(epsilon, p, r_min)
    if rate < _SMALLEST_RATE:
        return inf

    def excess(n_negatives: float) -> float:
        return (
            float(np.logaddexp(*_exponents(epsilon, p, n_positives, n_negatives, r_min, sharp))) - log_budget
        )

    if n_positives == inf:
        return _whole(max(-log_budget, 0.0) / (2 * rate))
    # exp(−aK) + K·exp(−b) is convex in K with its minimum at ln(a·e^b)/a, so the first crossing lies below that.
    # The sharp bound, without the factor K, decreases in K everywhere.
    lowest = (log(2 * rate) + epsilon**2 * n_positives / 8) / (2 * rate)
    best = 1e300 if sharp else min(max(1.0, lowest), 1e300)
    if excess(best) > 0:
        raise InputError(
            f"{n_positives:g} positives are too few for `epsilon={epsilon:g}` and `delta={delta:g}`, "
            "whatever the number of negatives: use more positives, or a larger epsilon or delta"
        )
    return _whole(_least(excess, 1.0, best))


def positives_needed(
    epsilon: float,
    delta: float,
    theta: float,
    p: float,
    n_negatives: float,
    log_covering: LogCovering,
    *,
    r_min: float = 0.0,
    sharp: bool = False,
) -> float:
    """Smallest number I of positives for which the bound is at most δ with K negatives (JMLR 2009, Theorems 2 and 3).

    ``I = (8/ε²)·(ln K + ln 2N − ln(δ − 2N·exp(−2·K·rate)))``: the positives get the part of δ that the K negatives do
    not use up, and through ``ln K`` more negatives need more positives. As K must grow with p, so must I.
    With ``sharp=True`` the ``ln K`` and the 2 drop out, and more negatives never need more positives.

    Parameters and return value as in `negatives_needed`, with K as ``n_negatives``.

    Raises
    ------
    InputError
        If there are too few negatives for any number of positives.

    Examples
    --------
    >>> [positives_needed(0.4, 0.05, 0.1, 1, n_negatives, 0.0) for n_negatives in (185, 200, 400, 10**6)]
    [671.0, 516.0, 485.0, 876.0]
    >>> [positives_needed(0.4, 0.05, 0.1, 1, n, 0.0, sharp=True) for n in (185, 200, 400, 10**6)]
    [184.0, 173.0, 151.0, 150.0]
    """
    _check("delta", delta, 0, 1, right_open=True)
    log_budget = log(delta) - _log_covers(epsilon, theta, log_covering, sharp)
    spent = _exponents(epsilon, p, inf, n_negatives, r_min, sharp)[0]
    if spent >= log_budget:
        fewest = negatives_needed(epsilon, delta, theta, p, log_covering, r_min=r_min, sharp=sharp)
        raise InputError(
            f"{n_negatives:g} negatives are too few for `epsilon={epsilon:g}`, `delta={delta:g}` and `p={p:g}`, "
            f"whatever the number of positives: use more than {max(fewest, n_negatives):g}"
        )
    left = log_budget + log1p(-exp(spent - log_budget))
    return _whole(((0.0 if sharp else log(n_negatives)) - left) * 8 / epsilon**2)


def epsilon_bound(
    delta: float,
    theta: float,
    p: float,
    n_positives: float,
    n_negatives: float,
    log_covering: LogCovering,
    *,
    r_min: float = 0.0,
    sharp: bool = False,
) -> float:
    """Smallest ε such that, with probability at least 1 − δ, ``R_true(f) < R_empirical,θ(f) + ε`` for every f in F.

    It is found by bisection, because the covering number depends on ε, too. A value of 1 means that the bound is
    vacuous, as no risk exceeds 1. Parameters as in `negatives_needed`.

    Examples
    --------
    >>> from functools import partial
    >>> linear = partial(log_covering_linear, norm_bound=1.0, feature_bound=1.0, n_features=10)
    >>> [round(epsilon_bound(0.05, 0.1, p, 10**6, 10**6, linear), 3) for p in (1, 2, 4)]
    [0.029, 0.304, 1.0]
    """
    _check("delta", delta, 0, 1, right_open=True)

    def excess(epsilon: float) -> float:
        return failure_log_probability(
            epsilon, theta, p, n_positives, n_negatives, log_covering, r_min, sharp=sharp
        ) - log(delta)

    return 1.0 if excess(1.0) > 0 else _least(excess, 1e-12, 1.0)


def r_max_bounds(log_risk: float, n_negatives: float, price: str | Price) -> tuple[float, float]:
    """Lower and upper bound on the height R_max of the highest negative, given the risk ``R_{g,1}`` (Theorem 1).

    JMLR 2009, Theorem 1: ``K·g(R_max/K) ≤ R_{g,1} ≤ K·g(R_max)`` for a convex increasing price g. Solved for R_max it
    is ``g⁻¹(R/K) ≤ R_max ≤ K·g⁻¹(R/K)``. The upper bound returned here is lower and needs no convexity: one negative
    has the height R_max and the other K − 1 at least 0, so ``R_max ≤ g⁻¹(R − (K − 1)·g(0))``. For a power it is
    ``R^{1/p}`` instead of the printed ``K^{1 − 1/p}·R^{1/p}``. As ``R_{g,1} ≤ R_{g,ℓ}`` for a loss ℓ above the 0-1
    loss (exponential, hinges, logistic over ln 2), the upper bound also holds for the risk that a fit minimises.

    Parameters
    ----------
    log_risk : float
        ``ln R_{g,1}``, finite; for a power, `apexrank.metrics.p_norm_risk` with ``log=True`` returns it.
    n_negatives : float
        K, the number of negatives.
    price : str or Price
        g, from `apexrank.prices`; it must not decrease.

    Examples
    --------
    The list of JMLR 2009, Table 1, where R_max is 2 and R_4 is 33.

    >>> from apexrank.prices import Power
    >>> low, high = r_max_bounds(np.log(33), 4, Power(4))
    >>> round(low, 2), round(high, 2), round(4 * low, 2)  # the last is the printed upper bound
    (1.69, 2.4, 6.78)
    """
    _check("log_risk", log_risk, -inf, inf, right_open=True)
    _check("n_negatives", n_negatives, 0, inf, right_open=True)
    price = PRICES.get(price)
    if price.falls():
        raise InputError(f"the {price.name} price falls with the height: the bounds need one that never does")
    slack = 1e-12 * max(1.0, abs(log_risk))  # where g is flat, rounding could swap the two bounds

    def least_height(log_price: float) -> float:
        return _least(lambda r: log_price - float(price.log_value(np.log(r))), 1e-300, 1e300)

    with np.errstate(all="ignore"):
        log_zero = float(price.log_value(np.array(-inf)))
        others = (n_negatives - 1) * exp(log_zero - log_risk)
        mean = log_risk - log(n_negatives) - slack
        if log_zero > mean + 2 * slack:
            raise InputError(f"{n_negatives:g} negatives cost more than exp({log_risk:g}) at any height")
        return least_height(mean) if mean > log_zero else 0.0, least_height(log_risk + log1p(-others) + slack)


def link_stability(X: Any, y: ArrayLike, y_changed: ArrayLike, alpha: float) -> float:
    """Bound ``2·min(|X|·|ỹ − y|, R·|ỹ − y|₁) / (n·alpha)`` on the change of the coefficients when y changes to ỹ.

    It holds for the minimiser w of ``(1/n)·m_s(X·w) + alpha/2·|w|²``, the cost of an unknown link, for every s. |X| is
    the spectral norm, and R the largest distance of a row from the mean row. The first bound is Theorem 8 of S.
    Acharyya's dissertation (2013), where the 2 is missing; the second is much lower if few values of y change.

    *Proof.* The gradient at w is ``Xᵀ(v − y)/n + alpha·w``, v the projection of ``X·w/s`` onto the permutahedron of y.
    As ``v = z − PAV(z − y↓)`` in decreasing order and PAV is a projection, v moves by at most ``|ỹ↓ − y↓|``, which is
    at most ``|ỹ − y|``. PAV also keeps sums and order, so it does not increase distances in the 1-norm either (Crandall
    and Tartar 1980), and ``Σ (v − y) = 0`` lets rows be counted from their mean. So the gradient moves by at most
    ``2·|X|·|ỹ − y|/n`` and ``2·R·|ỹ − y|₁/n``, and the minimiser of an alpha-strongly convex function by that divided
    by alpha. The 2 cannot be lowered: if the scores of the rows are in the wrong order, v and y move in opposite
    directions.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        Rows of the fit.
    y, y_changed : array-like of shape (n,)
        y and ỹ.
    alpha : float
        Strength of the penalty, above 0.

    Examples
    --------
    >>> round(link_stability([[3.0, 0.0], [0.0, 4.0]], [1.0, 2.0], [1.0, 2.5], alpha=0.1), 6)
    12.5
    """
    before, after = np.asarray(y, dtype=float), np.asarray(y_changed, dtype=float)
    rows, unit = _checked_rows(X, alpha)
    if before.shape != (rows.shape[0],) or after.shape != before.shape:
        raise InputError(
            f"X needs two dimensions, and y and y_changed one number per row: "
            f"got shapes {rows.shape}, {before.shape} and {after.shape}"
        )
    change = after - before
    if not np.isfinite(change).all():
        raise InputError("X, y and y_changed must be finite numbers: fill or drop missing values")
    whole = _spectral_norm(rows) * float(np.linalg.norm(change))
    return 2 * unit * min(whole, _radius(rows) * float(np.abs(change).sum())) / (len(before) * alpha)


def link_concentration(X: Any, noise: float, alpha: float, delta: float = 0.05) -> float:
    """Concentration bound on the coefficients of a fit with noisy y: their distance from the mean.

    Let w minimise ``(1/n)·m_s(X·w) + alpha/2·|w|²``, and let the y_i be independent with sub-Gaussian deviations from
    their means, ``E exp(λ(y_i − E y_i)) ≤ exp(λ²·noise²/2)``. Then with probability at least 1 − delta

        |w − E w| ≤ 2·R·noise·(1 + 2·√ln(1/delta)) / (alpha·√n),

    where R is the largest distance of a row from the mean row; the bound does not depend on the dimension. It replaces
    Theorem 9 of S. Acharyya's dissertation (2013), which is false. E w itself is within ``2·R·noise/alpha`` of the
    coefficients for ``E y``, a bias that more rows do not remove.

    *Proof.* By :func:`link_stability` a change of y_i by t moves w by at most ``c·|t|``, c = 2R/(n·alpha). Efron and
    Stein's inequality gives ``E|w − E w|² ≤ n·c²·noise²``, the variance of y_i being at most noise². The function
    f = |w − E w| changes by at most ``c·|t|``, too. Its martingale differences D_i, given the others, satisfy
    ``E exp(λD_i) ≤ E cosh(λc(y_i − y_i')) = E exp(λc(y_i − y_i')) ≤ exp(λ²c²·noise²)`` with y_i' an independent copy,
    by Jensen and symmetry. So ``f − E f`` is sub-Gaussian with variance 2n·c²·noise², and exceeds
    ``2·c·noise·√(n·ln(1/delta))`` with probability delta at most.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        Rows of the fit.
    noise : float
        Sub-Gaussian scale: the standard deviation of normal noise, half the width of the range of bounded y,
        ``1/√s`` for an exponential family whose negative entropy is s-strongly convex.
    alpha : float
        Strength of the penalty, above 0.
    delta : float
        Probability in (0, 1).

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(10_000, 3))
    >>> round(link_concentration(X, noise=0.1, alpha=0.1), 3)
    0.153
    """
    _check("noise", noise, 0, inf)
    _check("delta", delta, 0, 1, right_open=True)
    rows, unit = _checked_rows(X, alpha)
    spread = 2 * unit * _radius(rows) * noise / (alpha * np.sqrt(rows.shape[0]))
    return float(spread * (1 + 2 * np.sqrt(-log(delta))))


def _checked_rows(X: Any, alpha: float) -> tuple[Any, float]:
    """Return the rows divided by their largest absolute value, so that squares cannot overflow, and that value."""
    _check("alpha", alpha, 0, inf)
    rows = X.astype(float) if sparse.issparse(X) else np.asarray(X, dtype=float)
    if rows.ndim != 2 or not rows.shape[0]:
        raise InputError(f"X needs two dimensions and at least one row, got shape {rows.shape}")
    entries = np.asarray(rows.data if sparse.issparse(rows) else rows)
    if not np.isfinite(entries).all():
        raise InputError("the entries of X must be finite numbers: fill or drop missing values")
    unit = float(np.abs(entries).max(initial=0.0)) or 1.0
    return rows / unit, unit


def _radius(rows: Any) -> float:
    """Largest distance of a row from the mean row."""
    mean = np.asarray(rows.mean(axis=0)).ravel()
    if not sparse.issparse(rows):
        return float(np.linalg.norm(rows - mean, axis=1).max())
    squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel() - 2 * (rows @ mean) + mean @ mean
    return float(np.sqrt(max(squares.max(), 0.0)))


def _spectral_norm(rows: Any) -> float:
    gram = rows.T @ rows if rows.shape[1] <= rows.shape[0] else rows @ rows.T
    if gram.shape[0] > MOST_DENSE:
        return float(np.sqrt(eigsh(gram, 1, v0=np.ones(gram.shape[0]), return_eigenvectors=False)[0]))
    return float(np.sqrt(np.linalg.eigvalsh(gram.toarray() if sparse.issparse(gram) else gram)[-1]))


def _log_covers(epsilon: float, theta: float, log_covering: LogCovering, sharp: bool) -> float:
    """Return ``ln(2·N(F, εθ/8))``, without the 2 for the sharp bound."""
    _check("epsilon", epsilon, 0, 1)
    _check("theta", theta, 0, inf)
    log_n = log_covering(epsilon * theta / 8) if callable(log_covering) else float(log_covering)
    return log_n if sharp else log(2) + log_n


def _rate(epsilon: float, p: float, r_min: float) -> float:
    """Return ``max{(ε²/16)·R_min^{2(p−1)}, (ε/4)^{2p}}``."""
    _check_p(p)
    if not 0 <= r_min <= 1:
        raise InputError(f"`r_min` must be a number from 0 to 1, got {r_min!r}")
    return exp(2 * log(epsilon / 4) + 2 * (p - 1) * log(max(r_min, epsilon / 4)))


def _exponents(
    epsilon: float, p: float, I: float, K: float, r_min: float, sharp: bool
) -> tuple[float, float]:
    """Return ``−2·K·rate`` and ``−ε²·I/8 + ln K``, without ``ln K`` for the sharp bound."""
    _check("n_positives", I, 0, inf)
    _check("n_negatives", K, 0, inf, right_open=True)
    return -2 * K * _rate(epsilon, p, r_min), -(epsilon**2) * I / 8 + (0.0 if sharp else log(K))


def _least(excess: Callable[[float], float], low: float, high: float) -> float:
    """Smallest x in [low, high] with ``excess(x) ≤ 0``, for a decreasing ``excess`` with ``excess(high) ≤ 0``."""
    if excess(low) <= 0:
        return low
    # Bisection in log x, because x may lie anywhere between 1e-12 and 1e300.
    for _ in range(200):
        middle = low**0.5 * high**0.5
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _whole(x: float) -> float:
    return max(1.0, float(ceil(x)))


def _check_p(p: float) -> None:
    if not 1 <= p < inf:
        raise InputError(f"`p` must be a finite number of at least 1, got {p!r}: there is no bound for R_max")


def _check(name: str, value: float, low: float, high: float, right_open: bool = False) -> None:
    if not (low < value <= high) or (right_open and value == high):
        bracket = ")" if right_open or high == inf else "]"
        raise InputError(f"`{name}` must be a number in ({low:g}, {high:g}{bracket}, got {value!r}")
