"""What a push looks at: the contribution of each pair (JMLR 2009, figs. 1 and 4), and discounts (fig. 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential, Loss
from apexrank.metrics._rows import check_rows
from apexrank.plot.style import estimator_scores, light, line_style, one_axes
from apexrank.prices import PRICES, Price

_MOST_PAIRS = 10_000_000
_SIDES = {"top": np.array([1, 0]), "bottom": np.array([0, 1]), "both": np.array([1, 1])}


def pair_contributions(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    price: str | Price = "power",
    p: float = 4.0,
    loss: str | Loss = "exponential",
    side: str = "top",
    balance: float = 1.0,
    pos_label: Any = None,
) -> np.ndarray:
    """Share of each positive–negative pair in the objective (JMLR 2009, sec. 3.3 and fig. 4).

    On the top side the negative k costs ``g(r_k)``, ``r_k = Σ_i ℓ(f_i − g_k)``, of which the positive i has
    the part ``ℓ(f_i − g_k) / r_k``. On the bottom side the classes change their roles: the positive i costs
    ``g(Σ_k ℓ(f_i − g_k))``. All shares together make 1, unless nothing costs anything.

    Parameters
    ----------
    y_true, scores, pos_label
        As in `apexrank.metrics.auc`.
    price, loss, side, balance
        As in `apexrank.objectives.Push`, of one group without weights.
    p : float
        Power of the price "power".

    Returns
    -------
    ndarray of shape (I, K)
        A row for each positive and a column for each negative, both from the highest score to the lowest.

    Examples
    --------
    >>> y, scores = [1, 0, 1, 0], [3.0, 2.0, 1.0, 0.0]
    >>> pair_contributions(y, scores, p=1).round(3).tolist()
    [[0.105, 0.014], [0.776, 0.105]]
    >>> pair_contributions(y, scores, p=4).round(3).tolist()
    [[0.119, 0.0], [0.881, 0.0]]
    """
    if side not in _SIDES:
        raise InputError(f"unknown side {side!r}: use one of {', '.join(_SIDES)}")
    log_loss = _log_losses(y_true, scores, LOSSES.get(loss), pos_label)
    priced = PRICES.get(price, p=p)
    factors = _SIDES[side] * np.array([1.0, balance])
    logs = [
        np.log(factor) + _log_parts(log_loss, priced, axis) for axis, factor in enumerate(factors) if factor
    ]
    contribution = np.logaddexp.reduce(logs)
    highest = contribution.max()
    if highest == -np.inf:
        return np.zeros_like(contribution)
    relative = np.exp(contribution - highest)
    return relative / relative.sum()


def _log_losses(y_true: ArrayLike, scores: ArrayLike, loss: Loss, pos_label: Any) -> np.ndarray:
    """``ln ℓ(f_i − g_k)``, both classes from the highest score down."""
    data = check_rows(y_true, scores, pos_label=pos_label)
    f, g = (np.sort(data.scores[c])[::-1] for c in (data.positive, ~data.positive))
    if not len(f) or not len(g) or len(f) * len(g) > _MOST_PAIRS:
        raise InputError(
            f"{len(f)} positives and {len(g)} negatives cannot be drawn pair by pair: "
            f"give some of both and at most {_MOST_PAIRS:,} pairs, for example a random part of the rows"
        )
    margins = f[:, None] - g[None, :]
    if isinstance(loss, Exponential):
        return -margins  # the logarithm of an exponential that may overflow
    with np.errstate(divide="ignore"):
        return np.log(loss.value(margins))


def _log_parts(log_loss: np.ndarray, price: Price, axis: int) -> np.ndarray:
    """``ln( g(r)·ℓ/r )`` with r the sum of the losses along ``axis``."""
    log_r = np.asarray(logsumexp(log_loss, axis=axis, keepdims=True))
    costs = np.isfinite(log_r)
    safe = np.where(costs, log_r, 0.0)
    return np.where(costs, price.log_value(safe) + log_loss - safe, -np.inf)


class PairContributionDisplay:
    """Heat map of the share of each positive–negative pair in the objective (JMLR 2009, figs. 1 and 4).

    As in the paper the highest negatives stand on the left, the highest positives at the bottom, and lighter is
    more. Rows at the top of the list meet in the lower left corner, the worst pairs stand in the upper left one.
    Make one with `from_predictions` or `from_estimator`.

    Parameters
    ----------
    contributions : array of shape (I, K)
        As `pair_contributions` gives them.
    name : str, optional
        Title of the map.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    image_ : matplotlib image
    colorbar_ : matplotlib colour bar or None

    Examples
    --------
    >>> display = PairContributionDisplay.from_predictions([1, 0, 1, 0], [3.0, 2.0, 1.0, 0.0], p=4)
    >>> display.contributions.shape
    (2, 2)
    """

    def __init__(self, contributions: ArrayLike, *, name: str | None = None) -> None:
        self.contributions = np.asarray(contributions, dtype=float)
        self.name = name
        if self.contributions.ndim != 2 or not self.contributions.size:
            raise InputError(
                f"contributions need a row for each positive and a column for each negative, "
                f"got shape {self.contributions.shape}"
            )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike,
        *,
        name: str | None = None,
        ax: Any = None,
        colorbar: bool = True,
        image_options: Mapping[str, Any] | None = None,
        **objective: Any,
    ) -> PairContributionDisplay:
        """Draw the map of a ranked list; ``objective`` takes the options of `pair_contributions`.

        Examples
        --------
        >>> y, scores = [1, 0, 1, 0], [3.0, 2.0, 1.0, 0.0]
        >>> ir = PairContributionDisplay.from_predictions(y, scores, price="log1p", side="bottom", name="IR Push")
        >>> ir.ax_.get_title()
        'IR Push'
        """
        display = cls(pair_contributions(y_true, scores, **objective), name=name)
        return display.plot(ax, colorbar=colorbar, **(image_options or {}))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, pos_label: Any = None, **options: Any
    ) -> PairContributionDisplay:
        """Draw the map of a fitted ranker's list; ``options`` are those of `from_predictions`.

        Examples
        --------
        >>> from apexrank import PNormPush
        >>> X, y = [[0.0], [1.0], [0.5], [3.0]], [0, 0, 1, 1]
        >>> PairContributionDisplay.from_estimator(PNormPush().fit(X, y), X, y).ax_.get_title()
        'PNormPush'
        """
        options.setdefault("name", type(estimator).__name__)
        scores = estimator_scores(estimator, X, pos_label)
        return cls.from_predictions(y, scores, pos_label=pos_label, **options)

    def plot(self, ax: Any = None, *, colorbar: bool = True, **image_options: Any) -> PairContributionDisplay:
        """Draw into matplotlib axes, or into a new figure; ``image_options`` go to ``Axes.imshow``."""
        self.ax_ = one_axes(ax, (5.4, 4.6))
        self.figure_ = self.ax_.figure
        n_positives, n_negatives = self.contributions.shape
        options = {"cmap": "viridis", "vmin": 0.0, "aspect": "auto", "interpolation": "nearest"}
        extent = (0.5, n_negatives + 0.5, 0.5, n_positives + 0.5)
        self.image_ = self.ax_.imshow(
            self.contributions, origin="lower", extent=extent, **(options | image_options)
        )
        self.colorbar_: Any = self._colorbar() if colorbar else None
        self._dress()
        return self

    def _colorbar(self) -> Any:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        options = {"ticks": MaxNLocator(5), "format": FuncFormatter(lambda share, _: f"{100 * share:.4g} %")}
        bar = self.figure_.colorbar(self.image_, ax=self.ax_, **options)
        bar.set_label("Share of the objective")
        bar.outline.set_visible(False)
        return bar

    def _dress(self) -> None:
        from matplotlib.ticker import MaxNLocator

        self.ax_.set(xlabel="Negatives, highest score on the left")
        self.ax_.set(ylabel="Positives, highest score at the bottom")
        self.ax_.set_title(self.name or "")
        for axis, n in zip((self.ax_.xaxis, self.ax_.yaxis), self.contributions.shape[::-1], strict=True):
            axis.set_major_locator(MaxNLocator(nbins=min(n, 8), integer=True))


PAPER_DISCOUNTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "1 / ln(1 + z), DCG": lambda z: 1 / np.log1p(z),
    "1 / z, AveR": lambda z: 1 / z,
    "−ln(1 + z), IR Push": lambda z: -np.log1p(z),
}


class DiscountDisplay:
    """Discounts of a rank or reverse height z: how much less a lower place counts (JMLR 2009, fig. 3).

    Parameters
    ----------
    z : array
        Ranks or reverse heights, above 0.
    discounts : mapping of str to array
        The values of each discount at z.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> list(DiscountDisplay.from_functions().discounts)
    ['1 / ln(1 + z), DCG', '1 / z, AveR', '−ln(1 + z), IR Push']
    """

    def __init__(self, z: ArrayLike, discounts: Mapping[str, ArrayLike]) -> None:
        self.z = np.asarray(z, dtype=float)
        self.discounts = {str(name): np.asarray(values, dtype=float) for name, values in discounts.items()}
        if not self.discounts:
            raise InputError("there is no discount to draw: give at least one")

    @classmethod
    def from_functions(
        cls,
        discounts: Mapping[str, Callable[[np.ndarray], np.ndarray]] | None = None,
        *,
        z: ArrayLike | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> DiscountDisplay:
        """Draw discounts given as functions, by default the paper's three.

        Examples
        --------
        >>> import numpy as np
        >>> display = DiscountDisplay.from_functions({"LETOR": lambda z: 1 / np.log2(1 + z)}, z=[1, 3, 7])
        >>> display.discounts["LETOR"].round(6).tolist()
        [1.0, 0.5, 0.333333]
        """
        places = np.linspace(0.4, 10, 200) if z is None else np.asarray(z, dtype=float)
        functions = PAPER_DISCOUNTS if discounts is None else discounts
        return cls(places, {name: g(places) for name, g in functions.items()}).plot(ax, **line_options)

    def plot(self, ax: Any = None, **line_options: Any) -> DiscountDisplay:
        """Draw into matplotlib axes, or into a new figure; ``line_options`` go to ``Axes.plot``."""
        self.ax_ = one_axes(ax, (6.4, 4.2))
        self.figure_ = self.ax_.figure
        self.lines_ = [
            self.ax_.plot(
                self.z, values, label=name, **(line_style(number) | {"marker": None} | line_options)
            )[0]
            for number, (name, values) in enumerate(self.discounts.items())
        ]
        self.ax_.axhline(0, color="0.6", linewidth=0.8, zorder=0)
        self.ax_.set(xlabel="z, rank or reverse height", ylabel="Discount")
        light(self.ax_)
        self.ax_.legend(frameon=False, handlelength=3.2)
        return self
