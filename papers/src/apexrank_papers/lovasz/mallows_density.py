"""Exact normaliser of the Lovász–Mallows density over scores in the box [0, 1]ⁿ.

    Z(θ, σ) = ∫_{[0,1]ⁿ} exp(−θ·d(x‖σ)) dx,                                              Iyer and Bilmes, eq. (23).

On the scores sorted by π the divergence is linear, with the value ``D(S) = f(S) − h_σ(S)`` at the corner of the box
that corresponds to the set S. So the integral over these scores is the divided difference of exp at
``−θ·D(S_0), …, −θ·D(S_n)``, where S_k are the first k items of π, and Z is a sum of n! of them. A divided difference of
exp is the corner entry of the exponential of a bidiagonal matrix; hence **the sum over all orders is one entry of one
matrix exponential**, ``Z = exp(M)[∅, V]`` with ``M[S, S] = −θ·D(S)`` and ``M[S, S ∪ j] = 1``: 2ⁿ·n steps instead of n!.

The exponential is the Cauchy integral of ``e^z (z − M)⁻¹``, where the inverse is one back substitution. All eigenvalues
are real and at most 0, so a parabola around the negative axis through the saddle point ``z = n + 1`` gives Z and its
derivatives in θ to rounding error with about 20 to 35 points, for every θ.

If f depends only on the size of a set, Z does not depend on σ, and items with equal gains are counted together: ``top``
then has (m + 1)(n − m + 1) states instead of 2ⁿ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.special import gammaln, logsumexp

from apexrank.aggregation.kendall_mallows import DivergenceMoments, Normaliser
from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.errors import InputError
from apexrank.submodular import SetFunction, is_by_size
from apexrank.submodular.base import by_item
from apexrank.validation import check_choice, check_finite
from apexrank_papers.lovasz.mallows_kernels import draw_levels, gibbs_sweeps, resolvent, uniformised_powers

MAX_STATES = 2**20  # about 3 seconds for one value of θ
MAX_STRENGTH = (
    1e6  # largest θ times the mean divergence of uniform scores; beyond it all voters agree in practice
)


@dataclass(frozen=True)
class Lattice:
    """Sets of items, represented as counts of each kind of items; see :mod:`apexrank_papers.lovasz.mallows_kernels`.

    ``cost`` is D of each state, ``ranks[g]`` the ranks in σ of the items of kind g.
    """

    cost: np.ndarray
    counts: np.ndarray
    strides: np.ndarray
    ranks: tuple[np.ndarray, ...]

    @classmethod
    def of_gains(cls, gains: np.ndarray) -> Lattice:
        """Create the lattice of a function of the size of a set from its gains."""
        kind, counts = _kinds(gains)
        strides = np.concatenate([[1], np.cumprod(counts + 1)[:-1]])
        size, own = np.zeros(1, dtype=np.int64), np.zeros(1)
        for count, gain in zip(counts, np.bincount(kind, weights=gains) / counts, strict=True):
            inside = np.arange(count + 1)[:, None]
            size, own = (size + inside).ravel(), (own + inside * gain).ravel()
        cost = np.concatenate([[0.0], np.cumsum(gains)])[size] - own
        ranks = tuple(np.flatnonzero(kind == g) for g in range(len(counts)))
        return cls(_clean(cost), counts, strides, ranks)

    @classmethod
    def of_values(cls, values: np.ndarray, order: np.ndarray, h: np.ndarray) -> Lattice:
        """Create the lattice of any f from its values on all subsets and the gains h of the items along the order σ."""
        n = len(order)
        cost = values.copy()
        for item in range(n):
            cost.reshape(-1, 2, 2**item)[:, 1] -= h[item]
        rank = np.argsort(order)
        singles = tuple(rank[[item]] for item in range(n))
        return cls(_clean(cost), np.ones(n, dtype=np.int64), 2 ** np.arange(n), singles)


def _clean(cost: np.ndarray) -> np.ndarray:
    """Set costs that differ from 0 only by rounding to 0, because a large θ would amplify them."""
    return np.where(cost > 1e-14 * cost.max(), cost, 0.0)


def _kinds(gains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Group ranks with equal gains: return the kind of each rank and the number of ranks of each kind."""
    scale = float(np.abs(gains).max()) or 1.0
    _, kind, counts = np.unique(np.round(gains / scale, 12), return_inverse=True, return_counts=True)
    return kind, counts


def n_states(f: SetFunction, n: int) -> int:
    """Number of states of the exact sum.

    Examples
    --------
    >>> from apexrank.submodular import Sqrt, Top
    >>> n_states(Sqrt(), 10), n_states(Top(3), 10)
    (1024, 32)
    """
    gains = size_gains(f, n)
    return 2**n if gains is None else math.prod(int(count) + 1 for count in _kinds(gains)[1])


def size_gains(f: SetFunction, n: int) -> np.ndarray | None:
    """Return the gains by rank if f is a function of the size of a set only, else None.

    Examples
    --------
    >>> from apexrank.submodular import Chain, Top
    >>> size_gains(Top(2) + Top(1), 3).tolist(), size_gains(Chain(), 3)
    ([2.0, 1.0, 0.0], None)
    """
    return f.gains(np.arange(n)) if is_by_size(f) else None


@lru_cache(maxsize=1)  # components and voters request the same function
def subset_values(f: SetFunction, n: int) -> np.ndarray:
    """Compute f on all 2ⁿ subsets; bit i of an index tells whether item i is in the set.

    Examples
    --------
    >>> from apexrank.submodular import Top
    >>> subset_values(Top(1), 2).tolist()
    [0.0, 1.0, 1.0, 1.0]
    """
    _check_states(2**n, n)
    chunks = np.array_split(np.arange(2**n), max(1, 2**n // 4096))
    return np.concatenate([f._values((chunk[:, None] >> np.arange(n)) & 1 == 1) for chunk in chunks])


def _check_states(states: int, n: int) -> None:
    if states > MAX_STATES:
        raise InputError(
            f"{n} items are too many for the exact sum over subsets, which has at most {MAX_STATES} states: "
            "use at most 20 items, or a function of the size of a set such as 'top', or the Monte Carlo method"
        )


class ScoreNormaliser(Normaliser):
    """Base class of the normalisers of densities over scores, exact or estimated."""

    lattice: Lattice | None = None

    def standard_error(self, theta: float) -> float:
        """Return the standard error of ``log Z(θ)``, 0 if it is exact."""
        return 0.0


class BoxNormaliser(ScoreNormaliser):
    """Exact ``Z(θ, σ)`` of the density ``exp(−θ·d(x‖σ))/Z`` over scores in [0, 1]ⁿ.

    Parameters
    ----------
    f : SetFunction
        Submodular function.
    n : int
        Number of items.
    order : array of shape (n,)
        σ, best first; the identity by default. It only matters if f is not a function of the size of a set.

    Examples
    --------
    >>> from apexrank.submodular import SET_FUNCTIONS
    >>> normaliser = BoxNormaliser(SET_FUNCTIONS.get("sqrt"), 3)
    >>> round(normaliser.at(0.0).log_z, 12) + 0.0, round(normaliser.at(10.0).log_z, 6)
    (0.0, -0.831369)
    """

    lattice: Lattice

    def __init__(self, f: SetFunction, n: int, order: np.ndarray | None = None) -> None:
        _check_states(n_states(f, n), n)
        gains = size_gains(f, n)
        if gains is not None:
            self.lattice = Lattice.of_gains(gains)
        else:
            order = np.arange(n) if order is None else np.asarray(order)
            self.lattice = Lattice.of_values(subset_values(f, n), order, by_item(f.gains(order), order))
        self._known: dict[float, DivergenceMoments] = {}
        self.largest_theta = MAX_STRENGTH / (self.at(0.0).mean or 1.0)

    def at(self, theta: float) -> DivergenceMoments:
        check_finite("theta", theta, 0)
        theta = float(theta)
        if theta not in self._known:
            self._known[theta] = _moments(self.lattice, theta)
        return self._known[theta]


def _moments(lattice: Lattice, theta: float) -> DivergenceMoments:
    """Evaluate the Cauchy integral over the parabola ``z = μ(1 + iu)²`` by the trapezoidal rule.

    ``e^z/z^{n+1}`` has its saddle at n + 1. Around it the integrand decays like ``exp(−2μu²)``, so the step is a fixed
    fraction of 1/√μ; a smaller μ would bring the parabola too close to the eigenvalues. Every transition is multiplied
    by e, which keeps ``n!/μ^n ≈ e^{−n}`` in range for large n.
    """
    n = int(lattice.counts.sum())
    mu = max(n + 1.0, 6.0)
    step = min(0.3 / math.sqrt(mu), 0.08)
    room = np.empty((len(lattice.cost), 3), dtype=complex)
    total = np.zeros(3)
    for u in np.arange(0.0, math.sqrt(40.0 / mu), step):
        root = complex(1.0, u)
        z = mu * root**2
        entries = resolvent(z, theta, lattice.cost, lattice.counts, lattice.strides, math.e, room)
        weight = np.exp(z - mu) * mu * root * step / math.pi
        total += (np.array(entries) * weight).real * (1.0 if u == 0 else 2.0)
    value, slope, bend = total
    mean = -slope / value
    return DivergenceMoments(math.log(value) + mu - n, float(mean), float(max(0.0, bend / value - mean**2)))


STEP = 0.1  # step of θ, relative to θ, but at least to 1/(standard deviation of the divergence of uniform scores)
SWEEPS = 4
GROUPS = 8


class AnnealedNormaliser(ScoreNormaliser):
    """Monte Carlo estimate of ``log Z(θ)`` with its standard error, for functions of the size and any number of items.

    The same random numbers are used for every θ, so the estimate is a smooth function of θ, independent of the calls.

    Parameters
    ----------
    f : SetFunction
        Function of the size of a set; for any other the normaliser depends on the order.
    n : int
        Number of items.
    n_particles : int
        Particles in each of the 8 groups. The standard error decreases with its square root.
    random_state : int
        Seed.

    Examples
    --------
    >>> from apexrank_papers.lovasz.mallows_density import BoxNormaliser
    >>> from apexrank.submodular import Sqrt
    >>> estimate = AnnealedNormaliser(Sqrt(), 5)
    >>> error = abs(estimate.at(10.0).log_z - BoxNormaliser(Sqrt(), 5).at(10.0).log_z)
    >>> error < 4 * estimate.standard_error(10.0) < 0.2
    True
    """

    def __init__(self, f: SetFunction, n: int, n_particles: int = 64, random_state: int = 0) -> None:
        gains = size_gains(f, n)
        if gains is None:
            raise InputError(
                f"no normaliser for {n} items and a set function that looks at more than the size of a set: "
                "use at most 20 items, or a function of the size such as 'sqrt'"
            )
        self._gains = gains
        self._rng = np.random.default_rng(random_state)
        # uniform scores in decreasing order have the means n/(n + 1), …, 1/(n + 1)
        at_zero = float(gains @ (np.arange(n, 0.0, -1.0) / (n + 1) - 0.5))
        self.largest_theta = MAX_STRENGTH / (at_zero or 1.0)
        # independent groups of particles, their log-weights, and their moments at each θ
        self._scores = self._rng.random((GROUPS, n_particles, n))
        self._log_weights = np.zeros((GROUPS, n_particles))
        self._thetas, self._means = [0.0], [np.full(GROUPS, at_zero)]
        self._variances = [np.mean((self._divergence(self._scores) - at_zero) ** 2, axis=1)]
        self._first = STEP / (math.sqrt(self._variances[0].mean()) or 1.0)
        self._reach(self._first)

    def at(self, theta: float) -> DivergenceMoments:
        """Return the moments from the mean curves of all groups."""
        check_finite("theta", theta, 0)
        self._reach(theta)
        variance = np.interp(theta, self._thetas, np.mean(self._variances, axis=1))
        log_z, mean = -self._integral(theta).mean(), self._curve(theta).mean()
        return DivergenceMoments(float(log_z), float(mean), float(variance))

    def standard_error(self, theta: float) -> float:
        """Standard error of ``log Z(θ)``, from the spread of the groups."""
        self._reach(theta)
        return float(np.std(self._integral(theta), ddof=1) / math.sqrt(GROUPS))

    def _divergence(self, scores: np.ndarray) -> np.ndarray:
        return (np.sort(scores, axis=-1)[..., ::-1] - scores) @ self._gains

    def _reach(self, theta: float) -> None:
        if self._thetas[-1] >= theta:
            return
        while self._thetas[-1] < theta:
            self._step(self._thetas[-1] + max(self._first, STEP * self._thetas[-1]))
        # E_t[d] has the slope −Var_t(d); later temperatures do not change the curve between earlier ones
        self._curve = CubicHermiteSpline(self._thetas, np.array(self._means), -np.array(self._variances))
        self._integral = self._curve.antiderivative()

    def _step(self, theta: float) -> None:
        """Advance every group to the next temperature."""
        self._log_weights -= (theta - self._thetas[-1]) * self._divergence(self._scores)
        means, variances = np.empty((2, GROUPS))
        for group, (scores, logs) in enumerate(zip(self._scores, self._log_weights, strict=True)):
            weights = np.exp(logs - logs.max())
            if weights.sum() ** 2 < 0.5 * len(weights) * (weights @ weights):
                scores[:] = scores[_systematic(weights, self._rng)]
                logs[:] = 0.0
                weights = np.ones(len(weights))
            found = gibbs_sweeps(scores, theta, self._gains, SWEEPS, self._rng)
            means[group] = found.mean(axis=0) @ weights / weights.sum()
            variances[group] = ((found - means[group]) ** 2).mean(axis=0) @ weights / weights.sum()
        self._thetas.append(theta)
        self._means.append(means)
        self._variances.append(variances)


def _systematic(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw rows in proportion to their weights by systematic resampling, with a single random number."""
    edges = np.cumsum(weights) / weights.sum()
    return np.minimum(
        np.searchsorted(edges, (np.arange(len(weights)) + rng.random()) / len(weights)), len(weights) - 1
    )


DrawMethod = Literal["auto", "exact", "chain"]
MAX_CELLS = 2**24  # states times events: 128 MiB
CHAINS = 32


def _most_events(theta: float, lattice: Lattice) -> tuple[float, int]:
    """Return the rate λ, and a number of events beyond which less than a share e⁻⁴⁰ of Z lies.

    The k-th term is at most ``e^n`` times the Poisson probability with mean λ + n, and Z is at least 1/n!.
    """
    n = int(lattice.counts.sum())
    rate = theta * float(lattice.cost.max()) + n
    tail = 40.0 + n + float(gammaln(n + 1))
    return rate, math.ceil(rate + n + math.sqrt(2.0 * (rate + n) * tail) + tail)


def can_draw_exactly(theta: float, lattice: Lattice) -> bool:
    """Return whether the table of exact draws is small enough."""
    return len(lattice.cost) * (_most_events(theta, lattice)[1] + 1) <= MAX_CELLS


def exact_scores(
    lattice: Lattice, theta: float, order: np.ndarray, n_samples: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw independent scores from ``exp(−θ·d(x‖σ))/Z`` over [0, 1]ⁿ.

    Examples
    --------
    >>> lattice = Lattice.of_gains(np.array([1.0, 0.5, 0.25]))
    >>> draws = exact_scores(lattice, 1e3, np.array([2, 0, 1]), 4, np.random.default_rng(0))
    >>> np.argsort(-draws, axis=1).tolist()
    [[2, 0, 1], [2, 0, 1], [2, 0, 1], [2, 0, 1]]
    """
    rate, most = _most_events(theta, lattice)
    table = (lattice.cost, lattice.counts, lattice.strides)
    powers = uniformised_powers(theta, rate, *table, most)
    events = np.arange(most + 1)
    with np.errstate(divide="ignore"):  # fewer events than items have probability 0
        logs = events * math.log(rate) - gammaln(events + 1) + np.log(powers[0])
    lengths = rng.choice(most + 1, size=n_samples, p=np.exp(logs - logsumexp(logs)))
    kinds, levels = draw_levels(theta, rate, *table, powers, lengths, rng)
    scores = np.empty((n_samples, len(order)))
    for kind, ranks in enumerate(
        lattice.ranks
    ):  # items of one kind are interchangeable: any of them joins next
        own = levels[kinds == kind].reshape(n_samples, len(ranks))
        scores[:, order[ranks]] = rng.permuted(own, axis=1)
    return scores


def chain_scores(
    divergence: LovaszBregman,
    theta: float,
    order: np.ndarray,
    n_samples: int,
    rng: np.random.Generator,
    thin: int | None = None,
) -> np.ndarray:
    """Draw scores from up to 32 Markov chains, which start as uniform scores in the order σ.

    Gibbs sweeps are used if f is a function of the size of a set, else Metropolis sweeps with uniform proposals for one
    score at a time: 10·n sweeps over all items before the first draw, then ``thin`` (n) before each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chain_scores(LovaszBregman("sqrt"), 5.0, np.arange(30), 3, rng).shape
    (3, 30)
    """
    n = len(order)
    rows = min(n_samples, CHAINS)
    ranked = np.sort(rng.random((rows, n)), axis=1)[:, ::-1].copy()  # column j is the item of rank j in σ
    gains = size_gains(divergence.f, n)
    found: list[np.ndarray] = []
    for sweeps in [10 * n, *[thin or n] * (math.ceil(n_samples / rows) - 1)]:
        if gains is not None:
            gibbs_sweeps(ranked, theta, gains, sweeps, rng)
        else:
            _metropolis_sweeps(ranked, divergence, theta, order, sweeps, rng)
        found.append(ranked.copy())
    scores = np.empty((n_samples, n))
    scores[:, order] = np.concatenate(found)[:n_samples]
    return scores


def _metropolis_sweeps(
    ranked: np.ndarray,
    divergence: LovaszBregman,
    theta: float,
    order: np.ndarray,
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    """Run Metropolis sweeps in place for all chains at once; half of the proposals stay near the current score."""
    rows, n = ranked.shape
    rank = np.argsort(order)
    now = divergence.divergence(ranked[:, rank], order)
    for _ in range(sweeps * n):
        column = rng.integers(n)
        near = np.abs(ranked[:, column] + (rng.random(rows) - 0.5) * (2.0 / n))
        near = np.where(near > 1.0, 2.0 - near, near)  # reflection at both ends keeps the proposal symmetric
        proposed = ranked.copy()
        proposed[:, column] = near if rng.random() < 0.5 else rng.random(rows)
        then = divergence.divergence(proposed[:, rank], order)
        accept = np.log(rng.random(rows)) < theta * (now - then)
        ranked[accept] = proposed[accept]
        now = np.where(accept, then, now)


def draw_scores(
    divergence: LovaszBregman,
    lattice: Lattice | None,
    theta: float,
    order: np.ndarray,
    n_samples: int,
    rng: np.random.Generator,
    method: DrawMethod = "auto",
) -> np.ndarray:
    """Draw scores by the given method: "exact", "chain", or "auto", which is exact if the table fits in memory."""
    check_choice("method", method, DrawMethod)
    exact = lattice is not None and can_draw_exactly(theta, lattice)
    if method == "exact" and not exact:
        raise InputError(
            f"exact draws of {len(order)} items at theta = {theta:g} need too large a table: use `method='chain'`"
        )
    if lattice is not None and exact and method != "chain":
        return exact_scores(lattice, theta, order, n_samples, rng)
    return chain_scores(divergence, theta, order, n_samples, rng)
