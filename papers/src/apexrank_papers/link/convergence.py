"""Convergence rates for the cost of an unknown link, and the limit of GradMaPr (Acharyya 2013, Tables 4.1 and 4.2).

The dissertation descends along a direction, GradMaPr, that is not the gradient of its cost. Here its rates are measured
with the gradient, and compared with descent along GradMaPr.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.metrics import r2_score

from apexrank.errors import InputError
from apexrank.kernels.lipschitz import lipschitz_isotonic_link
from apexrank.objectives.link import UnknownLink
from apexrank.problem import Problem
from apexrank.solvers import LBFGS, Newton
from apexrank_papers.link.data import angle, draw_gaps
from apexrank_papers.link.gradient import AcceleratedGradient, GradientDescent, gradient_lipschitz
from apexrank_papers.result import Figure, Result, Verdict, claim, panels, text_view, tidy

PENALTIES = (1e-2, 1e-8)
DESCENT, PLAIN = "gradient descent, a/(b + √t)", "gradient descent, 1/L"
PUBLISHED, RESTARTED = "accelerated, as published", "accelerated, restarts"
GRADMAPR, BOUND = "along GradMaPr, 1/L", "bound 2L|u*|²/(t + 1)²"
CONDITION = 100.0  # ratio of the largest to the smallest spread of the features
SETTLED = 1e-8  # scaled norm at which a descent has converged


class GradMaPr(UnknownLink):
    """Cost of `UnknownLink` with the direction that Acharyya 2013, §4.2.1 takes for its gradient.

    The direction is ``v − y``, with v the monotone, 1/s-Lipschitz regression of y on the scores. Only for one list.

    Examples
    --------
    >>> y, scores = np.array([0.0, 5.0, 1.0, 2.0]), np.arange(4.0)
    >>> GradMaPr(y).value_and_grad(scores)[1].tolist(), UnknownLink(y).value_and_grad(scores)[1].tolist()
    ([1.25, -2.75, 1.25, 0.25], [0.5, -3.5, 1.5, 1.5])
    """

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the cost and the direction, which is not its gradient."""
        value, _ = super().value_and_grad(scores)
        fitted = np.interp(scores, *lipschitz_isotonic_link(scores, self.y, 1 / self.s))
        return value, self.factor[0] * (fitted - self.y)


class Descent(NamedTuple):
    """One problem solved by every solver, and the distance from its minimum at which descent along GradMaPr ends.

    ``gaps`` is the objective minus its minimum after each step, ``at`` after some of them. ``rest`` is GradMaPr's last
    gap, ``away`` its distance as a share of |w*|, ``degrees`` its angle, ``norm`` the length of its last direction.
    """

    gaps: dict[str, np.ndarray]
    at: dict[str, list[float]]
    rest: float
    away: float
    degrees: float
    norm: float


def link_convergence(*, n: int = 1000, d: int = 20, n_iter: int = 1000, random_state: int = 0) -> Result:
    """Measure the rates of Table 4.1 with the methods of Table 4.2, L-BFGS and Newton, and the limit of GradMaPr.

    Parameters
    ----------
    n, d : int
        Rows and features.
    n_iter : int
        Largest number of steps.
    random_state : int
        Seed.

    Examples
    --------
    >>> result = link_convergence(n=100, d=3, n_iter=10)
    >>> result.view.columns
    ['alpha', 'solver', 't = 1', 't = 10']
    """
    if n_iter < 10:
        raise InputError(f"`n_iter` must be at least 10 to see a rate, got {n_iter}")
    marks = [10**k for k in range(int(np.log10(n_iter)) + 1)]
    X, y = _stiff_data(n, d, random_state)
    found = {alpha: _descend(X, y, alpha, n_iter, marks) for alpha in PENALTIES}
    axes = {"alpha": PENALTIES, "solver": found[PENALTIES[0]].at, "iteration": marks}
    table = tidy(axes, {"gap": [list(descent.at.values()) for descent in found.values()]})
    named = table.with_columns(
        pl.col("alpha").map_elements("{:g}".format, pl.String), iteration=pl.format("t = {}", "iteration")
    )
    view = text_view(named, _gap_text, on="iteration", index=["alpha", "solver"])
    notes = [
        f"Objective minus minimum after t steps from w = 0; 0 means below rounding error. {n:,} rows, {d} features of "
        f"condition {CONDITION:g}, y = tanh + 10 % noise. L-BFGS and Newton stop when they have converged.",
        "Table 4.2 prints steps 1/t instead of 1/L, and a superfluous square in the momentum. The bounds are upper "
        "bounds: the cost is piecewise quadratic, so all methods are faster in the end.",
    ]
    return Result(table, view, _verdicts(list(found.values()), marks), _draw_descents(found), notes)


def _stiff_data(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rotated features with spreads from 1 to 1/100, whose condition no scaling of columns improves."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = rng.standard_normal((n, d)) * np.geomspace(1, 1 / CONDITION, d) @ turn
    t = X @ rng.standard_normal(d)
    mean = np.tanh(2 * t / t.std())
    return X, mean + 0.1 * mean.std() * rng.standard_normal(n)


def _solvers(step: float) -> dict[str, Callable[[int], Any]]:
    """Return solvers by name as functions of the number of steps; none stops early."""
    return {
        DESCENT: lambda t: GradientDescent(t, 0.0, step=(10 * step, 5.0)),
        PLAIN: lambda t: GradientDescent(t, 0.0),
        PUBLISHED: lambda t: AcceleratedGradient(t, 0.0, restart=False),
        RESTARTED: lambda t: AcceleratedGradient(t, 0.0),
        "L-BFGS": lambda t: LBFGS(t, 0.0),
        "Newton": lambda t: Newton(t, 0.0),
    }


def _descend(X: np.ndarray, y: np.ndarray, alpha: float, n_iter: int, marks: list[int]) -> Descent:
    cost: Any = UnknownLink(y, normalize=True)
    published: Any = GradMaPr(y, normalize=True)
    problem, w0 = Problem(X, cost, alpha), np.zeros(X.shape[1])
    step = 1 / gradient_lipschitz(problem)
    solvers = _solvers(step)
    solutions = {name: make(n_iter).solve(problem, w0) for name, make in solvers.items()}
    minimum = solutions["Newton"]
    best = min(minimum.value, *(min(solution.history) for solution in solutions.values()))
    lost = GradientDescent(5 * n_iter, SETTLED).solve(problem.with_objective(published), w0)

    gaps = {name: np.array(solution.history) - best for name, solution in solutions.items()}
    at = {name: gap[np.minimum(marks, len(gap) - 1)] for name, gap in gaps.items()}
    for name in (PUBLISHED, RESTARTED):  # the bound is for the iterates, not for the extrapolated points
        at[name] = np.array([solvers[name](t).solve(problem, w0).value - best for t in marks])
    at[BOUND] = 2 * np.sum((minimum.w * problem.scale) ** 2) / step / (np.array(marks) + 1) ** 2
    gaps[GRADMAPR] = np.array(lost.history) - best
    at[GRADMAPR] = gaps[GRADMAPR][np.minimum(marks, len(lost.history) - 1)]
    rounding = 1e-15 * cost.total
    return Descent(
        {name: _seen(gap[: n_iter + 1], rounding) for name, gap in gaps.items()},
        {name: _seen(gap, rounding).tolist() for name, gap in at.items()},
        rest=lost.value - best,
        away=float(np.linalg.norm(lost.w - minimum.w) / np.linalg.norm(minimum.w)),
        degrees=angle(lost.w, minimum.w),
        norm=lost.grad_norm,
    )


def _seen(gaps: np.ndarray, rounding: float) -> np.ndarray:
    return np.where(gaps > rounding, gaps, 0.0)


def _gap_text(gap: float, **_: Any) -> str:
    return f"{gap:.1e}" if gap > 0 else "0"


def _verdicts(found: list[Descent], marks: list[int]) -> list[Verdict]:
    where = f"at t = {_numbers(marks)}"
    scaled = [[gap * np.sqrt(t) for gap, t in zip(f.at[DESCENT], marks, strict=True)] for f in found]
    falls = all(a >= b for line in scaled for a, b in pairwise(line))
    used = max(a / b for f in found for a, b in zip(f.at[PUBLISHED], f.at[BOUND], strict=True))
    late = [(f.at[DESCENT][-1], f.at[PUBLISHED][-1]) for f in found]
    why_falls = f"√t·gap, which must not rise: {'; '.join(map(_numbers, scaled))} {where}"
    why_late = "; ".join(f"{slow:.0e} against {fast:.0e}" for slow, fast in late)
    why_late += f" accelerated after {marks[-1]} steps, alpha = {PENALTIES[0]:g}; {PENALTIES[1]:g}"
    return [
        claim("gradient descent: 1/√T", falls, why_falls),
        claim("accelerated: 1/T²", used <= 1, f"at most {used:.0%} of the bound {where}"),
        claim("gradient descent is slower", all(slow > fast for slow, fast in late), why_late),
        _linear_rate(found[0], where),
        _direction(found[0]),
    ]


def _linear_rate(ridge: Descent, where: str) -> Verdict:
    straight, factor = _straightness(ridge.gaps[RESTARTED])
    why = (
        f"with restarts the gap is multiplied by {factor:.3f} a step, a straight line on a logarithmic scale to "
        f"R² = {straight:.3f}; as published, without, it is {_numbers(ridge.at[PUBLISHED])} {where}"
    )
    return claim("strongly convex penalty: exp(−λT)", straight > 0.95, why)


def _straightness(gaps: np.ndarray) -> tuple[float, float]:
    """Return R² of a straight line through the logarithm of the gap, above rounding, and the factor per step."""
    t = np.flatnonzero(gaps > 1e-13 * gaps[0])
    line = np.polyfit(t, np.log(gaps[t]), 1)
    return float(r2_score(np.log(gaps[t]), np.polyval(line, t))), float(np.exp(line[0]))


def _direction(ridge: Descent) -> Verdict:
    rests = "converges" if ridge.norm <= SETTLED else "has not converged"
    why = (
        f"descent along it {rests} (norm {ridge.norm:.0e}) {ridge.rest:.1e} above the minimum, "
        f"{ridge.away:.0%} of |w*| and {ridge.degrees:.1f} degrees away from it"
    )
    return claim("GradMaPr is the gradient", ridge.rest < 1e-3 * ridge.gaps[PLAIN][0], why)


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:.2g}" if isinstance(value, float) else str(value) for value in values)


def _draw_descents(found: dict[float, Descent]) -> Figure:
    figure, axes = panels(11.5, 4.8, 1, len(found), sharey=True)
    for ax, (alpha, descent) in zip(axes, found.items(), strict=True):
        draw_gaps(ax, descent.gaps, guides=(0.5, 2))
        ax.set(title=f"alpha = {alpha:g}", ylim=(1e-14, 3))
        ax.label_outer()
        ax.get_legend().remove()
    shown = axes[0].get_legend_handles_labels()
    figure.legend(*shown, frameon=False, loc="outside right center", handlelength=3.2)
    return figure
