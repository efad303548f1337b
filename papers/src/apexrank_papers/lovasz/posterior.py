"""Extended Lovász–Mallows model: a distribution over orders, given voters' scores.

    p(σ|Θ, X) = exp(−Σ_i θ_i·d(x_i‖σ)) / Z(Θ, X),                                        Iyer and Bilmes, eq. (24).

It depends only on ``y = Σ_i θ_i x_i``: ``p(σ) ∝ exp(<y, h_σ>)``, whose mode is the order of y. Placing item j after the
set S contributes the factor ``exp(y_j·(f(S ∪ j) − f(S)))``, so sums over all orders are a dynamic programme over
subsets.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from apexrank.aggregation.kendall_mallows import generator
from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.errors import InputError
from apexrank.submodular import SetFunction, check_orders, check_scores, orders_of
from apexrank.validation import check_choice, check_count
from apexrank_papers.lovasz.mallows_density import size_gains, subset_values
from apexrank_papers.lovasz.mallows_kernels import completions, draw_orders, order_marginals, swap_chain

MAX_ITEMS = 20  # 2^20 subsets


@dataclass(frozen=True)
class OrderDraws:
    """Orders drawn by Metropolis chains, with diagnostics.

    ``acceptance`` is the share of proposals that changed the order. ``effective_size`` is the number of independent
    draws that would estimate the mean log-probability equally well.
    """

    orders: np.ndarray
    acceptance: float
    effective_size: float
    thin: int
    burn_in: int


class OrderPosterior:
    """Distribution ``p(σ) ∝ exp(−Σ_i θ_i·d(x_i‖σ))`` over the orders of n items.

    With a uniform prior it is the posterior of σ if every voter's scores come from the Lovász–Mallows density with that
    voter's θ_i, and f is a function of the size of a set (eq. 25). Scores need not lie in [0, 1] here.

    Parameters
    ----------
    scores : array-like of shape (n_voters, n_items) or (n_items,)
        Finite scores, larger is better.
    theta : float or array-like of shape (n_voters,)
        Weights of the voters, at least 0.
    f : str or SetFunction
        Submodular function.

    Attributes
    ----------
    mode : ndarray of shape (n_items,)
        Most probable order, that of ``Σ_i θ_i x_i``; tied items are in the order of their numbers.
    exact : bool
        Whether sums over orders are exact, which requires at most 20 items.

    Examples
    --------
    >>> posterior = OrderPosterior([[0.9, 0.5, 0.1], [0.2, 0.8, 0.3]], theta=4.0)
    >>> posterior.mode.tolist(), round(posterior.probability([1, 0, 2]), 4)
    ([1, 0, 2], 0.3322)
    >>> posterior.rank_marginals().round(2).tolist()
    [[0.35, 0.36, 0.28], [0.59, 0.24, 0.18], [0.06, 0.4, 0.54]]
    >>> posterior.sample(1000, random_state=0).shape
    (1000, 3)
    """

    def __init__(
        self, scores: ArrayLike, theta: float | ArrayLike = 1.0, f: str | SetFunction = "sqrt"
    ) -> None:
        self.divergence = LovaszBregman(f)
        rows = np.atleast_2d(check_scores(scores, self.divergence.f.n))
        if rows.ndim != 2:
            raise InputError(f"scores must be a table of voters and items, got shape {rows.shape}")
        self.theta = check_thetas(theta, len(rows))
        # divergences are invariant to shifts of a voter's scores, and small numbers preserve precision
        rows = rows - rows.min(axis=1, keepdims=True)
        self.y = self.theta @ rows
        self.n_items = rows.shape[1]
        self.mode = orders_of(self.y)
        self.exact = self.n_items <= MAX_ITEMS
        self._least = float(self.theta @ self.divergence.f.extension(rows))

    @property
    def log_normaliser(self) -> float:
        """Logarithm of ``Z(Θ, X)``, the sum of ``exp(−Σθ_i d(x_i‖σ))`` over all orders."""
        return float(self._logs[0]) - self._least

    def log_probability(self, orders: ArrayLike) -> float | np.ndarray:
        """Log-probability of one order, or of each row of a table of orders."""
        found = self.divergence.gradients(check_orders(orders, self.n_items)) @ self.y - self._logs[0]
        return float(found) if np.ndim(found) == 0 else found

    def probability(self, orders: ArrayLike) -> float | np.ndarray:
        """Probability of one order, or of each row of a table of orders."""
        found = np.exp(self.log_probability(orders))
        return float(found) if np.ndim(found) == 0 else found

    def rank_marginals(self, draws: ArrayLike | None = None) -> np.ndarray:
        """Probabilities ``P(item at rank)``, one row per item; exact, or as shares of given draws."""
        if draws is None:
            return self._marginals[0].copy()
        orders = check_orders(np.atleast_2d(draws), self.n_items)
        shares = np.zeros((self.n_items, self.n_items))
        np.add.at(shares, (orders, np.broadcast_to(np.arange(self.n_items), orders.shape)), 1.0 / len(orders))
        return shares

    def pairwise_marginals(self, draws: ArrayLike | None = None) -> np.ndarray:
        """Probabilities ``P(row's item before column's item)``, 0 on the diagonal; exact, or shares of given draws."""
        if draws is None:
            return self._marginals[1].copy()
        ranks = np.argsort(check_orders(np.atleast_2d(draws), self.n_items), axis=1)
        return np.array([(ranks[:, [item]] < ranks).mean(axis=0) for item in range(self.n_items)])

    def sample(
        self, n_samples: int = 1, random_state: Any = None, method: str = "auto", **chains: Any
    ) -> np.ndarray:
        """Draw orders from the distribution, one per row.

        Parameters
        ----------
        n_samples : int
            Number of draws.
        random_state : int, Generator, RandomState or None
            Seed.
        method : {"auto", "exact", "metropolis"}
            "exact" draws are independent and require at most 20 items; "auto" uses them where possible.
        **chains
            ``thin``, ``burn_in`` and ``n_chains`` of :meth:`metropolis`.
        """
        check_choice("method", method, Literal["auto", "exact", "metropolis"])
        check_count("n_samples", n_samples)
        if method == "exact" or (method == "auto" and self.exact):
            return draw_orders(self.y, self._values, self._logs, n_samples, generator(random_state))
        draws = self.metropolis(n_samples, random_state=random_state, **chains)
        if draws.effective_size < 0.1 * n_samples:
            warnings.warn(
                f"{n_samples} Metropolis draws are worth {draws.effective_size:.0f} independent ones: "
                "raise `thin`",
                ConvergenceWarning,
                stacklevel=2,
            )
        return draws.orders

    def metropolis(
        self,
        n_samples: int,
        *,
        thin: int | None = None,
        burn_in: int | None = None,
        n_chains: int = 4,
        random_state: Any = None,
    ) -> OrderDraws:
        """Draw orders by Metropolis chains that start at the mode and propose swaps of neighbours or of any two items.

        One proposal in 2n swaps an item with itself: without it, a chain in which all swaps are accepted would
        alternate between even and odd permutations.

        Parameters
        ----------
        n_samples : int
            Total number of draws of all chains.
        thin, burn_in : int
            Proposals between draws, 10·n by default, and before the first, 20·n² by default.
        n_chains : int
            Number of independent chains.
        random_state : int, Generator, RandomState or None
            Seed.

        Examples
        --------
        >>> draws = OrderPosterior(np.linspace(5, 0, 30)).metropolis(200, random_state=0)
        >>> draws.orders.shape, 0 < draws.acceptance < 1, draws.effective_size > 50
        ((200, 30), True, True)
        """
        thin = 10 * self.n_items if thin is None else thin
        burn_in = 20 * self.n_items**2 if burn_in is None else burn_in
        for name, value in (("n_samples", n_samples), ("thin", thin), ("n_chains", n_chains)):
            check_count(name, value)
        check_count("burn_in", burn_in, 0)
        if self.n_items == 1:
            return OrderDraws(np.zeros((n_samples, 1), dtype=np.int64), 1.0, float(n_samples), thin, burn_in)
        skipped, each = -(-burn_in // thin), -(-n_samples // n_chains)
        steps = (skipped + each) * thin
        rng = generator(random_state)
        gains = size_gains(self.divergence.f, self.n_items)
        if gains is None:
            kept, heights, accepted = self._swaps(n_chains, steps, thin, rng)
        else:
            runs = [swap_chain(self.mode.copy(), self.y, gains, steps, thin, rng) for _ in range(n_chains)]
            kept, heights, accepted = (np.array(part) for part in zip(*runs, strict=True))
        orders = kept[:, skipped:].reshape(-1, self.n_items)[:n_samples]
        size = min(effective_size(heights[:, skipped:]), float(n_samples))
        return OrderDraws(orders, float(np.sum(accepted)) / (n_chains * steps), size, thin, burn_in)

    def _swaps(
        self, n_chains: int, steps: int, thin: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Run the chains of ``swap_chain`` for any f, with one call of f per step."""
        n, every = self.n_items, np.arange(n_chains)
        orders = np.tile(self.mode, (n_chains, 1))
        height = np.full(n_chains, self.divergence.f._gains(self.mode) @ self.y[self.mode])
        kept, heights, accepted = [], [], np.zeros(n_chains)
        for step in range(steps):
            a = rng.integers(n - 1, size=n_chains)
            b = a + 1
            if rng.random() < 0.5:
                a = rng.integers(n, size=n_chains)
                b = rng.integers(n, size=n_chains)
            proposed = orders.copy()
            proposed[every, a], proposed[every, b] = orders[every, b], orders[every, a]
            new = np.einsum("ij,ij->i", self.divergence.f._gains(proposed), self.y[proposed])
            accept = np.log(rng.random(n_chains)) < new - height
            orders[accept], height = proposed[accept], np.where(accept, new, height)
            accepted += accept & (a != b)
            if (step + 1) % thin == 0:
                kept.append(orders.copy())
                heights.append(height)
        return np.stack(kept, axis=1), np.stack(heights, axis=1), accepted

    @cached_property
    def _values(self) -> np.ndarray:
        if not self.exact:
            raise InputError(
                f"exact sums over orders need at most {MAX_ITEMS} items, got {self.n_items}: use metropolis(), "
                "and pass its orders to rank_marginals or pairwise_marginals"
            )
        return subset_values(self.divergence.f, self.n_items)

    @cached_property
    def _logs(self) -> np.ndarray:
        return completions(self.y, self._values)

    @cached_property
    def _marginals(self) -> tuple[np.ndarray, np.ndarray]:
        return order_marginals(self.y, self._values, self._logs)


def check_thetas(theta: Any, n: int, what: str = "voters") -> np.ndarray:
    """Validate θ ≥ 0 for each of n voters or components, from one number or n."""
    try:
        found = np.asarray(theta, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"`theta` must be a number or one for each of the {n} {what}") from None
    if found.shape not in ((), (n,)):
        raise InputError(
            f"`theta` must be a number or one for each of the {n} {what}, got shape {found.shape}"
        )
    if not (np.isfinite(found).all() and (found >= 0).all()):
        worst = found[~(np.isfinite(found) & (found >= 0))].flat[0]
        raise InputError(f"`theta` must be finite and at least 0, got {worst}: larger means more agreement")
    return np.broadcast_to(found, n).copy()


def effective_size(chains: np.ndarray) -> float:
    """Effective sample size of chains (n_chains, length) of a scalar, by Geyer's initial positive sequence.

    Examples
    --------
    >>> float(effective_size(np.random.default_rng(0).random((4, 500)))) > 1500
    True
    """
    length = chains.shape[1]
    centred = chains - chains.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * length, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, axis=1)[:, :length].mean(axis=0) / length
    if length < 4 or covariance[0] <= 1e-12 * max(1.0, float(np.abs(chains).max())) ** 2:
        return float(chains.size)
    rho = covariance / covariance[0]
    pairs = rho[0 : length - length % 2 : 2] + rho[1:length:2]
    stop = np.flatnonzero(pairs <= 0)
    total = 2.0 * pairs[: stop[0] if len(stop) else None].sum() - 1.0
    return float(chains.size / max(total, 1.0 / chains.size))
