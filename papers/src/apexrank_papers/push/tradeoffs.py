"""Cost of a larger p in examples (JMLR 2009, Theorems 2 and 3), and its gain on MAGIC."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from apexrank.metrics import auc, average_reciprocal_rank, p_norm_risk, partial_auc, precision_at, push_dcg
from apexrank.plot import PTradeoffDisplay
from apexrank.plot.style import legend, line_style
from apexrank.rankers import CollapsedWarning, IRPush, PNormPush
from apexrank_papers.data.uci import load_magic
from apexrank_papers.push.bounds import log_covering_linear, negatives_needed, positives_needed
from apexrank_papers.push.fitting import unit_range
from apexrank_papers.push.tables import one_draw
from apexrank_papers.result import (
    Figure,
    Result,
    Verdict,
    claim,
    draw_lines,
    panels,
    question,
    signed_verdict,
    text_view,
    tidy,
)
from apexrank_papers.splits import mean_over_splits, mean_verdict, over_splits, spread

# The class of the sample sizes: ten features in [0, 1], so |x| ≤ √10, and |w| ≤ 1.
N_FEATURES, THETA, DELTA = 10, 0.1, 0.05
LINEAR = partial(
    log_covering_linear, norm_bound=1.0, feature_bound=float(np.sqrt(N_FEATURES)), n_features=N_FEATURES
)
EPSILONS = (0.05, 0.1, 0.2)
SIZE_POWERS = tuple(range(1, 9))
R_MIN = 0.15  # a linear ranker's best AUC on MAGIC is about 0.85, and R_{p,min} ≥ R_{1,min} = 1 − AUC
THEOREMS = {"Theorem 2": 0.0, "Theorem 3": R_MIN}


def sample_size() -> Result:
    """Compute the sample sizes of the bounds, which grow with p and are far smaller by Theorem 3.

    Examples
    --------
    >>> [verdict.word for verdict in sample_size().verdicts]
    ['agrees', 'agrees', 'agrees']
    """
    sizes = [_needed(*case) for case in product(THEOREMS.values(), EPSILONS, SIZE_POWERS)]
    axes = {"theorem": THEOREMS, "epsilon": EPSILONS, "p": SIZE_POWERS}
    table = tidy(axes, dict(zip(("negatives", "positives"), np.transpose(sizes), strict=True)))
    notes = [
        f"Cells: negatives / positives. Linear class with |w| ≤ 1 on {N_FEATURES} features in [0, 1], "
        f"θ = {THETA:g}, δ = {DELTA:g}; half of δ for the negatives, the rest for the positives. "
        f"Theorem 3 with R_min = {R_MIN:g}, as if no ranker of the class had a true AUC above {1 - R_MIN:g}.",
        "The bounds hold for every distribution and are far from tight; only their growth is informative.",
    ]
    verdicts = [_more_for_larger_p(table), _never_worse(table), _slower(table)]
    doublings = table.filter(pl.col("p").is_in([1, 2, 4, 8])).with_columns(p=pl.format("p = {}", "p"))
    view = text_view(doublings, "{negatives:.1e} / {positives:.1e}", on="p", index=["theorem", "epsilon"])
    return Result(table, view, verdicts, _draw_sizes(table), notes)


def _needed(r_min: float, epsilon: float, p: float) -> tuple[float, float]:
    negatives = negatives_needed(epsilon, DELTA / 2, THETA, p, LINEAR, r_min=r_min)
    return negatives, positives_needed(epsilon, DELTA, THETA, p, negatives, LINEAR, r_min=r_min)


def _lines(table: pl.DataFrame, theorem: str) -> dict[float, np.ndarray]:
    return {e: table.filter(theorem=theorem, epsilon=e)["negatives"].to_numpy() for e in EPSILONS}


def _more_for_larger_p(table: pl.DataFrame) -> Verdict:
    grows = [
        bool((np.diff(line) > 0).all()) for theorem in THEOREMS for line in _lines(table, theorem).values()
    ]
    why = f"negatives grow with p on {sum(grows)} of {len(grows)} lines"
    return claim("more for a larger p", all(grows), why)


def _never_worse(table: pl.DataFrame) -> Verdict:
    second, third = (np.array(list(_lines(table, theorem).values())) for theorem in THEOREMS)
    saved = (second / third)[:, -1]
    why = f"at p = {SIZE_POWERS[-1]} Theorem 2 asks for {', '.join(f'{s:.0e}' for s in saved)} times as many"
    return claim("Theorem 3 is tighter", bool((third <= second).all() and (saved > 1).all()), why)


def _slower(table: pl.DataFrame) -> Verdict:
    """Compare the factor by which the negatives grow from one p to the next."""
    factors = [
        [float((line[-1] / line[0]) ** (1 / (len(line) - 1))) for line in _lines(table, theorem).values()]
        for theorem in THEOREMS
    ]
    words = [", ".join(f"{factor:.0f}" for factor in part) for part in factors]
    epsilons = ", ".join(f"{e:g}" for e in EPSILONS)
    why = f"negatives times {words[0]} for one more p by Theorem 2, times {words[1]} by Theorem 3, at ε = {epsilons}"
    return claim("much better dependence on p", max(factors[1]) < min(factors[0]), why)


def _draw_sizes(table: pl.DataFrame) -> Figure:
    figure, axes = panels(10, 4.4, 1, 2, sharey=True)
    for ax, (theorem, r_min) in zip(axes, THEOREMS.items(), strict=True):
        lines = {f"ε = {epsilon:g}": (SIZE_POWERS, line) for epsilon, line in _lines(table, theorem).items()}
        title = theorem if r_min == 0 else rf"{theorem}, $R_{{\min}}$ = {r_min:g}"
        labels = {"xlabel": "p", "ylabel": "Negatives needed", "yscale": "log", "xticks": SIZE_POWERS}
        draw_lines(ax, lines, line_style, title=title, **labels)
        legend(ax, loc="upper left")
        ax.label_outer()
    return figure


# Measure, the direction in which it should go from p = 1 to p = 64, from "we expect the P-Norm Push for small p to
# yield the best results for optimizing AUC" and large p for R_{p,1} with large p, DCG and AveR (JMLR 2009, sec. 8).
MEASURES: dict[str, tuple[Callable[[np.ndarray, np.ndarray], float], int]] = {
    "AUC": (auc, -1),
    "partial AUC, FPR ≤ 5 %": (partial(partial_auc, max_fpr=0.05), +1),
    "precision at 100": (partial(precision_at, k=100), +1),
    "R_16": (partial(p_norm_risk, p=16, normalize=True), -1),
    "DCG": (push_dcg, +1),
    "AveR": (average_reciprocal_rank, +1),
}
CLAIMED = ("AUC", "R_16", "DCG", "AveR")
POWERS = (1, 2, 4, 8, 16, 32, 64, np.inf)
COLUMNS = (*(f"p = {p:g}" for p in POWERS), "IR Push")
FIRST, LAST, LIMIT, IR = (COLUMNS.index(name) for name in ("p = 1", "p = 64", "p = inf", "IR Push"))


def magic_tradeoff(*, n_splits: int = 30, n_jobs: int | None = None, random_state: int = 0) -> Result:
    """Measure the whole list and its top on MAGIC against p: the list gets worse, its top better.

    Parameters
    ----------
    n_splits : int
        Number of random draws of 1000 training rows, as in Table 3.
    n_jobs : int, optional
        Number of processes.
    random_state : int
        First seed.
    """
    data = load_magic()
    X, y = unit_range(data.data), data.target
    values = over_splits(partial(_measure, X, y), n_splits, n_jobs, random_state)
    table = tidy({"measure": MEASURES, "column": COLUMNS}, spread(values))
    verdicts = [_judge(name, values[:, m]) for m, name in enumerate(MEASURES)]
    verdicts += [_same_as_ir(values), _goes_on(values)]
    notes = [
        f"{data.source}; 1000 random training rows, measured on the rest; mean ± standard error over {n_splits} "
        "draws. R_16 is normalised: between 0 and 1, smaller is better.",
        "p = ∞: the direction of the coefficients as p grows; the minimum itself is at w = 0.",
    ]
    return Result(table, _tradeoff_view(table), verdicts, _draw_tradeoff(values), notes)


def _measure(X: np.ndarray, y: np.ndarray, seed: int) -> list[list[float]]:
    """Measure the test rows of one split: measures x columns."""
    train, test = next(one_draw(X, y, seed))
    positives = np.sum(y[train] == np.max(y))  # the papers' objective is a sum over these
    rankers = [*(PNormPush(p, alpha=1e-6) for p in POWERS), IRPush(alpha=1e-6 / positives)]
    with warnings.catch_warnings():
        # the classes of MAGIC overlap so much that p = ∞ gives only the direction for growing p
        warnings.simplefilter("ignore", CollapsedWarning)
        scores = [ranker.fit(X[train], y[train]).decision_function(X[test]) for ranker in rankers]
    return [[measure(y[test], s) for s in scores] for measure, _ in MEASURES.values()]


def _judge(name: str, values: np.ndarray) -> Verdict:
    expected = MEASURES[name][1]
    why = f"should {'rise' if expected > 0 else 'fall'} from p = 1 to p = 64; the change is {{}}"
    judge = signed_verdict if name in CLAIMED else question
    return mean_verdict(name, values[:, LAST] - values[:, FIRST], why, expected, judge)


def _same_as_ir(values: np.ndarray) -> Verdict:
    """Check that "the IR Push and P-Norm Push for p = 64 yielded almost identical results" (JMLR 2009, sec. 8)."""
    mean = values.mean(axis=0)
    apart = np.abs((mean[:, IR] - mean[:, LAST]) / (mean[:, LAST] - mean[:, FIRST]))
    why = f"no measure is further apart than {apart.max():.0%} of its way from p = 1 to p = 64"
    return claim("IR Push like p = 64", bool(apart.max() <= 0.2), why)


def _goes_on(values: np.ndarray) -> Verdict:
    """Question: does every measure change from p = 64 to p = ∞ as it did from p = 1 to p = 64?"""
    signs = [direction for _, direction in MEASURES.values()]
    moved = [mean_over_splits(values[:, m, LIMIT] - values[:, m, LAST]) for m in range(len(MEASURES))]
    onwards = [change.sign * sign for change, sign in zip(moved, signs, strict=True)]
    sign = -1 if -1 in onwards else int(onwards.count(1) * 2 > len(onwards))
    changes = "; ".join(f"{name} {change}" for name, change in zip(MEASURES, moved, strict=True))
    why = f"beyond noise in {onwards.count(1)} of {len(onwards)} measures: {changes}"
    return question("p = ∞ goes on", sign, why)


def _tradeoff_view(table: pl.DataFrame) -> pl.DataFrame:
    rows = []
    for part in table.partition_by("measure", maintain_order=True):
        name = part["measure"][0]
        rows.append([name, "mean", *(f"{mean:.5g}" for mean in part["mean"])])
        rows.append([name, "± s.e.", *(f"{error:.1g}" for error in part["standard_error"])])
    return pl.DataFrame(rows, schema=["measure", "of the draws", *COLUMNS], orient="row")


def _draw_tradeoff(values: np.ndarray) -> Figure:
    figure, axes = panels(11, 6, 2, 3, sharex=True)
    measured = dict(zip(MEASURES, values[:, :, : len(POWERS)].swapaxes(0, 1), strict=True))
    PTradeoffDisplay.from_values(POWERS, measured, axes=axes)
    for ax in axes[0]:
        ax.set_xlabel("")
    figure.suptitle(f"MAGIC, test rows: mean ± standard error over {len(values)} draws of 1000 training rows")
    return figure
