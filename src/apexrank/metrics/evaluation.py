"""The measures by name: ``"auc"``, ``"ndcg_at_10"`` (or ``"ndcg@10"``), ``"p_norm_risk_16"``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from apexrank.errors import InputError
from apexrank.metrics import discounted_gain, discounts, permutation, precision, push, roc
from apexrank.metrics._levels import Values
from apexrank.metrics._rows import Rows


class Family(NamedTuple):
    """Measures that share a name up to the number at its end."""

    values: Callable[..., Values]
    label: str
    options: dict[str, Any] = {}  # noqa: RUF012  what `values` is called with
    argument: str | None = None  # what the number at the end of the name means
    greater_is_better: bool = True
    graded: bool = False
    ties: bool = True
    drawn: dict[str, Any] = {}  # noqa: RUF012  options for bootstrap draws, in which rows are repeated


def _winner(rows: Rows, **options: Any) -> Values:
    return roc.precision_at_values(rows, k=1, **options)


def _push_dcg(rows: Rows, **options: Any) -> Values:
    return discounts.rank_sum_values(rows, g=discounts.log_discount, **options)


def _reciprocal_ranks(rows: Rows, **options: Any) -> Values:
    return discounts.rank_sum_values(rows, g=np.reciprocal, **options)


def _r_max(rows: Rows, **options: Any) -> Values:
    return push.p_norm_risk_values(rows, p=np.inf, **options)


def _kendall(rows: Rows) -> Values:
    """Kendall's τ_b of scores and relevance in each group; none where either is all tied."""
    rows.check_repetitions()
    relevance, scores = rows.relevance, rows.scores
    values = np.full(len(rows.groups), np.nan)
    for q in range(len(rows.groups)):
        own = rows.groups.rows(q)
        if rows.weight is not None:
            own = np.repeat(own, rows.weight[own].astype(np.int64))
        values[q] = permutation.kendall_tau(scores=(relevance[own], scores[own]))
    return Values(np.nan_to_num(values), ~np.isnan(values))


_TEN = {"k": 10}
_APART = {"apart": True}
_LINEAR = {"gain": "linear"}

FAMILIES = {
    "auc": Family(push.auc_values, "AUC"),
    "partial_auc": Family(roc.partial_auc_values, "partial AUC (FPR <= {})", {"max_fpr": 0.1}, "max_fpr"),
    "tpr_at_fpr": Family(roc.tpr_at_fpr_values, "TPR at {} FPR", {"fpr": 0.01}, "fpr", ties=False),
    "precision_at": Family(roc.precision_at_values, "precision at {}", _TEN, "k"),
    "recall_at": Family(roc.recall_at_values, "recall at {}", _TEN, "k"),
    "average_precision": Family(precision.average_precision_values, "average precision"),
    "average_precision_at": Family(precision.average_precision_values, "average precision at {}", _TEN, "k"),
    "ndcg": Family(discounted_gain.ndcg_values, "NDCG", graded=True),
    "ndcg_at": Family(discounted_gain.ndcg_values, "NDCG at {}", _TEN, "k", graded=True),
    "ndcg_linear": Family(discounted_gain.ndcg_values, "NDCG, linear gain", _LINEAR, graded=True),
    "ndcg_linear_at": Family(
        discounted_gain.ndcg_values, "NDCG at {}, linear gain", _TEN | _LINEAR, "k", graded=True
    ),
    "dcg": Family(discounted_gain.dcg_values, "DCG", graded=True),
    "dcg_at": Family(discounted_gain.dcg_values, "DCG at {}", _TEN, "k", graded=True),
    "err": Family(discounted_gain.err_values, "ERR", graded=True),
    "err_at": Family(discounted_gain.err_values, "ERR at {}", _TEN, "k", graded=True),
    "mrr": Family(precision.mrr_values, "reciprocal rank"),
    "mrr_at": Family(precision.mrr_values, "reciprocal rank at {}", _TEN, "k"),
    "winner_takes_all": Family(_winner, "winner takes all"),
    "kendall_tau": Family(_kendall, "Kendall's tau (b)", graded=True, ties=False),
    "average_reciprocal_rank": Family(_reciprocal_ranks, "AveR (sum of 1/rank)", drawn=_APART),
    "push_dcg": Family(_push_dcg, "DCG of the push papers (sum of 1/ln(1 + rank))", drawn=_APART),
    "r_max": Family(_r_max, "R_max (positives below the highest negative)", greater_is_better=False),
    "p_norm_risk": Family(
        push.p_norm_risk_values,
        "R_{} (normalised)",
        {"p": 4.0, "normalize": True},
        "p",
        greater_is_better=False,
    ),
}
ALIASES = {
    "map": "average_precision",
    "ap": "average_precision",
    "p": "precision",
    "r": "recall",
    "recip_rank": "mrr",
    "rr": "mrr",
}
# trec_eval's names: its NDCG has a linear gain
_TREC = {"map_cut": "average_precision", "ndcg_cut": "ndcg_linear", "p": "precision", "recall": "recall"}


class Measure(NamedTuple):
    """A measure with all its options set."""

    name: str
    family: Family
    options: dict[str, Any]

    @property
    def label(self) -> str:
        """Name for people."""
        number = self.options.get(self.family.argument or "", 0)
        percent = self.family.argument in ("max_fpr", "fpr")
        return self.family.label.format(f"{100 * number:g}%" if percent else f"{number:.15g}")

    def values(self, rows: Rows, **options: Any) -> Values:
        """Value of each group."""
        if self.family.graded:
            discounted_gain.check_grades(rows.relevance)
        known = options if self.family.ties else {}
        return self.family.values(rows, **(self.options | known))


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
    base, at, number = _of_trec(name.strip().lower()).replace("@", "_at_").partition("_at_")
    full = ALIASES.get(base, base) + at + number
    if full in FAMILIES:
        return Measure(name, FAMILIES[full], FAMILIES[full].options)
    stem, _, number = full.rpartition("_")
    if stem in FAMILIES and (argument := FAMILIES[stem].argument):
        value = _number(number)
        if value is not None:
            _check_argument(name, stem, argument, value)
            return Measure(name, FAMILIES[stem], FAMILIES[stem].options | {argument: value})
    raise InputError(
        f"unknown measure {name!r}: use one of {', '.join(FAMILIES)}, with a number after those that take one, "
        "such as ndcg_at_10 or partial_auc_0.05"
    )


def _of_trec(name: str) -> str:
    base, _, number = name.rpartition("_")
    return f"{_TREC[base]}_at_{number}" if base in _TREC and number.isdigit() else name


def _check_argument(name: str, stem: str, argument: str, value: float) -> None:
    """Refuse a number that the measure would refuse later."""
    whole = value == np.floor(value) and 1 <= value < np.inf
    share = argument == "k" and stem in ("precision_at", "recall_at") and 0 < value < 1
    fits = {"k": whole or share, "max_fpr": 0 < value <= 1, "fpr": 0 <= value <= 1, "p": value > 0}
    if not fits[argument]:
        kinds = {"k": "a number of rows 1, 2, ...", "p": "a number above 0"}
        raise InputError(f"{name!r} needs {kinds.get(argument, 'a rate between 0 and 1')} at its end")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _stripped(name: Any) -> Any:
    return name.strip() if isinstance(name, str) else name


def find_measures(names: str | Iterable[str]) -> list[Measure]:
    """Measures of several names; one string is one name, or several with commas between them."""
    if not isinstance(names, Iterable):
        raise InputError(f"measures must be names such as ['ndcg', 'map'], got {names!r}")
    listed = names.split(",") if isinstance(names, str) else names
    found = [find_measure(name) for name in dict.fromkeys(_stripped(name) for name in listed)]
    if not found:
        raise InputError("there is no measure to compute: name at least one, such as 'ndcg'")
    return found
