"""The measures as scikit-learn scorers, by name."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike
from sklearn.metrics import get_scorer as sklearn_scorer
from sklearn.metrics import make_scorer

from apexrank.errors import InputError
from apexrank.metrics._labels import as_labels, distinct
from apexrank.metrics.evaluation import FAMILIES, find_measure
from apexrank.metrics.table import evaluate


def get_scorer(name: str) -> Callable[..., float]:
    """Return the scikit-learn scorer of a measure: ``scorer(estimator, X, y)``, larger is better.

    Parameters
    ----------
    name : str
        One of `scorer_names`, a number after the name setting its argument: "precision_at_100",
        "partial_auc_0.05", "p_norm_risk_16", "ndcg_at_5" or "ndcg@5". Without one it is k = 10, max_fpr = 0.1,
        fpr = 0.01, p = 4 (normalised). Losses are negated. Any other name is looked up in scikit-learn.

    Returns
    -------
    callable
        It takes ``groups`` and ``sample_weight`` by metadata routing, after
        ``scorer.set_score_request(groups=True)``. The estimator's decision_function is the ranking score, or
        else its probability of the positive class, or its prediction. Of two labels the larger is positive.

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
        return _of_sklearn(name)
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
    """One measure by its name: what a scorer calls. Two labels are two classes, as scikit-learn has it."""
    labels = as_labels(y_true)
    values = distinct(labels)
    classes = len(values) == 2 and not find_measure(name).family.graded
    pos_label = values[1] if classes else None
    return evaluate(labels, scores, [name], pos_label=pos_label, groups=groups, sample_weight=sample_weight)[
        name
    ]


def _of_sklearn(name: str) -> Callable[..., float]:
    try:
        return sklearn_scorer(name)
    except ValueError:
        raise InputError(
            f"unknown scorer {name!r}: use one of {', '.join(FAMILIES)}, or scikit-learn's"
        ) from None


def scorer_names() -> list[str]:
    """Names of all measures that `get_scorer`, `evaluate` and `per_group` know.

    Examples
    --------
    >>> "ndcg_at" in scorer_names()
    True
    """
    return list(FAMILIES)
