"""Simulated clicks on ranked lists: position-based, cascade and dependent click models."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from apexrank.errors import InputError
from apexrank.kernels.pav import running_sums
from apexrank.validation import check_choice, check_count, check_finite, segment

ClickModel = Literal["position", "cascade", "dependent"]


def make_clicks(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_sessions: int = 10_000,
    model: ClickModel = "position",
    eta: float = 1.0,
    noise: float | ArrayLike = 0.1,
    max_grade: float | None = None,
    cut: int | None = None,
    random_state: Any = 0,
) -> Bunch:
    """Simulate clicks on the lists of a logging ranker, for documents of known relevance.

    Each session is a query, drawn uniformly, and one of the logging rankers. An examined document of grade y at
    position k is clicked with probability ``a = noise_k + (1 − noise_k)·(2^y − 1)/(2^max_grade − 1)``. The models
    differ in the documents that are examined:

    - "position" (Richardson et al. 2007): position k with probability ``k^(−eta)``, regardless of the rest of the list;
    - "cascade" (Craswell et al. 2008): from the top down to the first click;
    - "dependent" (Guo et al. 2009): from the top down; after a click at position k the reader continues with
      probability ``k^(−eta)``.

    Parameters
    ----------
    relevance : array-like of shape (n,)
        Grade of each document, non-negative.
    scores : array-like of shape (n,) or (n, m)
        Scores of the logging ranker, or of m rankers in columns, one of which is drawn for each session. Ties keep the
        row order.
    groups : array-like of shape (n,), optional
        Query of each document; one query by default.
    n_sessions : int
        Number of sessions.
    model : {"position", "cascade", "dependent"}
        Examination model of the readers.
    eta : float
        Strength of the position bias; 0 means none.
    noise : float or array-like
        Probability of a click on an examined document of grade 0; an array has one entry per position, decreasing if
        readers trust the ranker (Agarwal et al. 2019), and its last entry applies further down.
    max_grade : float, optional
        Highest possible grade; by default the maximum of ``relevance``.
    cut : int, optional
        Number of documents shown; all by default.
    random_state : int, Generator or None
        Seed of the simulation.

    Returns
    -------
    Bunch
        One entry per document shown in each session: ``session``, ``ranker`` (its column), ``row`` (of ``relevance``),
        ``position`` (from 1), ``clicked``; also ``propensities``, the examination probabilities of positions 1, 2, … in
        the position-based model, else None, and ``DESCR``.

    Examples
    --------
    >>> log = make_clicks([2, 0, 1], [0.1, 0.5, 0.9], n_sessions=1000)
    >>> [int(log.clicked[log.position == k].sum()) for k in (1, 2, 3)]  # documents of grades 1, 0 and 2
    [409, 50, 329]
    """
    check_choice("model", model, ClickModel)
    check_count("n_sessions", n_sessions)
    check_finite("eta", eta, 0)
    if cut is not None:
        check_count("cut", cut)
    grades, ranked = np.asarray(relevance, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    ranked = ranked[:, None] if ranked.ndim == 1 else ranked
    n = len(grades)
    if grades.ndim != 1 or not n or not np.isfinite(grades).all() or (grades < 0).any():
        raise InputError(
            "relevance needs one finite grade of at least 0 per document, and one document at least"
        )
    if ranked.shape[:1] != (n,) or ranked.ndim != 2 or not ranked.shape[1] or np.isnan(ranked).any():
        raise InputError(
            f"scores needs {n} rows of numbers and a column for each ranker, got shape {ranked.shape}"
        )
    top = float(grades.max()) if max_grade is None else max_grade
    check_finite("max_grade", top, grades.max())
    rng, lists = np.random.default_rng(random_state), segment(groups, n)
    attraction = np.expm1(np.log(2) * grades) / np.expm1(np.log(2) * max(top, 1e-9))

    query, ranker = rng.integers(0, len(lists), n_sessions), rng.integers(0, ranked.shape[1], n_sessions)
    orders = np.array([np.lexsort((-column, lists.of_rows())) for column in ranked.T])
    sizes = np.minimum(np.diff(lists.indptr), cut or n)[query]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    session = np.repeat(np.arange(n_sessions), sizes)
    place = np.arange(len(session)) - indptr[session]  # from 0
    row = orders[ranker[session], lists.indptr[query][session] + place]
    chance_of_noise = _by_position(noise, place)
    attracts = rng.random(len(row)) < chance_of_noise + (1 - chance_of_noise) * attraction[row]
    goes_on = rng.random(len(row)) < (place + 1.0) ** -eta
    if model == "position":
        clicked = attracts & goes_on
    else:
        leaves = attracts & (~goes_on if model == "dependent" else True)
        clicked = attracts & (running_sums(leaves, indptr)[0] == 0)
    propensities = np.arange(1, sizes.max() + 1.0) ** -eta if model == "position" else None
    return Bunch(
        session=session,
        ranker=ranker[session],
        row=row,
        position=place + 1,
        clicked=clicked,
        propensities=propensities,
        DESCR=cleandoc(make_clicks.__doc__ or ""),
    )


def _by_position(noise: float | ArrayLike, place: np.ndarray) -> np.ndarray:
    chances = np.atleast_1d(np.asarray(noise, dtype=np.float64))
    if chances.ndim != 1 or not len(chances) or not ((chances >= 0) & (chances <= 1)).all():
        raise InputError(f"`noise` must be a probability, or one for each position, got {noise!r}")
    return chances[np.minimum(place, len(chances) - 1)]
