"""Synthetic rows, links and angles, shared by the experiments on a GLM with an unknown link (Acharyya 2013, chapter 4).

The chapter has claims and rates but no experiments. The rows have independent, skewed features (standardised gamma of
shape 1/2), because with normal features least squares would find the direction whatever the link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from apexrank.plot.style import curve_style, legend, light

_RATES = {0.5: "1/√t", 1: "1/t", 2: "1/t²"}
_MOST_POINTS = 1000  # maximum number of points of a line: more would not be visible
LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": expit,
    "logistic of 3t": lambda t: expit(3 * t),
    "signed root": lambda t: np.sign(t) * np.sqrt(np.abs(t)),
    "staircase ⌊2t⌋": lambda t: np.floor(2 * t),
    "cube": lambda t: t**3,
    "identity": lambda t: t,
}


def skewed_rows(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n rows of d independent gamma features of shape 1/2, standardised to mean 0 and variance 1.

    Examples
    --------
    >>> X = skewed_rows(100_000, 2, np.random.default_rng(0))
    >>> float(abs(X.mean()).round(2)), float(X.std().round(2)), float(X.min().round(2))
    (0.0, 1.0, -0.71)
    """
    return (rng.gamma(0.5, size=(n, d)) - 0.5) / np.sqrt(0.5)


class Sample(NamedTuple):
    """Rows, the unit direction that determines their values, and noise of variance 1.

    Examples
    --------
    >>> sample = Sample.draw(1000, 3, seed=0)
    >>> cubes = sample.values("cube", noise=0.0)
    >>> bool(np.all(np.diff(cubes[np.argsort(sample.X @ sample.u)]) >= 0))
    True
    """

    X: np.ndarray
    u: np.ndarray
    noise: np.ndarray

    @classmethod
    def draw(cls, n: int, d: int, seed: int) -> Sample:
        """Draw n rows of d skewed features and a random direction."""
        rng = np.random.default_rng(seed)
        u = rng.standard_normal(d)
        return cls(skewed_rows(n, d, rng), u / np.linalg.norm(u), rng.standard_normal(n))

    def values(self, link: str, noise: float) -> np.ndarray:
        """Return ``g(Xu)`` plus noise with standard deviation ``noise`` times that of ``g(Xu)``."""
        g = LINKS[link](self.X @ self.u)
        return g + noise * g.std() * self.noise


def angle(w: np.ndarray, u: np.ndarray) -> float:
    """Angle between two directions in degrees.

    Examples
    --------
    >>> round(angle(np.array([2.0, 0.0]), np.array([1.0, 1.0])), 6)
    45.0
    """
    a, b = w / np.linalg.norm(w), u / np.linalg.norm(u)
    # arccos would be inaccurate for small angles
    return float(np.degrees(2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))))


def draw_gaps(
    ax: Any, gaps: Mapping[str, np.ndarray], *, log_x: bool = True, guides: Sequence[float] = ()
) -> None:
    """Draw how far each solver is above the minimum before and after each iteration, on logarithmic scales.

    Values within rounding error of the minimum are not drawn, so a line ends where its solver has converged. ``guides``
    are the rates c of reference lines ``1/t^c`` from the highest start.
    """
    starts, last = [0.0], 1
    for number, (name, values) in enumerate(gaps.items()):
        t = np.arange(int(log_x), len(values))
        if len(t) > _MOST_POINTS:
            space = np.geomspace if log_x else np.linspace
            t = np.unique(space(t[0], t[-1], _MOST_POINTS).round().astype(int))
        ax.plot(t, np.where(values[t] > 0, values[t], np.nan), label=name, **curve_style(number))
        starts, last = [*starts, *values[t[:1]]], max(last, *t[-1:])
    falling = np.geomspace(1, last, 100)
    for number, rate in enumerate(guides):
        style = {"color": "0.6", "linewidth": 0.9, "zorder": 0.5, "linestyle": (0, (1 + 3 * number, 2))}
        ax.plot(falling, max(starts) * falling**-rate, label=_RATES[rate], **style)
    ax.set(xlabel="Iteration t", ylabel="Objective − minimum", yscale="log")
    ax.set_xscale("log" if log_x else "linear")
    light(ax)
    legend(ax)
