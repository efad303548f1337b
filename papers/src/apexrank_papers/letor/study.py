"""Comparison of LetorRanker with LightGBM, ridge regression and RankSVM on public query sets.

:mod:`apexrank_papers.letor.sets` lists the sets and their roles (choice of the recipe, or claim). Each set has five
folds: three fifths of its queries for training, one for validation and one for test; every query is a test query once.
Every ranker except LetorRanker has 16 settings, of which the best by NDCG on the validation queries is refitted on
training and validation queries together. LetorRanker uses its defaults and the same queries, which it splits itself. A
ranker on a fold of a set is a *cell*; finished cells are stored in a file.

``LOOKS`` counts the looks at the test queries of the claim.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from apexrank.datasets import Fold
from apexrank.errors import InputError
from apexrank.integrations.boosting import RetargetObjective
from apexrank.metrics import evaluate, per_group
from apexrank.penalties import Ridge
from apexrank.preprocessing import QueryNormalizer
from apexrank.rankers import (
    AdditiveRetargeting,
    LetorRanker,
    LinearRanker,
    ListwiseRanker,
    MonotoneRetargeting,
)
from apexrank.rankers.forest import fewest_in_leaf
from apexrank.rankers.trees import LIGHTGBM_OPTIONS
from apexrank.validation import segment
from apexrank_papers.cells import Cell, Key, kept_cells, run_cells
from apexrank_papers.data.sources import MissingDataError
from apexrank_papers.letor.sets import ALTERNATIVES, APART, CHOOSE, CLAIM, folds_of, names_in
from apexrank_papers.result import Result, Verdict, interval_verdict, panels, question

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = "two, the first with the LetorRanker of apexrank 0.2.0"
MEASURES = {"NDCG": "ndcg", "NDCG@10": "ndcg@10", "MAP": "average_precision"}
OURS, BASE = "LetorRanker", "LightGBM lambdarank"
POOLED = ("all", "choices", "other lists")
DRAWS = 10_000
ALPHAS = np.logspace(-5, 2, 16).tolist()
FEW_ALPHAS = (1e-3, 1e-2, 1e-1, 1.0)
OFFSETS = ("sqrt", "linear", "binary", "gain")
SHAPES = {"num_leaves": (7, 31), "feature_fraction": (0.3, 1.0)}
ROUNDS = (25, 50, 100, 200)
SEEDS = 10
LBFGS: dict[str, Any] = {"solver": "lbfgs", "tol": 1e-4}

KEY = ("set", "fold", "ranker")  # key of a cell
Scores = Callable[[Fold], np.ndarray]


def letor_study(
    *,
    data: str = "",
    cells: str = "",
    sets: Sequence[str] = (),
    methods: Sequence[str] = (),
    n_jobs: int | None = None,
) -> Result:
    """Evaluate all rankers on all sets, which takes about an hour on one core.

    Parameters
    ----------
    data : str
        Folder of sets: LETOR files NAME.txt or NAME.txt.gz, and folders of five folds. MQ2008 and MQ2008-agg come from
        ``$APEXRANK_DATA``. Without it no cell is run and the cells in the file are summarised.
    cells : str
        JSON lines file of finished cells. A run with the same file computes only the missing ones.
    sets : sequence of str
        By default the available sets of the claim and MQ2008-agg; other names are looked up in the folder.
    methods : sequence of str
        Rankers to include; by default all that are installed.
    n_jobs : int
        Processes.
    """
    if not data and not (cells and Path(cells).exists()):
        raise MissingDataError(
            "letor-study takes an hour and needs sets of queries: name a folder of LETOR files with --data DIR "
            "(python -m apexrank_papers.letor.sets DIR writes those of Python packages); without --data only the "
            "cells in the --cells FILE of an earlier run are summarised"
        )
    kept = kept_cells(cells, KEY, is_whole)
    if data:
        known = rankers()
        if unknown := [name for name in methods if name not in known]:
            raise InputError(
                f"{unknown[0]!r} is not an installed ranker of the study: use some of {', '.join(known)}"
            )
        methods = list(methods or known)
        sets = sets or [name for name in (*CLAIM, *APART) if name in names_in(data)]
        wanted = [(name, fold, method) for method in methods for name in sets for fold in range(5)]
        found, notes = run_cells(run_cell, wanted, kept, KEY, data, cells, n_jobs)
    else:
        found, notes = kept, []
        sets = sets or list(dict.fromkeys(name for name, _, _ in found))
        methods = list(methods or dict.fromkeys(method for _, _, method in found))
    if not {OURS, BASE} <= {*methods}:
        raise InputError(
            f"the study compares {OURS} with {BASE}, and one of them is missing: install LightGBM"
        )
    whole = [
        name for name in sets if all((name, fold, one) in found for fold in range(5) for one in (OURS, BASE))
    ]
    if not whole:
        raise InputError(f"no set is complete: {'; '.join(notes) or 'run the missing cells with --data DIR'}")
    return summarise(found, whole, methods, notes)


# ---------------------------------------------------------------- rankers


def rankers() -> dict[str, Scores]:
    """Return every installed ranker as a function from a fold to scores of its test rows."""
    ranksvm = partial(
        LinearRanker, "pairs", objective_params={"p": 1, "loss": "squared_hinge"}, solver="lbfgs", tol=1e-4
    )
    found: dict[str, Scores] = {
        OURS: letor_scores,
        "linear retargeting": partial(
            searched, partial(MonotoneRetargeting, **LBFGS), {"alpha": FEW_ALPHAS, "offsets": OFFSETS}
        ),
        "additive retargeting": partial(
            searched, partial(AdditiveRetargeting, **LBFGS), {"alpha": FEW_ALPHAS, "offsets": OFFSETS}
        ),
        "ridge": partial(searched, partial(ListwiseRanker, "pointwise"), {"alpha": ALPHAS}),
        "RankSVM": partial(searched, ranksvm, {"penalty": [Ridge(alpha) for alpha in ALPHAS]}),
    }
    if find_spec("lightgbm"):
        for name, objective in {
            "LightGBM lambdarank": "lambdarank",
            "LightGBM rank_xendcg": "rank_xendcg",
            "trees, retargeting": RetargetObjective(),
        }.items():
            found[name] = partial(searched, partial(Trees, objective), SHAPES, rounds=ROUNDS)
        make = partial(Trees, "lambdarank")
        found[f"{BASE}, {SEEDS} seeds"] = partial(searched, make, SHAPES, rounds=ROUNDS, seeds=SEEDS)
        found[f"{BASE}, query features"] = partial(searched, make, SHAPES, rounds=ROUNDS, in_queries=True)
        found[f"{BASE}, query features, {SEEDS} seeds"] = partial(
            searched, make, SHAPES, rounds=ROUNDS, seeds=SEEDS, in_queries=True
        )
    return found


class Trees:
    """Boosted trees of LightGBM."""

    def __init__(self, objective: Any, *, n_estimators: int, random_state: int = 0, **shape: Any) -> None:
        self.objective, self.n_estimators, self.random_state = objective, n_estimators, random_state
        self.shape = shape

    def fit(self, X: np.ndarray, y: np.ndarray, *, groups: np.ndarray) -> Trees:
        """Fit on rows in any order."""
        import lightgbm

        lists = segment(groups, len(y))
        options = LIGHTGBM_OPTIONS | self.shape | {"objective": self.objective, "seed": self.random_state}
        options |= {"num_threads": 1, "min_data_in_leaf": fewest_in_leaf(len(y))}
        data = lightgbm.Dataset(X[lists.order], y[lists.order], group=np.diff(lists.indptr))
        self.booster_ = lightgbm.train(options, data, self.n_estimators)
        return self

    def staged(self, X: np.ndarray, rounds: Sequence[int]) -> list[np.ndarray]:
        """Scores after these numbers of rounds."""
        return [self.booster_.predict(X, num_iteration=n, raw_score=True) for n in rounds]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Scores after all rounds."""
        return self.staged(X, [self.n_estimators])[0]


def letor_scores(fold: Fold) -> np.ndarray:
    """Score the test rows with LetorRanker and its defaults."""
    ranker = LetorRanker().fit(*(train := both(fold))[:2], groups=train[2])
    return ranker.predict(fold.test.data)


def both(fold: Fold) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, relevance and queries of training and validation together."""
    parts = fold.train, fold.validation
    return tuple(np.concatenate([part[key] for part in parts]) for key in ("data", "target", "groups"))  # type: ignore[return-value]


def searched(
    make: Callable[..., Any],
    grid: Mapping[str, Sequence[Any]],
    fold: Fold,
    *,
    rounds: Sequence[int] = (),
    seeds: int = 1,
    in_queries: bool = False,
) -> np.ndarray:
    """Score the test rows with the setting that is best on the validation queries, refitted on both parts."""
    fold = with_query_features(fold) if in_queries else fold if rounds else scaled(fold)
    train, validation = fold.train, fold.validation
    best: tuple[float, dict[str, Any]] = (-np.inf, {})
    for values in product(*grid.values()):
        options = dict(zip(grid, values, strict=True))
        more = {"n_estimators": max(rounds)} if rounds else {}
        ranker = make(**options, **more).fit(train.data, train.target, groups=train.groups)
        path = ranker.staged(validation.data, rounds) if rounds else [ranker.predict(validation.data)]
        for place, scores in enumerate(path):
            value = evaluate(validation.target, scores, "ndcg", groups=validation.groups)["ndcg"]
            if value > best[0]:
                best = value, options | ({"n_estimators": rounds[place]} if rounds else {})
    X, y, groups = both(fold)
    repeats = [{"random_state": seed} for seed in range(seeds)] if seeds > 1 else [{}]
    fitted = (make(**best[1], **seed).fit(X, y, groups=groups) for seed in repeats)
    return np.mean([ranker.predict(fold.test.data) for ranker in fitted], axis=0)


def scaled(fold: Fold) -> Fold:
    """Standardise the features by the training rows, for rankers that need it."""
    scaler = StandardScaler().fit(fold.train.data)
    return mapped(fold, lambda part: scaler.transform(part.data))


def with_query_features(fold: Fold) -> Fold:
    """Add the features standardised inside each query."""
    normalizer = QueryNormalizer("standard")
    return mapped(
        fold,
        lambda part: np.column_stack([part.data, normalizer.fit_transform(part.data, groups=part.groups)]),
    )


def mapped(fold: Fold, change: Callable[[Bunch], np.ndarray]) -> Fold:
    """Return the fold with transformed features."""
    parts = (Bunch(data=change(part), target=part.target, groups=part.groups) for part in fold[1:])
    return Fold(fold.name, *parts)


# ---------------------------------------------------------------- cells


def is_whole(cell: Cell) -> bool:
    """Return whether a cell has all measures."""
    return all(len(cell[name]) == len(cell["queries"]) for name in MEASURES)


_folds = cache(folds_of)


def run_cell(name: str, fold: int, ranker: str, data: str) -> Cell:
    """Choose, fit and evaluate one ranker on one fold of one set; an error is stored in the cell."""
    cell: Cell = {"set": name, "fold": fold, "ranker": ranker}
    try:
        own = _folds(name, data)[fold]
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            start = process_time()
            scores = rankers()[ranker](own)
            seconds = process_time() - start
    except Exception as error:
        return cell | {"error": f"{type(error).__name__}: {error}"}
    table = per_group(own.test.target, scores, MEASURES.values(), groups=own.test.groups).drop_nulls()
    values = {
        name: table[column].round(6).to_list()
        for name, column in zip(MEASURES, table.columns[3:], strict=True)
    }
    return cell | {
        "queries": table["group"].cast(pl.String).to_list(),
        **values,
        "seconds": round(seconds, 2),
    }


# ---------------------------------------------------------------- summary


def summarise(found: dict[Key, Cell], sets: list[str], methods: list[str], notes: list[str]) -> Result:
    """Summarise the cells of these sets: means of every ranker, and differences of LetorRanker from each of them."""
    table = pl.concat(
        pl.DataFrame({name: cell[name] for name in ("set", "ranker", "queries", *MEASURES)}).with_columns(
            seconds=pl.lit(cell["seconds"] / len(cell["queries"]))
        )
        for cell in found.values()
        if cell["set"] in sets and cell["ranker"] in methods
    ).with_columns(person=pl.col("queries").str.split(":").list.first())
    claimed = [name for name in sets if name not in APART]
    pools = {
        "all": claimed,
        "choices": [name for name in claimed if name in ALTERNATIVES],
        "other lists": [name for name in claimed if name not in ALTERNATIVES],
    }
    pools = {name: own for name, own in pools.items() if own} | {name: [name] for name in sets}
    parts = [differences(table, pool, own, methods) for pool, own in pools.items()]
    tidy = pl.concat([part for part in parts if len(part)])
    sizes = {pool: len(_pool(table, OURS, own)) for pool, own in pools.items()}
    notes = [
        f"test queries with a relevant document: {', '.join(f'{name} {n:,}' for name, n in sizes.items())}",
        f"looks at the test queries of the claim: {LOOKS}, whose recipe was chosen on {', '.join(CHOOSE)}",
        f"intervals: 95 %, paired bootstrap over queries (persons, if they made several choices), {DRAWS:,} draws",
        "every ranker but LetorRanker has 16 settings, chosen on validation queries; seconds are the processor time "
        "of one thread for all fits on the sets of its pool",
        *notes,
    ]
    figure = draw(tidy, list(pools)) if find_spec("matplotlib") else None
    return Result(tidy, _view(tidy), list(_verdicts(tidy)), figure, notes)


def differences(table: pl.DataFrame, pool: str, sets: list[str], methods: list[str]) -> pl.DataFrame:
    """Average the rankers that have all queries of a pool, with LetorRanker's difference from each and its interval."""
    own = {method: _pool(table, method, sets) for method in methods}
    own = {method: rows for method, rows in own.items() if len(rows) == len(own[BASE])}
    if OURS not in own:
        return pl.DataFrame()
    keys = list(product(own, MEASURES))
    values = np.column_stack([own[method][measure] for method, measure in keys])
    ours = np.tile(own[OURS].select(*MEASURES).to_numpy(), len(own))
    unit = own[OURS].select(pl.struct("set", "person").rank("dense") - 1).to_series().to_numpy()
    low, high = bootstrap(ours - values, unit)
    lines = {
        "sets": pool,
        "ranker": [method for method, _ in keys],
        "measure": [measure for _, measure in keys],
        "mean": values.mean(axis=0),
        "difference": (ours - values).mean(axis=0),
        "low": low,
        "high": high,
        "seconds": [float(own[method]["seconds"].sum()) for method, _ in keys],
    }
    return pl.DataFrame(lines)


def _pool(table: pl.DataFrame, method: str, sets: list[str]) -> pl.DataFrame:
    rows = table.filter((pl.col("ranker") == method) & pl.col("set").is_in(sets))
    return rows.sort("set", "queries")


def bootstrap(values: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute 95 % bootstrap confidence intervals of the column means; rows of one unit are resampled together.

    Examples
    --------
    >>> low, high = bootstrap(np.array([[1.0], [1.0], [3.0]]), np.array([0, 0, 1]))
    >>> low.tolist(), high.tolist()
    ([1.0], [3.0])
    """
    n = np.bincount(unit)
    sums = np.column_stack([np.bincount(unit, column) for column in values.T])
    rng, means = np.random.default_rng(0), np.empty((DRAWS, values.shape[1]))
    for mean in means:
        drawn = np.bincount(rng.integers(len(n), size=len(n)), minlength=len(n))
        mean[:] = (drawn @ sums) / (drawn @ n)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return low, high


def _gap(difference: float, low: float, high: float) -> str:
    return f"{difference:+.4f} ({low:+.4f} to {high:+.4f})"


def _view(tidy: pl.DataFrame) -> pl.DataFrame:
    """Show one line per ranker: means and the difference of NDCG on the largest pool and on the other pools."""
    names = tidy["sets"].unique(maintain_order=True).to_list()
    first, *others = [name for name in names if name in (*POOLED, *APART)]
    lines: dict[str, dict[str, str]] = {}
    for row in tidy.filter(sets=first).iter_rows(named=True):
        line = lines.setdefault(row["ranker"], {"ranker": row["ranker"]})
        line[row["measure"]] = f"{row['mean']:.4f}"
    for row in tidy.filter(pl.col("sets").is_in([first, *others]), measure="NDCG").iter_rows(named=True):
        if row["ranker"] != OURS and row["ranker"] in lines:
            text = _gap(row["difference"], row["low"], row["high"])
            lines[row["ranker"]][f"{OURS} less it, {row['sets']}"] = text
    for row in tidy.filter(sets=first, measure="NDCG").iter_rows(named=True):
        lines[row["ranker"]]["seconds"] = f"{row['seconds']:.0f}"
    return pl.DataFrame(list(lines.values()), infer_schema_length=None).fill_null("")


def _verdicts(tidy: pl.DataFrame) -> Iterator[Verdict]:
    for row in tidy.filter(ranker=BASE).iter_rows(named=True):
        if row["sets"] in POOLED or row["measure"] == "NDCG":
            low, high = row["low"], row["high"]
            claim = f"{OURS}, {row['sets']}: better {row['measure']} than {BASE}"
            yield interval_verdict(claim, low, high, _gap(row["difference"], low, high), question)


def draw(tidy: pl.DataFrame, pools: list[str]) -> Figure:
    """Draw NDCG of LetorRanker minus every other ranker on the pools, and minus lambdarank on each set."""
    from apexrank.plot.style import COLOURS, light

    tidy = tidy.filter(pl.col("ranker") != OURS, measure="NDCG")
    rankers, single = (
        tidy["ranker"].unique(maintain_order=True).to_list(),
        [p for p in pools if p not in POOLED],
    )
    sizes = [1 + len(rankers), 1 + len(single)]
    figure, (top, below) = panels(8.0, 1.8 + 0.27 * sum(sizes), 2, 1, height_ratios=sizes)
    for number, name in enumerate(pool for pool in POOLED if pool in pools):
        own = tidy.filter(sets=name)
        _bars(
            top, [rankers.index(r) + 0.22 * (number - 1) for r in own["ranker"]], own, COLOURS[number], name
        )
    own = tidy.filter(pl.col("sets").is_in(single), ranker=BASE)
    _bars(below, [single.index(name) for name in own["sets"]], own, COLOURS[0], "")
    for ax, labels in ((top, rankers), (below, single)):
        ax.axvline(0, color="0.3", linewidth=1)
        ax.set_yticks(range(len(labels)), labels)
        ax.invert_yaxis()
        light(ax)
    top.legend(frameon=False, title="pooled queries")
    top.set_title(f"{OURS} minus each other ranker", loc="left", fontsize="medium")
    below.set_title(f"{OURS} minus {BASE}, each set", loc="left", fontsize="medium")
    below.set_xlabel("difference in NDCG, 95 % interval")
    return figure


def _bars(ax: Any, y: list[float], found: pl.DataFrame, colour: str, label: str) -> None:
    mean, low, high = (found[name].to_numpy() for name in ("difference", "low", "high"))
    reach = np.stack([mean - low, high - mean])
    ax.errorbar(mean, y, xerr=reach, fmt="o", color=colour, label=label, markersize=4, linewidth=1.2)
