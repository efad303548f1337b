"""Lovász–Mallows model of voters' scores and its mixtures, fitted by expectation–maximisation.

    p(x) = Σ_k w_k·exp(−θ_k·d(x‖σ_k))/Z(θ_k, σ_k).

Given the responsibilities r_ik, the best order of component k is that of ``Σ_i r_ik x_i``, and its best θ solves
``E_θ[d] = Σ_i r_ik d(x_i‖σ_k)/Σ_i r_ik``. Both are exact if f is a function of the size of a set. For any other f the
normaliser depends on the order; the order of the mean is then a proposal, accepted if it raises the likelihood.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp, softmax
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from apexrank.aggregation.kendall_mallows import generator, maximum_likelihood
from apexrank.aggregation.kmeans import Cost, ScoreVectors, draw_centres
from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.errors import InputError
from apexrank.parameters import checked, names, number, whole
from apexrank.submodular import SetFunction, is_by_size, orders_of
from apexrank.validation import check_count, check_frame
from apexrank_papers.lovasz.mallows_density import (
    MAX_STATES,
    AnnealedNormaliser,
    BoxNormaliser,
    DrawMethod,
    ScoreNormaliser,
    draw_scores,
    n_states,
)
from apexrank_papers.lovasz.posterior import OrderPosterior, check_thetas

NormaliserMethod = Literal["auto", "exact", "monte_carlo"]


@dataclass(eq=False, repr=False)
class LovaszMallows(DensityMixin, BaseEstimator):
    """Lovász–Mallows model of scores in [0, 1] around one order, or a mixture of several.

        p(x|θ, σ) = exp(−θ·d_f(x‖σ))/Z(θ, σ)    over x in [0, 1]ⁿ, θ ≥ 0               (Iyer and Bilmes 2013, eq. 23)

    With θ = 0 all scores are equally likely; as θ grows, only scores in the order σ remain. The density is not defined
    outside the box, where it could not be normalised. For scores on another scale, such as 1 to 5 stars, set ``box``:
    with its width w the density is ``p((x − low)/w)/wⁿ``, and θ measures divergence in units of w.

    For a function f of the size of a set, Z does not depend on σ, and maximum likelihood is exact: σ is the order of
    the mean scores, θ the root of a monotone function. For any other f the order of the mean has the smallest mean
    divergence, but possibly not the largest likelihood, and sums over all subsets limit it to 20 items.

    Parameters
    ----------
    f : str or SetFunction
        Submodular function: "sqrt", "log", … or an atom of :mod:`apexrank.submodular`.
    n_components : int
        Number of orders. Several are fitted by expectation–maximisation.
    theta : float, array-like of shape (n_components,) or None
        Fixed θ; None estimates it by maximum likelihood.
    box : tuple of two floats
        Lowest and highest possible score.
    normaliser : {"auto", "exact", "monte_carlo"}
        "exact" takes 2ⁿ·n steps, feasible up to 20 items for "sqrt" and hundreds for "top". "monte_carlo" estimates
        log Z, with its standard error in ``log_normalisers_se_``. "auto" is exact where possible.
    n_init, max_iter, tol
        Number of starts of a mixture, of which the best is kept; maximum number of EM steps per start; gain of the mean
        log-likelihood below which it stops. One component takes one step.
    n_particles : int
        Particles of the Monte Carlo normaliser in each of its 8 groups.
    random_state : int, Generator, RandomState or None
        Seed of the starts.

    Attributes
    ----------
    orders_ : array of shape (n_components, n_items)
        Items of each order, best first; tied means in the order of the columns.
    thetas_, thetas_se_ : arrays of shape (n_components,)
        θ and its standard error ``1/√(Σ_i r_ik·Var_θ(d))``, which treats the responsibilities as known. A fixed θ has
        the standard error 0.
    weights_ : array of shape (n_components,)
        Mixture weights.
    log_normalisers_, log_normalisers_se_ : arrays of shape (n_components,)
        ``log Z`` and its standard error, 0 if it is exact.
    responsibilities_ : array of shape (n_voters, n_components)
        Responsibilities r of the components for each voter.
    log_likelihood_ : float
        Log-likelihood of the fitted voters.
    history_, n_iter_, converged_
        Log-likelihood after each step of the best start, the number of steps, and whether it stopped by ``tol``.
    n_features_in_, feature_names_in_
        Number and names of the items.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.9, 0.6, 0.1], [0.7, 0.8, 0.3], [0.8, 0.5, 0.6], [0.6, 0.4, 0.2]])
    >>> model = LovaszMallows().fit(X)
    >>> model.orders_.tolist(), model.thetas_.round(2).tolist()
    ([[0, 1, 2]], [19.49])
    >>> round(model.score(X), 3)
    0.735
    >>> round(model.posterior(X).probability([0, 1, 2]), 3)
    0.887
    """

    _parameter_constraints: ClassVar[dict] = {
        "f": [str, SetFunction],
        "n_components": [whole(1)],
        "normaliser": [names(NormaliserMethod)],
        "n_init": [whole(1)],
        "max_iter": [whole(1)],
        "tol": [number(0)],
        "n_particles": [whole(1)],
        "theta": [None, number(0), "array-like"],
        "box": ["array-like"],
        "random_state": ["random_state", np.random.Generator],
    }

    f: str | SetFunction = "sqrt"
    n_components: int = 1
    _: KW_ONLY
    theta: float | ArrayLike | None = None
    box: tuple[float, float] = (0.0, 1.0)
    normaliser: NormaliserMethod = "auto"
    n_init: int = 5
    max_iter: int = 200
    tol: float = 1e-6
    n_particles: int = 64
    random_state: Any = None

    def _validate_params(self) -> None:
        super()._validate_params()
        self._box()

    @checked
    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Fit orders, θ and weights to the scores X (voters × items) in the box; y is ignored."""
        scores = self._checked(X, reset=True)
        k = int(self.n_components)
        if len(scores) < k:
            raise InputError(f"{len(scores)} voters are too few for `n_components={k}`: lower it")
        fixed = None if self.theta is None else check_thetas(self.theta, k, "components")
        divergence = LovaszBregman(self.f)
        normalisers = Normalisers(divergence, scores.shape[1], self.normaliser, self.n_particles)
        rng, limits = generator(self.random_state), (self.max_iter, self.tol)
        shares = (spread_start(scores, k, divergence, rng) for _ in range(self.n_init if k > 1 else 1))
        runs = [expectation_maximisation(scores, first, normalisers, fixed, *limits) for first in shares]
        self._keep(max(runs, key=lambda run: run.history[-1]), scores)
        return self

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Log-density of each row."""
        return logsumexp(self._log_joint(X), axis=1) - self._log_volume()

    def score(self, X: ArrayLike, y: None = None) -> float:
        """Mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def log_likelihood(self, X: ArrayLike) -> float:
        """Sum of the log-densities of the rows."""
        return float(self.score_samples(X).sum())

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Responsibility of each component for each row."""
        return softmax(self._log_joint(X), axis=1)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Most likely component of each row."""
        return self._log_joint(X).argmax(axis=1)

    def bic(self, X: ArrayLike) -> float:
        """Bayesian information criterion; smaller is better.

        It is ``−2·log L + q·log(n_voters) + 2·n_components·log(n_items!)``, where q counts free θ and weights. An order
        is not a real parameter with an error that shrinks with the number of voters; its term is the cost of encoding
        one of n! orders.
        """
        check_is_fitted(self)
        k = len(self.weights_)
        free = k - 1 + (k if self.theta is None else 0)
        check_frame(X)
        rows = len(np.asarray(X))
        orders = 2.0 * k * float(gammaln(self.n_features_in_ + 1))
        return -2.0 * self.log_likelihood(X) + free * float(np.log(rows)) + orders

    def sample(self, n_samples: int = 1, random_state: Any = None, method: DrawMethod = "auto") -> np.ndarray:
        """Draw scores from the model, one row each, with components in random order.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        random_state : int, Generator, RandomState or None
            Seed.
        method : {"auto", "exact", "chain"}
            "exact" draws are independent, but their table of sets and events must fit in 128 MiB. "chain" draws come
            from Markov chains, see :func:`~apexrank_papers.lovasz.mallows_density.chain_scores`.
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        rng, normalisers = generator(random_state), self._mixture.normalisers
        labels = rng.choice(len(self.weights_), size=n_samples, p=self.weights_)
        scores = np.empty((n_samples, self.n_features_in_))
        for k, (order, theta) in enumerate(self._mixture.components):
            members, lattice = labels == k, normalisers.of(order).lattice
            if members.any():
                drawn = int(members.sum()), rng, method
                scores[members] = draw_scores(normalisers.divergence, lattice, theta, order, *drawn)
        low, high = self._box()
        return low + (high - low) * scores

    def posterior(self, X: ArrayLike, theta: float | ArrayLike | None = None) -> OrderPosterior:
        """Posterior distribution of the order given the voters X, with a uniform prior (eq. 24 and 25).

        Parameters
        ----------
        X : array-like of shape (n_voters, n_items)
            Scores in the box.
        theta : float or array-like of shape (n_voters,), optional
            By default the fitted θ of the single component.
        """
        if theta is None:
            check_is_fitted(self)
            if len(self.thetas_) > 1:
                raise InputError(
                    "a mixture has no single theta: pass `theta=`, a number or one for each voter"
                )
            theta = self.thetas_[0]
        if hasattr(self, "orders_"):
            return OrderPosterior(self._checked(X), theta, self.f)
        # an unfitted model has no items to compare with, and stays unfitted
        check_frame(X)
        scores = check_array(X, dtype=np.float64, ensure_all_finite=False)
        return OrderPosterior(_in_unit_box(scores, *self._box()), theta, self.f)

    def _checked(self, X: Any, reset: bool = False) -> np.ndarray:
        check_frame(X)
        scores = validate_data(self, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite=False)
        return _in_unit_box(scores, *self._box())

    def _box(self) -> tuple[float, float]:
        try:
            low, high = map(float, self.box)
        except (TypeError, ValueError):
            low = high = np.nan
        if not (low < high and np.isfinite(high - low)):
            raise InputError(f"`box` must be the lowest and the highest score, as (0, 1), got {self.box!r}")
        return low, high

    def _log_volume(self) -> float:
        low, high = self._box()
        return self.n_features_in_ * float(np.log(high - low))

    def _log_joint(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self)
        return self._mixture.log_joint(self._checked(X))

    def _keep(self, run: MixtureRun, scores: np.ndarray) -> None:
        mixture = run.mixture
        self._mixture = mixture
        self.weights_ = mixture.weights
        self.orders_, self.thetas_ = (np.array(part) for part in zip(*mixture.components, strict=True))
        self.responsibilities_ = softmax(mixture.log_joint(scores), axis=1)
        self.history_ = np.array(run.history) - len(scores) * self._log_volume()
        self.log_likelihood_ = float(self.history_[-1])
        self.n_iter_, self.converged_ = len(run.history), run.converged
        fitted = [(mixture.normalisers.of(order), theta) for order, theta in mixture.components]
        moments = [normaliser.at(theta) for normaliser, theta in fitted]
        self.log_normalisers_ = np.array([found.log_z for found in moments])
        self.log_normalisers_se_ = np.array(
            [normaliser.standard_error(theta) for normaliser, theta in fitted]
        )
        information = self.responsibilities_.sum(axis=0) * [found.variance for found in moments]
        with np.errstate(divide="ignore"):
            self.thetas_se_ = np.where(self.theta is None, 1.0 / np.sqrt(information), 0.0)
        doubts = (
            [] if run.converged else [f"not converged after {self.n_iter_} steps: raise `max_iter` or `tol`"]
        )
        for normaliser, theta in fitted if self.theta is None else ():
            if theta == 0:
                doubts.append(
                    "theta is 0: these scores agree with their order no more than random ones, so any order will do"
                )
            elif theta == normaliser.largest_theta:
                doubts.append(
                    "all voters agree with their order, so the likelihood grows with theta without end: it was "
                    f"stopped at {theta:g}; pass `theta=` to set it"
                )
        for doubt in doubts:
            warnings.warn(doubt, ConvergenceWarning, stacklevel=4)


def _in_unit_box(scores: np.ndarray, low: float, high: float) -> np.ndarray:
    if scores.shape[1] < 2:
        raise InputError("X has 1 feature(s): an order needs at least two items, one column each")
    if np.isnan(scores).any():
        raise InputError("X has missing scores (NaN): fill them, or leave out these voters or items")
    if scores.min() < low or scores.max() > high:
        worst = scores.min() if scores.min() < low else scores.max()
        raise InputError(
            f"scores must lie between {low:g} and {high:g}, got {worst:g}: scale them, for example with "
            "scikit-learn's `minmax_scale(X, axis=1)`, or give another `box`"
        )
    return scores if (low, high) == (0, 1) else (scores - low) / (high - low)


SMOOTHING = 0.1  # part of a voter's responsibility that the start spreads over all components


class Normalisers:
    """Normalisers by order; a single one if f is a function of the size of a set.

    Parameters
    ----------
    divergence : LovaszBregman
        Divergence of the model.
    n : int
        Number of items.
    method : {"auto", "exact", "monte_carlo"}
        "auto" is exact if the states can be enumerated.
    n_particles : int
        Particles of the Monte Carlo method, see :class:`~apexrank_papers.lovasz.mallows_density.AnnealedNormaliser`.

    Examples
    --------
    >>> normalisers = Normalisers(LovaszBregman("sqrt"), 4)
    >>> normalisers.of(np.arange(4)) is normalisers.of(np.arange(4)[::-1])
    True
    """

    def __init__(
        self, divergence: LovaszBregman, n: int, method: NormaliserMethod = "auto", n_particles: int = 64
    ) -> None:
        self.divergence, self.n = divergence, n
        self.by_size = is_by_size(divergence.f)
        self._known: dict[bytes, ScoreNormaliser] = {}
        if method == "monte_carlo" or (method == "auto" and n_states(divergence.f, n) > MAX_STATES):
            self._known[b""] = AnnealedNormaliser(divergence.f, n, n_particles)

    def of(self, order: np.ndarray) -> ScoreNormaliser:
        """Return the normaliser of an order."""
        key = b"" if self.by_size else order.tobytes()
        if key not in self._known:
            self._known[key] = BoxNormaliser(self.divergence.f, self.n, order)
        return self._known[key]


class Component(NamedTuple):
    """Mixture component: an order and its concentration θ."""

    order: np.ndarray
    theta: float


@dataclass(frozen=True, eq=False)
class Mixture:
    """Mixture of weighted components, with the objects needed to evaluate it."""

    weights: np.ndarray
    components: list[Component]
    normalisers: Normalisers

    def log_joint(self, X: np.ndarray) -> np.ndarray:
        """Return ``log w_k + log p(x_i|θ_k, σ_k)``, one row per voter."""
        orders, thetas = (np.array(part) for part in zip(*self.components, strict=True))
        log_z = [self.normalisers.of(order).at(theta).log_z for order, theta in self.components]
        with np.errstate(divide="ignore"):  # an empty component has weight 0
            constant = np.log(self.weights) - log_z
        return constant - thetas * self.normalisers.divergence.divergence(X, orders)


class MixtureRun(NamedTuple):
    """Result of one start, with the log-likelihood after each step."""

    mixture: Mixture
    history: list[float]
    converged: bool


def best_component(
    X: np.ndarray, shares: np.ndarray, normalisers: Normalisers, fixed: float | None, old: Component | None
) -> Component:
    """Maximise the weighted likelihood ``Σ_i r_i·log p(x_i|θ, σ)`` of a component; never worse than the old one.

    Examples
    --------
    >>> X = np.array([[0.9, 0.5, 0.4], [0.6, 0.8, 0.1]])
    >>> order, theta = best_component(X, np.ones(2), Normalisers(LovaszBregman("sqrt"), 3), None, None)
    >>> order.tolist(), round(theta, 2)
    ([0, 1, 2], 6.45)
    """
    total = float(shares.sum())
    if old is not None and total <= 1e-10:
        return old

    def mean_divergence(order: np.ndarray) -> float:
        return float(shares @ normalisers.divergence.divergence(X, order)) / total

    def fitted(order: np.ndarray) -> Component:
        if fixed is not None:
            return Component(order, fixed)
        start = 1.0 if old is None else old.theta
        return Component(order, maximum_likelihood(normalisers.of(order), mean_divergence(order), start))

    def value(component: Component) -> float:
        moments = normalisers.of(component.order).at(component.theta)
        return -component.theta * mean_divergence(component.order) - moments.log_z

    new = fitted(orders_of(shares @ X))
    if old is None:
        return new
    candidates = [new, old] if normalisers.by_size else [new, fitted(old.order), old]
    return max(candidates, key=value)


def spread_start(X: np.ndarray, k: int, divergence: LovaszBregman, rng: np.random.Generator) -> np.ndarray:
    """Initial responsibilities: voters drawn as in k-means++, and all others assigned to the nearest of them."""
    voters = ScoreVectors(X, np.ones(len(X)), Cost(divergence, 0.0))
    nearest = voters.assign(draw_centres(voters, k, rng, spread=True)).labels
    return np.eye(k)[nearest] * (1 - SMOOTHING) + SMOOTHING / k


def expectation_maximisation(
    X: np.ndarray,
    shares: np.ndarray,
    normalisers: Normalisers,
    fixed: np.ndarray | None = None,
    max_iter: int = 200,
    tol: float = 1e-6,
) -> MixtureRun:
    """Run EM from given responsibilities (voters × components) until the mean log-likelihood gains at most ``tol``.

    A step maximises over the components, then updates the responsibilities. One component converges after one step.

    Examples
    --------
    >>> X = np.array([[0.9, 0.5, 0.4], [0.8, 0.7, 0.3], [0.1, 0.4, 0.8], [0.0, 0.5, 0.3]])
    >>> normalisers = Normalisers(LovaszBregman("sqrt"), 3)
    >>> run = expectation_maximisation(X, np.eye(2)[[0, 0, 1, 1]], normalisers, np.array([9.0, 9.0]))
    >>> [order.tolist() for order, theta in run.mixture.components], run.converged
    ([[0, 1, 2], [2, 1, 0]], True)
    """
    k = shares.shape[1]
    thetas = [None] * k if fixed is None else fixed.tolist()
    components: list[Component | None] = [None] * k
    history: list[float] = []
    while True:
        found = [
            best_component(X, own, normalisers, theta, old)
            for own, theta, old in zip(shares.T, thetas, components, strict=True)
        ]
        mixture = Mixture(shares.mean(axis=0), found, normalisers)
        joint = mixture.log_joint(X)
        total = logsumexp(joint, axis=1)
        history.append(float(total.sum()))
        gain = history[-1] - history[-2] if len(history) > 1 else np.inf
        converged = k == 1 or gain <= tol * len(X)
        if converged or len(history) >= max_iter:
            return MixtureRun(mixture, history, bool(converged))
        shares = np.exp(joint - total[:, None])
        components = list(found)
