"""Measures by name, such as ``"auc"`` or ``"ndcg_at_10"``, for one list, by group, or as scikit-learn scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import get_scorer as sklearn_scorer
from sklearn.metrics import make_scorer

from apexrank.errors import InputError, unknown
from apexrank.metrics._labels import (
    RankMeasure,
    as_labels,
    check_grades,
    check_rows,
    distinct,
    ranking_measure,
)
from apexrank.metrics._rows import Empty, ScoredRows, Ties, Values
from apexrank.metrics.discounted_gain import dcg, err, ndcg
from apexrank.metrics.permutation import kendall_tau
from apexrank.metrics.precision import average_precision, mrr, precision_at, recall_at, winner_takes_all
from apexrank.metrics.push import average_reciprocal_rank, p_norm_risk, push_dcg, r_max
from apexrank.metrics.roc import auc, partial_auc, tpr_at_fpr
from apexrank.validation import check_choice

if TYPE_CHECKING:
    import polars as pl

Need = Literal["both", "positive"]


class Family(NamedTuple):
    """Measures that share a name up to the number at its end."""

    function: RankMeasure
    label: str
    options: dict[str, Any] = {}  # noqa: RUF012  options of the function
    argument: str | None = None  # argument set by the number at the end of the name
    greater_is_better: bool = True
    graded: bool = False
    ties: bool = True


@ranking_measure("grades")
def _kendall(rows: ScoredRows) -> Values:
    """Kendall's τ_b of scores and relevance in each group; undefined if either is all tied."""
    times, relevance, scores = rows.repetitions(), rows.relevance, rows.scores
    values = np.full(len(rows.groups), np.nan)
    for q in range(len(rows.groups)):
        own = rows.groups.rows(q)
        own = own if times is None else np.repeat(own, times[own])
        values[q] = kendall_tau(scores=(relevance[own], scores[own]))
    return Values(np.nan_to_num(values), ~np.isnan(values))


_TEN = {"k": 10}
_LINEAR = {"gain": "linear"}

FAMILIES = {
    "auc": Family(auc, "AUC"),
    "partial_auc": Family(partial_auc, "partial AUC (FPR <= {})", {"max_fpr": 0.1}, "max_fpr"),
    "tpr_at_fpr": Family(tpr_at_fpr, "TPR at {} FPR", {"fpr": 0.01}, "fpr", ties=False),
    "precision_at": Family(precision_at, "precision at {}", _TEN, "k"),
    "recall_at": Family(recall_at, "recall at {}", _TEN, "k"),
    "average_precision": Family(average_precision, "average precision"),
    "average_precision_at": Family(average_precision, "average precision at {}", _TEN, "k"),
    "ndcg": Family(ndcg, "NDCG", graded=True),
    "ndcg_at": Family(ndcg, "NDCG at {}", _TEN, "k", graded=True),
    "ndcg_linear": Family(ndcg, "NDCG, linear gain", _LINEAR, graded=True),
    "ndcg_linear_at": Family(ndcg, "NDCG at {}, linear gain", _TEN | _LINEAR, "k", graded=True),
    "dcg": Family(dcg, "DCG", graded=True),
    "dcg_at": Family(dcg, "DCG at {}", _TEN, "k", graded=True),
    "err": Family(err, "ERR", graded=True),
    "err_at": Family(err, "ERR at {}", _TEN, "k", graded=True),
    "mrr": Family(mrr, "reciprocal rank"),
    "mrr_at": Family(mrr, "reciprocal rank at {}", _TEN, "k"),
    "winner_takes_all": Family(winner_takes_all, "winner takes all"),
    "kendall_tau": Family(_kendall, "Kendall's tau (b)", graded=True, ties=False),
    "average_reciprocal_rank": Family(average_reciprocal_rank, "AveR (sum of 1/rank)"),
    "push_dcg": Family(push_dcg, "DCG of the push papers (sum of 1/ln(1 + rank))"),
    "r_max": Family(r_max, "R_max (positives below the highest negative)", greater_is_better=False),
    "p_norm_risk": Family(
        p_norm_risk, "R_{} (normalised)", {"p": 4.0, "normalize": True}, "p", greater_is_better=False
    ),
}
ALIASES = {
    "map": "average_precision",
    "ap": "average_precision",
    "p": "precision",
    "r": "recall",
    "recip_rank": "mrr",
    "rr": "mrr",
    "ndcg_burges": "ndcg",
    "ndcg_score": "ndcg_linear",
}
# trec_eval's names: its NDCG has a linear gain
_TREC = {"map_cut": "average_precision", "ndcg_cut": "ndcg_linear", "p": "precision", "recall": "recall"}


class Measure(NamedTuple):
    """Measure with all its options set."""

    name: str
    family: Family
    options: dict[str, Any]

    @property
    def label(self) -> str:
        """Display name."""
        number = self.options.get(self.family.argument or "", 0)
        percent = self.family.argument in ("max_fpr", "fpr")
        return self.family.label.format(f"{100 * number:g}%" if percent else f"{number:.15g}")

    def values(self, rows: ScoredRows, ties: Ties | None = None) -> Values:
        """Compute the value of each group; the default rule for ties is that of the measure."""
        if self.family.graded:
            check_grades(rows.relevance)
        rule = {"ties": ties} if ties and self.family.ties else {}
        return self.family.function.formula(rows, **self.options, **rule)

    def mean(self, rows: ScoredRows, empty: Empty = "skip", ties: Ties | None = None) -> float:
        """Mean over the groups."""
        return rows.mean(self.values(rows, ties), empty)


def find_measure(name: str) -> Measure:
    """Return the measure of a name, such as ``"ndcg"``, ``"ndcg_at_10"``, ``"ndcg@10"``, ``"map"``, ``"p@5"``.

    trec_eval's names work too: ``"P_5"``, ``"recall_10"``, ``"map_cut_10"``, ``"ndcg_cut_10"`` (with linear gain).

    Examples
    --------
    >>> find_measure("ndcg@10").label, find_measure("partial_auc_0.05").label
    ('NDCG at 10', 'partial AUC (FPR <= 5%)')
    """
    if not isinstance(name, str):
        raise InputError(f"a measure is named by text such as 'ndcg_at_10', got {name!r}")
    known = name.strip().lower()
    stem, _, number = known.rpartition("_")
    if stem in _TREC and number.isdigit():
        known = f"{_TREC[stem]}_at_{number}"
    base, at, number = known.replace("@", "_at_").partition("_at_")
    full = ALIASES.get(base, base) + at + number
    if full in FAMILIES:
        return Measure(name, FAMILIES[full], FAMILIES[full].options)
    stem, _, number = full.rpartition("_")
    if stem in FAMILIES and (argument := FAMILIES[stem].argument):
        try:
            value = float(number)
        except ValueError:
            pass
        else:
            _check_argument(name, stem, argument, value)
            return Measure(name, FAMILIES[stem], FAMILIES[stem].options | {argument: value})
    numbered = ", with a number after those that take one, such as ndcg_at_10 or partial_auc_0.05"
    raise unknown("measure", name, FAMILIES, more=numbered)


def _check_argument(name: str, stem: str, argument: str, value: float) -> None:
    """Raise InputError early for a number that the measure would reject later."""
    whole = value == np.floor(value) and 1 <= value < np.inf
    share = argument == "k" and stem in ("precision_at", "recall_at") and 0 < value < 1
    fits = {"k": whole or share, "max_fpr": 0 < value <= 1, "fpr": 0 <= value <= 1, "p": value > 0}
    if not fits[argument]:
        kinds = {"k": "a number of rows 1, 2, ...", "p": "a number above 0"}
        raise InputError(f"{name!r} needs {kinds.get(argument, 'a rate between 0 and 1')} at its end")


def find_measures(names: str | Iterable[str]) -> list[Measure]:
    """Return the measures of several names; a string is one name or several separated by commas."""
    if not isinstance(names, Iterable):
        raise InputError(f"measures must be names such as ['ndcg', 'map'], got {names!r}")
    listed = names.split(",") if isinstance(names, str) else names
    stripped = [name.strip() if isinstance(name, str) else name for name in listed]
    found = [find_measure(name) for name in dict.fromkeys(stripped)]
    if not found:
        raise InputError("there is no measure to compute: name at least one, such as 'ndcg'")
    return found


def evaluate(
    y_true: ArrayLike,
    scores: ArrayLike,
    measures: str | Iterable[str],
    *,
    ties: Ties | None = None,
    empty: Empty = "skip",
    relevant: float | None = None,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> dict[str, float]:
    """Evaluate several measures by name, with a single sort.

    Parameters
    ----------
    y_true, scores, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.auc`; labels may also be grades of relevance, as in `apexrank.metrics.ndcg`.
    measures : str or iterable of str
        Names such as "auc", "ndcg", "ndcg_at_10" or "ndcg@10", "map", "precision_at_5", "p_norm_risk_16": any that
        `get_scorer` knows. Losses such as "r_max" keep their sign here.
    ties : {"pessimistic", "average", "optimistic", "given"}, optional
        One rule for all measures; by default each has its own. "given" reproduces trec_eval for rows in its order.
    relevant : float, optional
        Lowest grade that counts as positive in measures of two classes.

    Examples
    --------
    >>> evaluate([1, 0, 2, 0], [0.9, 0.7, 0.4, 0.1], ["auc", "ndcg@2", "map"])
    {'auc': 0.75, 'ndcg@2': 0.27541..., 'map': 0.8333...}
    """
    rows = check_rows(y_true, scores, pos_label, groups, sample_weight, relevant, graded=True)
    found = {}
    for measure in find_measures(measures):
        try:
            found[measure.name] = measure.mean(rows, empty, ties)
        except InputError as error:
            raise InputError(f"{measure.name}: {error}") from None
    return found


def per_group(
    y_true: ArrayLike,
    scores: ArrayLike,
    measures: str | Iterable[str],
    *,
    groups: ArrayLike | None = None,
    ties: Ties | None = None,
    relevant: float | None = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> pl.DataFrame:
    """Evaluate measures by group (query), as a table; parameters as in `evaluate`.

    Returns
    -------
    polars.DataFrame
        A row for each group, sorted by its id: ``group``, its number of rows ``n``, the number of ``relevant`` rows
        (both weighted if there are weights), and a column for each measure, null where it is undefined.

    Examples
    --------
    >>> table = per_group([1, 0, 0, 0], [0.9, 0.7, 0.4, 0.1], ["mrr", "auc"], groups=["a", "a", "b", "b"])
    >>> table.rows()
    [('a', 2, 1, 1.0, 1.0), ('b', 2, 0, None, None)]
    """
    import polars as pl

    rows = check_rows(y_true, scores, pos_label, groups, sample_weight, relevant, graded=True)
    times = np.ones(len(rows), dtype=np.int64) if rows.weight is None else rows.weight
    times = times.astype(np.int64) if (times == np.floor(times)).all() else times
    n, n_relevant = (
        np.add.reduceat(counted[rows.groups.order], rows.groups.indptr[:-1])
        for counted in (times, times * rows.positive)
    )
    columns = {"group": rows.groups.names, "n": n, "relevant": n_relevant}
    for measure in find_measures(measures):
        value, defined = measure.values(rows, ties)
        columns[measure.name] = np.where(defined, value, np.nan)
    return pl.DataFrame({name: column[rows.present] for name, column in columns.items()}, nan_to_null=True)


def empty_groups(
    y_true: ArrayLike,
    groups: ArrayLike,
    *,
    need: Need = "both",
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Return the names of the groups for which a measure is undefined, to which the option ``empty`` applies.

    Parameters
    ----------
    y_true, groups, pos_label, sample_weight
        As in `auc`.
    need : {"both", "positive"}
        Requirement of the measure: rows of both classes, or positives only (precision, recall, sums over ranks).

    Examples
    --------
    >>> empty_groups([1, 0, 0, 1], ["a", "a", "b", "c"]).tolist()
    ['b', 'c']
    >>> empty_groups([1, 0, 0, 1], ["a", "a", "b", "c"], need="positive").tolist()
    ['b']
    """
    check_choice("need", need, Need)
    rows = check_rows(y_true, np.zeros(np.shape(y_true)), pos_label, groups, sample_weight)
    levels = rows.levels()
    enough = levels.has_both if need == "both" else levels.total_positive > 0
    return rows.groups.names[rows.present & ~enough]


def get_scorer(name: str) -> Callable[..., float]:
    """Return the scikit-learn scorer of a measure: ``scorer(estimator, X, y)``, larger is better.

    Parameters
    ----------
    name : str
        One of `scorer_names`, with an optional number that sets its argument: "precision_at_100",
        "partial_auc_0.05", "p_norm_risk_16", "ndcg_at_5" or "ndcg@5". The defaults are k = 10, max_fpr = 0.1,
        fpr = 0.01, p = 4 (normalised). Losses are negated. Any other name is looked up in scikit-learn.

    Returns
    -------
    callable
        It accepts ``groups`` and ``sample_weight`` by metadata routing, after
        ``scorer.set_score_request(groups=True)``. The ranking score is the estimator's decision_function, or else its
        probability of the positive class, or its prediction. Of two labels the larger is positive.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> get_scorer("precision_at_100")(GaussianNB().fit(X, y), X, y)
    1.0
    """
    try:
        measure = find_measure(name)
    except InputError as error:
        if "unknown" not in str(error):
            raise
        try:
            return sklearn_scorer(name)
        except ValueError:
            raise unknown("scorer", name, FAMILIES, more=", or scikit-learn's") from None
    return make_scorer(
        one_measure,
        response_method=("decision_function", "predict_proba", "predict"),
        greater_is_better=measure.family.greater_is_better,
        name=name,
    )


def one_measure(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    name: str,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Evaluate one measure by name, for scorers; two labels are two classes, as in scikit-learn."""
    labels = np.asarray(y_true)
    values = distinct(as_labels(labels))
    pos_label = values[1] if len(values) == 2 and not find_measure(name).family.graded else None
    found = evaluate(labels, scores, [name], pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    return found[name]


def scorer_names() -> list[str]:
    """Return the names of all measures of `get_scorer`, `evaluate` and `per_group`.

    Examples
    --------
    >>> "ndcg_at" in scorer_names()
    True
    """
    return list(FAMILIES)


def ranking_scores(ranker: Any, X: Any, pos_label: Any = None) -> np.ndarray:
    """Return ranking scores from an estimator's most suitable method, or given scores unchanged."""
    methods = [name for name in ("decision_function", "predict_proba", "predict") if hasattr(ranker, name)]
    if not methods:
        if np.ndim(ranker) != 1:
            raise InputError(
                f"{type(ranker).__name__} is not a ranker: give scores, or an estimator with decision_function, "
                "predict_proba or predict"
            )
        return np.asarray(ranker)
    if X is None:
        raise InputError(f"X is None, but {type(ranker).__name__} needs rows to score: give X, or scores")
    values = np.asarray(getattr(ranker, methods[0])(X))
    scores = values[:, 1] if values.ndim == 2 and values.shape[1] == 2 else values
    # These score the second class; for the first one the list is reversed.
    classes = getattr(ranker, "classes_", [None])
    return -scores if pos_label is not None and pos_label == classes[0] else scores
