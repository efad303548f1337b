"""Unbiased learning to rank from clicks: position-bias estimation, and labels and weights corrected for the bias.

In the position-based model a document of attractiveness γ at position k is clicked with probability ``p_k·γ``. The
propensity p_k is the probability that position k is examined. Propensities are known, or estimated from the log up to
a factor: by `harvest_propensities` if documents were shown at several positions, by `regress_propensities` otherwise.
`click_labels` then computes labels and weights for any ranker of relevance, `click_classes` for bipartite rankers.
`apexrank.metrics.counterfactual_dcg` evaluates new rankings on the same log.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from apexrank.errors import InputError, warn
from apexrank.objectives.listwise import SoftmaxTargets
from apexrank.penalties import Quadratic
from apexrank.rankers.compose import LinearRanker
from apexrank.validation import check_choice, check_finite, segment

Unit = Literal["exposure", "impressions"]


class Clicks(NamedTuple):
    """Number of times each document ``row`` was ``shown`` and ``clicked`` at each ``position`` (1 is the top)."""

    row: np.ndarray
    position: np.ndarray
    shown: np.ndarray
    clicked: np.ndarray


class ClickLabels(NamedTuple):
    """Estimated relevance of each document, and its weight, which is 0 if the document was never shown."""

    relevance: np.ndarray
    weight: np.ndarray


class ClickClasses(NamedTuple):
    """Rows for bipartite ranking: document, class and weight of each row."""

    row: np.ndarray
    positive: np.ndarray
    weight: np.ndarray


def count_clicks(row: ArrayLike, position: ArrayLike, clicked: ArrayLike) -> Clicks:
    """Aggregate a click log with one entry per document shown in a session.

    Parameters
    ----------
    row : array-like of int, shape (n,)
        Number of the document, 0, 1, ….
    position : array-like of int, shape (n,)
        Position at which it was shown; 1 is the top.
    clicked : array-like of bool, shape (n,)
        Whether it was clicked.

    Examples
    --------
    >>> count_clicks([4, 2, 4, 2], [1, 2, 1, 2], [1, 0, 0, 1]).clicked.tolist()  # of document 2 and of document 4
    [1.0, 1.0]
    """
    rows, places, hits = (np.asarray(values) for values in (row, position, clicked))
    if rows.ndim != 1 or not len(rows) or rows.shape != places.shape or rows.shape != hits.shape:
        raise InputError("row, position and clicked need one entry each for every document shown")
    for name, values, lowest in (("row", rows, 0), ("position", places, 1)):
        if values.dtype.kind not in "iu" or values.min() < lowest:
            raise InputError(f"`{name}` must be whole numbers of at least {lowest}")
    if hits.dtype.kind not in "biuf" or not np.isin(hits, (0, 1)).all():
        raise InputError("clicked must be True or False (1 or 0) for each document shown")
    last = int(places.max()) + 1
    cells, index = np.unique(rows.astype(np.int64) * last + places, return_inverse=True)
    shown = np.bincount(index).astype(np.float64)
    return Clicks(cells // last, cells % last, shown, np.bincount(index, hits))


def harvest_propensities(clicks: Clicks, *, smoothing: float = 1.0) -> np.ndarray:
    """Estimate propensities from documents shown at several positions (Agarwal et al. 2019).

    Several rankers, or several versions of one, produce such documents without an experiment. The estimate is the
    maximum-likelihood one for the distribution of a document's clicks over its positions, ``p_k·n_dk / Σ_k p_k·n_dk``.
    The document's attractiveness cancels, so no assumption about it is needed, and the likelihood is concave in log p.
    (Agarwal et al. maximise a likelihood over pairs of positions, with a parameter for each pair.)

    Parameters
    ----------
    clicks : Clicks
        Counts, from `count_clicks`.
    smoothing : float
        Penalty on differences of log p between neighbouring positions, roughly in units of clicks. Positions that share
        no document with the first one, directly or through others, are interpolated, with a warning.

    Returns
    -------
    array of shape (last position,)
        Propensities in units of that of the first position.

    Examples
    --------
    >>> from apexrank.datasets import make_clicks
    >>> rankers = [[3, 1, 2], [2, 3, 1], [1, 2, 3]]  # a column of scores for each
    >>> log = make_clicks([1, 0, 1], rankers, n_sessions=20_000)
    >>> harvest_propensities(count_clicks(log.row, log.position, log.clicked)).round(2).tolist()
    [1.0, 0.5, 0.33]
    """
    often = np.bincount(clicks.row)[clicks.row] > 1
    if not often.any():
        raise InputError(
            "every document was shown at only one position: use the logs of several rankers, or regress_propensities"
        )
    own = Clicks(*(column[often] for column in clicks))
    _warn_of_islands(clicks)
    return _propensities(own, own.row, None, int(clicks.position.max()), smoothing, 0.0)


def _warn_of_islands(clicks: Clicks) -> None:
    """Warn about positions not connected to the first by documents: their relative propensity cannot be estimated."""
    document = (
        clicks.position.max() + 1 + clicks.row
    )  # vertices of the bipartite graph, numbered after the positions
    size = int(document.max()) + 1
    links = sparse.coo_array((np.ones(len(document)), (clicks.position, document)), shape=(size, size))
    island = connected_components(links, directed=False)[1]
    shown = np.unique(clicks.position)
    apart = shown[island[shown] != island[shown[0]]]
    if len(apart):
        warn(
            f"{len(apart)} positions, first {apart[0]}, share no document with position {shown[0]}: their propensities "
            "are interpolated. Use the logs of more rankers, or leave these positions out.",
        )


def regress_propensities(
    clicks: Clicks, X: ArrayLike, groups: ArrayLike, *, alpha: float = 1e-3, smoothing: float = 1.0
) -> np.ndarray:
    """Estimate propensities from clicks and features, for the log of a single ranker.

    The model is ``log γ_d = x_d·w + a constant of the query``, fitted together with log p by maximising the likelihood
    of the clicks among the documents of each query. It is the dual learning algorithm (Ai et al. 2018) for a linear
    ranker, for which it is one convex problem; regression EM (Wang et al. 2018) alternates instead. Relevance that the
    logging ranker knows and X does not express is attributed to position bias, so prefer `harvest_propensities` where
    it applies.

    Parameters
    ----------
    clicks, smoothing
        As in `harvest_propensities`.
    X : array-like of shape (n, d)
        Features of the documents; ``clicks.row`` indexes its rows.
    groups : array-like of shape (n,)
        Query of each document.
    alpha : float
        Ridge penalty on w, relative to the log-likelihood per click.

    Returns
    -------
    array of shape (last position,)
        Propensities in units of that of the first position.

    Examples
    --------
    >>> from apexrank.datasets import make_clicks
    >>> rng = np.random.default_rng(0)
    >>> X, queries = rng.normal(size=(600, 2)), np.repeat(np.arange(200), 3)
    >>> log = make_clicks(X[:, 0] > 0, X[:, 1], groups=queries, n_sessions=50_000)
    >>> regress_propensities(count_clicks(log.row, log.position, log.clicked), X, queries).round(1).tolist()
    [1.0, 0.5, 0.3]
    """
    check_finite("alpha", alpha, 0)
    features = np.asarray(X, dtype=np.float64)
    if features.ndim != 2 or len(features) <= clicks.row.max():
        raise InputError(f"X needs a row for each of the {clicks.row.max() + 1} documents of the log")
    queries = segment(groups, len(features)).of_rows()[clicks.row]
    last = int(clicks.position.max())
    return _propensities(clicks, queries, features[clicks.row], last, smoothing, alpha)


def _propensities(
    clicks: Clicks, lists: np.ndarray, X: np.ndarray | None, last: int, smoothing: float, alpha: float
) -> np.ndarray:
    """Softmax regression of the clicks in each list on positions and features; impressions weight the normaliser."""
    check_finite("smoothing", smoothing, 0)
    total = float(clicks.clicked.sum())
    if not total:
        raise InputError("there are no clicks to learn propensities from")
    design = sparse.csr_array(
        (np.ones(len(lists)), (np.arange(len(lists)), clicks.position - 1)), shape=(len(lists), last)
    )
    differences = sparse.diags_array(
        [-np.ones(last - 1), np.ones(last - 1)], offsets=[0, 1], shape=(last - 1, last)
    )
    # the clicks do not determine the level of log p: a small ridge fixes it
    blocks = [(smoothing * differences.T @ differences + 1e-3 * sparse.eye_array(last)) / total]
    if X is not None:
        design = sparse.hstack([design, sparse.csr_array(X)], format="csr")
        blocks.append(alpha * sparse.eye_array(X.shape[1]))
    scale = len(np.unique(lists)) / total  # turns the objective, a mean over lists, into a mean over clicks
    ranker = LinearRanker(cross_entropy, Quadratic(sparse.block_diag(blocks).toarray()))
    ranker.fit(design, clicks.clicked / clicks.shown, sample_weight=scale * clicks.shown, groups=lists)
    return np.exp(ranker.coef_[:last] - ranker.coef_[0])


def cross_entropy(
    labels: ArrayLike, *, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
) -> SoftmaxTargets:
    """Softmax cross entropy of labels and scores in each group, linear in the labels.

    ``−Σ_q Σ_d w_d·y_d·log(e^{s_d} / Σ_{d'} w_{d'}·e^{s_{d'}})`` up to a constant. It is an objective for
    :class:`apexrank.LinearRanker`. As it is linear in the labels, unbiased labels give an unbiased objective.
    ("listnet" takes the softmax of the labels first, so noise in the labels biases it.)

    Examples
    --------
    >>> from apexrank import LinearRanker
    >>> from apexrank.penalties import Ridge
    >>> X, y, queries = [[0.0], [1.0], [0.0], [2.0]], [0.1, 0.3, 0.0, 0.2], [0, 0, 1, 1]
    >>> LinearRanker(cross_entropy, Ridge(0.1)).fit(X, y, groups=queries).coef_.round(3).tolist()
    [0.633]
    """
    return SoftmaxTargets(labels, groups=groups, weight=sample_weight)


def click_labels(
    clicks: Clicks, propensities: ArrayLike, n_rows: int, *, unit: Unit = "exposure"
) -> ClickLabels:
    """Compute labels and weights of documents from clicks, corrected for position bias.

    With n_k impressions, c_k clicks and the propensity p_k at position k:

    ============= =================== ============ =======================================================
    unit          relevance           weight       unbiased for the risk that counts each document
    ============= =================== ============ =======================================================
    "exposure"    Σ c_k / Σ n_k·p_k   Σ n_k·p_k    as often as it was examined; the smaller variance
    "impressions" Σ (c_k/p_k) / Σ n_k Σ n_k        as often as it was shown: inverse propensity scoring
    ============= =================== ============ =======================================================

    Both are unbiased for losses that are linear in the label, such as regression and `cross_entropy`. For a model that
    can fit the relevance, both have the same minimum. Pass propensities of 1 for uncorrected labels.

    Parameters
    ----------
    clicks : Clicks
        Counts, from `count_clicks`.
    propensities : array-like
        Examination probability of each position, from the first on, up to a common factor.
    n_rows : int
        Number of documents.
    unit : {"exposure", "impressions"}
        Unit of the weights, see the table.

    Examples
    --------
    >>> clicks = count_clicks([0, 1, 0, 1], [1, 2, 1, 2], [1, 1, 1, 0])
    >>> click_labels(clicks, [1.0, 0.5], 3)
    ClickLabels(relevance=array([1., 1., 0.]), weight=array([2., 1., 0.]))
    """
    check_choice("unit", unit, Unit)
    p = _chances(clicks, propensities, n_rows)
    up, down = (
        (clicks.clicked, clicks.shown * p) if unit == "exposure" else (clicks.clicked / p, clicks.shown)
    )
    hits, weight = (np.bincount(clicks.row, values, n_rows) for values in (up, down))
    return ClickLabels(np.divide(hits, weight, where=weight > 0, out=np.zeros(n_rows)), weight)


def click_classes(clicks: Clicks, propensities: ArrayLike) -> ClickClasses:
    """Make weighted positives and negatives for pairwise objectives, as in Propensity SVM-Rank (Joachims et al. 2017).

    Each document is a negative, weighted by its impressions; a clicked one is also a positive of weight Σ c_k/p_k. A
    pairwise objective that is linear in the weights of the positives (p = 1, logistic or hinge loss) is then an
    unbiased bound on the sum of the ranks of relevant documents. Parameters as in `click_labels`.

    Examples
    --------
    >>> clicks = count_clicks([0, 1, 0, 1], [1, 2, 1, 2], [1, 1, 1, 0])
    >>> click_classes(clicks, [1.0, 0.5])
    ClickClasses(row=array([0, 1, 0, 1]), positive=array([False, False,  True,  True]), weight=array([2., 2., 2., 2.]))
    """
    n = int(clicks.row.max()) + 1
    p = _chances(clicks, propensities, n)
    shown, hits = (np.bincount(clicks.row, values, n) for values in (clicks.shown, clicks.clicked / p))
    below, above = np.flatnonzero(shown), np.flatnonzero(hits)
    return ClickClasses(
        np.concatenate([below, above]),
        np.repeat([False, True], [len(below), len(above)]),
        np.concatenate([shown[below], hits[above]]),
    )


def _chances(clicks: Clicks, propensities: ArrayLike, n_rows: int) -> np.ndarray:
    """Return the propensity of the position of each count."""
    p, last = np.asarray(propensities, dtype=np.float64), int(clicks.position.max())
    if p.ndim != 1 or len(p) < last or not (np.isfinite(p) & (p > 0)).all():
        raise InputError(f"`propensities` needs a number above 0 for each of the {last} positions of the log")
    if n_rows <= clicks.row.max():
        raise InputError(
            f"`n_rows` is {n_rows}, but the log has the document {clicks.row.max()}: count all documents"
        )
    return p[clicks.position - 1]
