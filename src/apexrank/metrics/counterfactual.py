"""Counterfactual evaluation: the DCG of a new ranker, estimated from clicks on the lists of another."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._labels import check_rows
from apexrank.metrics._rows import ratio
from apexrank.metrics.confidence import Interval, check_level
from apexrank.metrics.discounted_gain import DISCOUNTS, check_cut
from apexrank.validation import check_choice, check_finite, segment

Estimator = Literal["ips", "self-normalised", "doubly-robust"]


def counterfactual_dcg(
    clicked: ArrayLike,
    position: ArrayLike,
    scores: ArrayLike,
    propensities: ArrayLike,
    *,
    sessions: ArrayLike,
    queries: ArrayLike | None = None,
    estimator: Estimator = "ips",
    relevance: ArrayLike | None = None,
    clip: float = 0.0,
    k: int | None = None,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    random_state: Any = 0,
) -> Interval:
    """DCG of a new ranker from logged clicks, with a bootstrap confidence interval.

    Let λ = 1/log2(1 + rank) be the discount of a document by the new scores, c its click, p the propensity of the
    position where it was shown, and q = max(p, ``clip``). The value of a session is

    - "ips" (Joachims et al. 2017): ``Σ λ·c/q``. Without clipping it is unbiased for the DCG with the attractiveness of
      documents as gains, if the propensities are correct and every document was shown;
    - "doubly-robust" (Oosterhuis 2023): ``Σ λ·(r + (c − p·r)/q)`` with a prediction r of the attractiveness γ. Its mean
      is ``Σ λ·(r + p/q·(γ − r))``, which is correct if r is, or if p was not clipped. So it allows clipping, which
      reduces the variance, and documents that were not shown. Without either it equals IPS for every r. It does not
      correct wrong propensities, as examination is not observed;

    and the estimate is the mean over the sessions. "self-normalised" (Swaminathan and Joachims 2015) is ``Σ λ·c/q``
    divided by ``Σ c/q``, both over all sessions: the mean discount of relevant documents, between 0 and 1. It is
    invariant to the scale of the propensities, and consistent but not unbiased.

    Parameters
    ----------
    clicked, position : array-like of shape (n,)
        One entry for each document in each session: whether it was clicked, and its position. 1 is the top, 0 marks a
        document that could have been shown but was not.
    scores : array-like of shape (n,)
        Scores of the new ranker; the documents of a session are ranked by them, averaging over the orders of ties.
    propensities : array-like
        Examination probability of each position, from the first on.
    sessions : array-like of shape (n,)
        Id of the session.
    queries : array-like of shape (n,), optional
        Id of the query; if given, the bootstrap draws queries with all their sessions, else sessions.
    estimator : {"ips", "self-normalised", "doubly-robust"}
        Estimator, see above.
    relevance : array-like of shape (n,), optional
        Prediction r of "doubly-robust": click probability of an examined document.
    clip : float
        Lower bound of the propensities in denominators.
    k : int, optional
        Only the first k ranks count.
    confidence, n_resamples, random_state
        As in `apexrank.metrics.bootstrap`.

    Returns
    -------
    Interval
        Named tuple (value, low, high, standard_error, confidence, n).

    Examples
    --------
    >>> from apexrank.datasets import make_clicks
    >>> log = make_clicks([2, 0, 1], [0.1, 0.5, 0.9], n_sessions=5000)
    >>> new = np.array([0.9, 0.1, 0.5])[log.row]  # the best order; the chances of clicks are 1, 0.1 and 0.4
    >>> found = counterfactual_dcg(log.clicked, log.position, new, log.propensities, sessions=log.session)
    >>> bool(found.low < 1 + 0.4 / np.log2(3) + 0.1 / 2 < found.high)
    True
    """
    check_choice("estimator", estimator, Estimator)
    check_level(confidence, n_resamples)
    check_finite("clip", clip, 0)
    hits, place = np.asarray(clicked), np.asarray(position)
    if hits.dtype.kind not in "biuf" or not np.isin(hits, (0, 1)).all():
        raise InputError("clicked must be True or False (1 or 0) for each document")
    if place.shape != hits.shape or place.dtype.kind not in "iu" or place.min(initial=1) < 0:
        raise InputError(
            "position must be a whole number of at least 1, or 0 for a document that was not shown"
        )
    if hits[place == 0].any():
        raise InputError("a document that was not shown (position 0) is clicked: correct one of the two")
    rows = check_rows(hits.astype(bool), scores, True, sessions, graded=True)
    p = np.asarray(propensities, dtype=np.float64)
    if p.ndim != 1 or len(p) < place.max() or not (np.isfinite(p) & (p > 0)).all():
        raise InputError(f"`propensities` needs a number above 0 for each of the {place.max()} positions")
    chance = np.concatenate([[0.0], p])[place]
    if (relevance is None) == (estimator == "doubly-robust"):
        raise InputError("relevance goes with `estimator='doubly-robust'`: give both or neither")
    predicted = np.zeros(len(rows)) if relevance is None else np.asarray(relevance, dtype=np.float64)
    if predicted.shape != hits.shape or not ((predicted >= 0) & (predicted <= 1)).all():
        raise InputError("relevance must be a probability for each document")
    gain = predicted + ratio(hits - chance * predicted, np.maximum(chance, clip))
    lists = rows.lists
    counts = 1.0 if k is None else lists.ranks <= check_cut(k)
    discount = np.empty(len(rows))
    discount[lists.rows] = lists.mean_of_ties(DISCOUNTS["log2"](lists.ranks) * counts) * lists.listed
    of_session = rows.groups.of_rows()
    unit = of_session if queries is None else segment(queries, len(rows)).of_rows()
    top = np.bincount(unit, discount * gain)
    if estimator == "self-normalised":
        bottom = np.bincount(unit, gain)
    else:
        pairs = np.unique(np.column_stack([unit, of_session]), axis=0)
        bottom = np.bincount(pairs[:, 0], minlength=len(top)).astype(np.float64)
    return _interval_of_ratio(top, bottom, confidence, n_resamples, random_state)


def _interval_of_ratio(
    top: np.ndarray, bottom: np.ndarray, confidence: float, n_resamples: int, random_state: Any
) -> Interval:
    """Percentile interval of Σ top / Σ bottom, resampling units with replacement."""
    if not bottom.sum():
        raise InputError("there is no click in the log")
    rng, n = np.random.default_rng(random_state), len(top)
    draws = np.empty(n_resamples)
    for i in range(n_resamples):
        drawn = rng.integers(0, n, n)
        total = bottom[drawn].sum()
        draws[i] = top[drawn].sum() / total if total > 0 else np.nan
    low, high = np.nanquantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    value = float(top.sum() / bottom.sum())
    return Interval(value, float(low), float(high), float(np.nanstd(draws, ddof=1)), confidence, n)
