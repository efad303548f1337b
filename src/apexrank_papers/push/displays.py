"""Two pictures of the papers alone: discounts (JMLR 2009, fig. 3), and sample sizes that the bounds ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.bounds import LogCovering, negatives_needed
from apexrank.errors import InputError
from apexrank.plot.style import legend, light, line_style, lines_of, one_axes

_LINE = "apexrank-line"

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
        legend(self.ax_)
        return self


class SampleSizeDisplay:
    """Negatives that a generalisation bound asks for against p, on a logarithmic scale (JMLR 2009, sec. 4).

    Parameters
    ----------
    ps : array of shape (n,)
        The powers.
    needed : mapping of str to array of shape (n,)
        Numbers of examples, a line for each name; infinite ones are left out.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> display = SampleSizeDisplay.from_bounds([1, 2, 3], [0.4], theta=0.1, log_covering=0.0)
    >>> display.needed["ε = 0.4"].tolist()
    [185.0, 18445.0, 1844440.0]
    """

    def __init__(self, ps: ArrayLike, needed: Mapping[str, ArrayLike]) -> None:
        self.ps = np.asarray(ps, dtype=float)
        self.needed = {str(name): np.asarray(values, dtype=float) for name, values in needed.items()}
        if not self.needed:
            raise InputError("there is no line to draw: give at least one epsilon")

    @classmethod
    def from_bounds(
        cls,
        ps: Sequence[float],
        epsilons: Sequence[float],
        *,
        theta: float,
        log_covering: LogCovering,
        delta: float = 0.05,
        r_min: float = 0.0,
        n_positives: float = inf,
        ax: Any = None,
        **line_options: Any,
    ) -> SampleSizeDisplay:
        """Draw a line for each ε; parameters as in `apexrank.bounds.negatives_needed`."""
        options = {"n_positives": n_positives, "r_min": r_min}
        needed = {
            f"ε = {epsilon:g}": [
                negatives_needed(epsilon, delta, theta, p, log_covering, **options) for p in ps
            ]
            for epsilon in epsilons
        }
        return cls(ps, needed).plot(ax, **line_options)

    def plot(self, ax: Any = None, **line_options: Any) -> SampleSizeDisplay:
        """Draw into matplotlib axes, or into a new figure; ``line_options`` go to ``Axes.plot``."""
        self.ax_ = one_axes(ax, (6.4, 4.2))
        self.figure_ = self.ax_.figure
        self.lines_ = [self._draw(name, values, line_options) for name, values in self.needed.items()]
        self.ax_.set(xlabel="p", ylabel="Negatives needed", yscale="log")
        self.ax_.set_xticks(self.ps, [f"{p:g}" for p in self.ps])
        light(self.ax_)
        legend(self.ax_, loc="upper left")
        return self

    def _draw(self, name: str, values: np.ndarray, options: dict[str, Any]) -> Any:
        number = len(lines_of(self.ax_, _LINE))
        shown = np.where(np.isfinite(values), values, np.nan)
        return self.ax_.plot(self.ps, shown, label=name, gid=_LINE, **(line_style(number) | options))[0]
