"""The measures as scikit-learn scorers, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.metrics import get_scorer as sklearn_scorer
from sklearn.metrics import make_scorer

from apexrank.errors import InputError
from apexrank.metrics import cuts, discounts, top


class _Named(NamedTuple):
    measure: Callable[..., float]
    options: dict[str, Any]
    argument: str | None = None  # what the number at the end of the name means
    greater_is_better: bool = True


_NAMES = {
    "auc": _Named(top.auc, {}),
    "partial_auc": _Named(cuts.partial_auc, {"max_fpr": 0.1}, "max_fpr"),
    "precision_at": _Named(cuts.precision_at, {"k": 10}, "k"),
    "recall_at": _Named(cuts.recall_at, {"k": 10}, "k"),
    "tpr_at_fpr": _Named(cuts.tpr_at_fpr, {"fpr": 0.01}, "fpr"),
    "average_reciprocal_rank": _Named(discounts.average_reciprocal_rank, {}),
    "push_dcg": _Named(discounts.push_dcg, {}),
    "r_max": _Named(top.r_max, {}, None, False),
    "p_norm_risk": _Named(top.p_norm_risk, {"p": 4.0, "normalize": True}, "p", False),
}


def get_scorer(name: str) -> Callable[..., float]:
    """Return the scikit-learn scorer of a measure: ``scorer(estimator, X, y)``, larger is better.

    Parameters
    ----------
    name : str
        "auc", "partial_auc", "precision_at", "recall_at", "tpr_at_fpr", "average_reciprocal_rank",
        "push_dcg", "r_max" or "p_norm_risk" (normalised; these two are negated), a number after the name
        setting its argument: "precision_at_100", "partial_auc_0.05", "p_norm_risk_16". Without one it is
        k = 10, max_fpr = 0.1, fpr = 0.01, p = 4. Any other name is looked up in scikit-learn.

    Returns
    -------
    callable
        It takes ``groups`` and ``sample_weight`` by metadata routing, after
        ``scorer.set_score_request(groups=True)``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> get_scorer("precision_at_100")(GaussianNB().fit(X, y), X, y)
    1.0
    """
    base, _, number = name.rpartition("_")
    try:
        if name in _NAMES:
            return _scorer(_NAMES[name], {})
        if base in _NAMES and (argument := _NAMES[base].argument):
            return _scorer(_NAMES[base], {argument: float(number)})
        return sklearn_scorer(name)
    except ValueError:
        raise InputError(
            f"unknown scorer {name!r}: use one of {', '.join(_NAMES)}, or scikit-learn's"
        ) from None


def _scorer(named: _Named, options: dict[str, Any]) -> Callable[..., float]:
    return make_scorer(
        named.measure,
        response_method=("decision_function", "predict_proba"),
        greater_is_better=named.greater_is_better,
        **(named.options | options),
    )
