"""Boosting for ranking: convergence of AdaBoost to RankBoost's minimum, and the effect of p on boosted trees.

``adaboost-ranker`` (talk of 2006, after Rudin, Cortes, Mohri and Schapire, COLT 2005): AdaBoost, coordinate descent on
``Σ_i e^{−f_i} + Σ_k e^{g_k}``, converges to the minimum of RankBoost's ``Σ_i Σ_k e^{−(f_i − g_k)}`` when its F-skew
``Σ_i e^{−f_i} − Σ_k e^{g_k}`` vanishes, and it vanishes when a constant is among the weak classifiers.

``capacity`` (JMLR 2009, sec. 9.1): the effect of p is largest for a limited hypothesis space. A linear model gains at
the top of the list from p = 16; boosted trees rank nearly consistently, and p hardly matters for them if steps are
short (``learning_rate=0.3``) and the number of rounds is chosen on other rows. Further measurements:

* With full steps p does matter, with or without early stopping: p = 1 overfits at the top, p = 16 does not.
* With even shorter steps (0.1) and a fixed number of rounds p = 1 is better, by up to 0.03 of ``left``.
* With the better of the two settings for each p, p = 16 has an advantage of 0.01 to 0.02; a linear model has 0.08.
* Stumps form an additive model, again of small capacity: +0.020 ± 0.017 on the splits from 0 on, where the settings
  were chosen, +0.038 ± 0.015 on ten others. Depth-3 trees show no change beyond noise on either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import logsumexp
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from apexrank.metrics import auc, partial_auc, tpr_at_fpr
from apexrank.objectives import Push
from apexrank.objectives.base import Objective
from apexrank.plot.style import curve_style, light
from apexrank.problem import Problem
from apexrank.rankers import PNormPush, PushBoost
from apexrank.solvers import CoordinateDescent, Newton
from apexrank_papers.data.uci import load_magic, load_pima
from apexrank_papers.push.fitting import threshold_features, unit_range
from apexrank_papers.push.roc import first_six_features
from apexrank_papers.result import Figure, Result, Verdict, claim, panels, question
from apexrank_papers.splits import Mean, mean_over_splits, mean_verdict, over_splits


class AdaBoostLoss(Objective):
    """Logarithm of AdaBoost's ``Σ_i e^{−f_i} + Σ_k e^{g_k}`` as an objective of the scores.

    The logarithm leads to the same coordinate steps and cannot overflow.

    Examples
    --------
    >>> value, slope = AdaBoostLoss(np.array([True, False])).value_and_grad(np.zeros(2))
    >>> round(float(np.exp(value)), 9), slope.tolist()
    (2.0, [-0.5, 0.5])
    """

    n_groups, has_hessian = 1, False
    total = 1.0

    def __init__(self, positive: np.ndarray) -> None:
        self.positive, self.sign = positive, np.where(positive, 1.0, -1.0)

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the logarithm of the loss and its gradient."""
        value = logsumexp(-self.sign * scores)
        return float(value), -self.sign * np.exp(-self.sign * scores - value)

    def separated(self, scores: np.ndarray) -> bool:
        """Return whether every row is on the right side of 0."""
        return bool(np.all(self.sign * scores > 0))


def f_skew(positive: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Compute ``Σ_i e^{−f_i} − Σ_k e^{g_k}``, absolute and relative to the sum of both terms.

    Examples
    --------
    >>> f_skew(np.array([True, True, False, False]), np.array([0.0, 0.0, 0.0, np.log(2.0)]))
    (-1.0, -0.2)
    """
    up, down = np.exp(-scores[positive]).sum(), np.exp(scores[~positive]).sum()
    return float(up - down), float((up - down) / (up + down))


def boosting_path(X: np.ndarray, objective: Any, rounds: list[int]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the scores of coordinate descent (JMLR 2009, Fig. 2) after the given numbers of rounds."""
    problem, w, done = Problem(X, objective), np.zeros(X.shape[1]), 0
    for target in rounds:
        w, done = CoordinateDescent(target - done, tol=0.0).solve(problem, w).w, target
        yield target, problem.scores(w)


def weak_rankers() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return weak rankers in [0, 1] and labels: real features, and threshold features as in COLT 2006, Fig. 2."""
    pima, wdbc = load_pima(), first_six_features()
    return {
        "pima": (unit_range(pima.data), pima.target == 1),
        "pima thresholds": (threshold_features(pima.data)[0], pima.target == 1),
        "wdbc thresholds": (threshold_features(wdbc.data)[0], wdbc.target == 1),
    }


def adaboost_ranker(*, rounds: int = 1000) -> Result:
    """Compare RankBoost and AdaBoost with and without a constant weak classifier."""
    marks = sorted({round(r) for r in np.geomspace(1, rounds, 40)})
    table = pl.concat([_boost_set(name, X, y, marks) for name, (X, y) in weak_rankers().items()])
    last = table.filter(pl.col("round") == rounds)
    verdicts = [v for part in table.partition_by("set", maintain_order=True) for v in _skew_verdicts(part)]
    notes = [
        f"Coordinate descent with exact steps, {rounds} rounds, on all rows. excess: log of RankBoost's objective "
        "over its minimum, found by Newton's method; relative_skew: F-skew over the sum of its two terms."
    ]
    view = last.with_columns(
        pl.col("f_skew", "relative_skew", "excess").map_elements("{:.3g}".format, pl.String)
    )
    return Result(table, view.drop("round"), verdicts, _draw_paths(table), notes)


def _boost_set(name: str, X: np.ndarray, positive: np.ndarray, marks: list[int]) -> pl.DataFrame:
    """Return one row for each algorithm and number of rounds."""
    rank, classify = Push(positive, price="identity"), AdaBoostLoss(positive)
    least = Newton(tol=1e-10).solve(Problem(X, rank), np.zeros(X.shape[1])).value
    constant = np.column_stack([X, np.ones(len(X))])
    rows = []
    for algorithm, columns, objective in (
        ("RankBoost", X, rank),
        ("AdaBoost with constant", constant, classify),
        ("AdaBoost without constant", X, classify),
    ):
        for done, scores in boosting_path(columns, objective, marks):
            excess = rank.value_and_grad(scores)[0] - least
            measured = *f_skew(positive, scores), excess, auc(positive, scores)
            rows.append((name, algorithm, done, *measured))
    names = ["set", "algorithm", "round", "f_skew", "relative_skew", "excess", "AUC"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _skew_verdicts(path: pl.DataFrame) -> list[Verdict]:
    """Judge the talk's claims for one set: F-skew 0, RankBoost's minimum and AUC, and the need for the constant."""
    rounds = int(path["round"].to_numpy().max())
    rank, with_constant, without = path.filter(round=rounds).to_dicts()
    # a step along the constant makes the F-skew 0 for one round only, so the lasting value counts
    late = path.filter(pl.col("algorithm") == with_constant["algorithm"], pl.col("round") >= rounds / 2)
    name, skew, excess = rank["set"], np.abs(late["relative_skew"].to_numpy()).max(), with_constant["excess"]
    gap = with_constant["AUC"] - rank["AUC"]
    return [
        claim(f"{name}: F-skew", skew < 0.01, f"{skew:.1e} of the loss is left, less than 1e-2 should be"),
        claim(
            f"{name}: objective", excess < 0.02, f"RankBoost's minimum is missed by {np.expm1(excess):.2%}"
        ),
        claim(
            f"{name}: AUC", abs(gap) < 1e-3, f"{with_constant['AUC']:.4f}, RankBoost's is {rank['AUC']:.4f}"
        ),
        claim(
            f"{name}: without the constant",
            abs(without["relative_skew"]) > 0.01 and without["excess"] > 0.02,
            f"an F-skew of {abs(without['relative_skew']):.1%} stays, and RankBoost's minimum is missed by "
            f"{np.expm1(without['excess']):.0%}; AUC {without['AUC']:.4f}",
            question,
        ),
    ]


def _draw_paths(table: pl.DataFrame) -> Figure:
    """Draw F-skew, distance from RankBoost's minimum and AUC by round, in a column of panels for each set."""
    sets = table["set"].unique(maintain_order=True).to_list()
    figure, axes = panels(4 * len(sets), 8, 3, len(sets), sharex=True, squeeze=False)
    algorithms = table["algorithm"].unique(maintain_order=True).to_list()
    for part in table.partition_by("set", "algorithm", maintain_order=True):
        style = curve_style(algorithms.index(part["algorithm"][0])) | {"label": part["algorithm"][0]}
        # the largest from this round on, because each step along the constant makes it 0 for one round
        skew = np.maximum.accumulate(np.abs(part["relative_skew"].to_numpy())[::-1])[::-1]
        paths = skew, part["excess"].to_numpy(), part["AUC"].to_numpy()
        for ax, values in zip(axes[:, sets.index(part["set"][0])], paths, strict=True):
            # leave out rounding errors, such as RankBoost's distance from its own minimum
            ax.plot(part["round"], np.where(values > 1e-10, values, np.nan), **style)
    for ax, name in zip(axes[0], sets, strict=True):
        ax.set_title(name)
    labels = ("largest F-skew from here on", "log of R over its minimum", "AUC")
    for row, label, scale in zip(axes, labels, ("log", "log", "linear"), strict=True):
        row[0].set_ylabel(label)
        for ax in row:
            ax.set(xscale="log", yscale=scale)
            light(ax)
    axes[-1, -1].legend(frameon=False)
    figure.supxlabel("round")
    figure.suptitle("AdaBoost as a ranker")
    return figure


class Model(NamedTuple):
    """A kind of ranker: factory for given p and seed, and whether its rounds are chosen on other rows."""

    make: Callable[[float, int], Any]
    early_stopping: bool = False


def _trees(p: float, seed: int, *, depth: int, rounds: int, **options: Any) -> PushBoost:
    tree = DecisionTreeClassifier(max_depth=depth)
    return PushBoost(tree, p, n_estimators=rounds, random_state=seed, **options)


_CAREFUL: Any = {"rounds": 150, "learning_rate": 0.3, "scoring": "partial_auc_0.05", "n_iter_no_change": 40}
FULL = "depth-3 trees, full steps"
MODELS = {
    "linear": Model(lambda p, seed: PNormPush(p, alpha=1e-6)),
    "stumps": Model(partial(_trees, depth=1, **_CAREFUL), early_stopping=True),
    "depth-3 trees": Model(partial(_trees, depth=3, **_CAREFUL), early_stopping=True),
    FULL: Model(partial(_trees, depth=3, rounds=100)),
}
MEASURES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "left": partial(partial_auc, max_fpr=0.05),
    "TPR at 1 % FPR": partial(tpr_at_fpr, fpr=0.01),
    "AUC": auc,
}
PS = (1, 16)
CLAIMED = ("linear", "depth-3 trees")


def capacity(*, n_splits: int = 10, n_jobs: int | None = None, random_state: int = 0) -> Result:
    """Measure the change of top-of-list measures from p = 1 to p = 16 for a linear model and for boosted trees."""
    data = load_magic()
    values = over_splits(partial(_measure, data.data, data.target), n_splits, n_jobs, random_state)
    changes = {
        (model, measure): mean_over_splits(values[:, m, 1, k] - values[:, m, 0, k])
        for m, model in enumerate(MODELS)
        for k, measure in enumerate(MEASURES)
    }
    rows = [
        (*key, *values[:, m, :, k].mean(axis=0), change.value, change.noise)
        for (key, change), (m, k) in zip(changes.items(), np.ndindex(len(MODELS), len(MEASURES)), strict=True)
    ]
    table = pl.DataFrame(rows, schema=["model", "measure", "p=1", "p=16", "change", "noise"], orient="row")
    view = table.with_columns(pl.col("p=1", "p=16").map_elements("{:.4f}".format, pl.String)).drop("noise")
    view = view.with_columns(change=pl.Series([str(change) for change in changes.values()]))
    notes = _capacity_notes(data, n_splits, values)
    return Result(table, view, _capacity_verdicts(values, changes), notes=notes)


def _measure(X: np.ndarray, y: np.ndarray, seed: int) -> list[list[list[float]]]:
    """Measure models x p x measures on one split: 1000 rows to fit, 4000 to choose the rounds, the rest to test."""
    train, rest, y_train, y_rest = train_test_split(X, y, train_size=1000, stratify=y, random_state=seed)
    held_out, test, y_test = (rest[:4000], y_rest[:4000]), rest[4000:], y_rest[4000:]
    out = []
    for model in MODELS.values():
        options = {"eval_set": held_out} if model.early_stopping else {}
        rankers = [model.make(p, seed).fit(train, y_train, **options) for p in PS]
        scores = [ranker.decision_function(test) for ranker in rankers]
        out.append([[measure(y_test, s) for measure in MEASURES.values()] for s in scores])
    return out


def _capacity_verdicts(values: np.ndarray, changes: dict[tuple[str, str], Mean]) -> list[Verdict]:
    """Claim: a linear model gains from p = 16; trees with short steps change by less than half of that."""
    change = changes["depth-3 trees", "left"]
    linear, trees = (np.diff(values[:, list(MODELS).index(model), :, 0])[:, 0] for model in CLAIMED)
    smaller = f"p should matter less than half as much; the change is {change}"
    return [
        mean_verdict("linear left", linear, "p = 16 should be better than p = 1; the change is {}"),
        mean_verdict("depth-3 trees left", linear / 2 - np.sign(change.value) * trees, smaller),
    ]


def _capacity_notes(data: Any, n_splits: int, values: np.ndarray) -> list[str]:
    careful, full = (values[:, list(MODELS).index(name), :, 0] for name in ("depth-3 trees", FULL))
    best = [max((part[:, k] for part in (careful, full)), key=np.mean) for k in range(len(PS))]
    return [
        f"{data.source}; 1000 rows for training, 4000 to choose the rounds of the trees, the others for testing; means "
        f"over {n_splits} splits; left: area under the ROC curve up to 5 % of the negatives.",
        "With full steps and no early stopping p does matter for trees: left changes by "
        f"{mean_over_splits(full[:, 1] - full[:, 0])}, because p = 1 then overfits at the top. With the better of the "
        f"two settings for each p it changes by {mean_over_splits(best[1] - best[0])}.",
    ]
