"""Synthetic rows on which a push visibly helps at the top of the list, and synthetic queries in LETOR form."""

from __future__ import annotations

import math
from inspect import cleandoc
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch, check_random_state

from apexrank.datasets.letor import feature_names
from apexrank.errors import InputError, MissingExtraError

_NAMES = ["amount", "unfamiliarity", "hour", "distance", "card_age", "merchant_risk"]


class Segment(NamedTuple):
    """A kind of case: its share of all cases, whether it is fraud, and its centre in the two features."""

    name: str
    share: float
    fraud: int
    amount: float
    unfamiliarity: float


SEGMENTS = (
    Segment("everyday spending", 0.882, 0, -1.0, 0.0),
    Segment("big spender", 0.018, 0, 2.5, -2.0),
    Segment("loud fraud", 0.035, 1, 1.0, 2.0),
    Segment("quiet fraud", 0.065, 1, 1.0, -1.0),
)
SPREAD = 0.7
_GRADE_QUANTILES = (0.6, 0.85)


def make_push_example(
    n_samples: int = 2000,
    n_features: int = 6,
    random_state: int | np.random.RandomState | None = 0,
    *,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Bunch:
    """Generate card payments, one in ten fraudulent, on which the ranker with the best AUC fails at the top.

    This is the reversal of polarity of JMLR 2009, sec. 3.2, with two features instead of two scoring functions. Frauds
    have a higher ``amount`` than everyday spending, so the amount alone ranks most pairs correctly. But a few honest
    **big spenders** (2 % of the honest cases) spend most of all: the majority's direction puts exactly them at the top.
    ``unfamiliarity`` (an unknown device, a new address) separates the **loud** third of the frauds from the big
    spenders, but weight on it moves the **quiet** frauds down among the everyday cases and so costs AUC. A linear
    ranker has to choose: p = 1 follows the majority, a large p clears the top.

    ================= ====== ===== ====== =============
    segment           share  fraud amount unfamiliarity
    ================= ====== ===== ====== =============
    everyday spending 88.2 % no    -1     0
    big spender        1.8 % no    2.5    -2
    loud fraud         3.5 % yes   1      2
    quiet fraud        6.5 % yes   1      -1
    ================= ====== ===== ====== =============

    Each case is the centre of its segment plus normal noise of standard deviation 0.7; the features after the second
    are pure noise. On fresh cases the share of frauds in the first hundredth of the list is 0.46 with p = 1 and 0.97
    with p = 16, and the AUC falls from 0.95 to 0.89 (means over ten draws of 2000 cases).

    Parameters
    ----------
    n_samples : int, default=2000
        Number of cases, at least 100, so that every segment is present.
    n_features : int, default=6
        Number of features, at least 2.
    random_state : int, RandomState or None, default=0
        Seed of the generator.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a bunch.
    as_frame : bool, default=False
        Return pandas objects.

    Returns
    -------
    Bunch
        With ``data``, ``target``, ``feature_names``, ``target_names``, ``segment`` (the kind of each case),
        ``source`` and ``DESCR``.

    Examples
    --------
    >>> from apexrank.datasets import make_push_example
    >>> example = make_push_example(n_samples=1000)
    >>> example.data.shape, int(example.target.sum()), example.feature_names[:2]
    ((1000, 6), 100, ['amount', 'unfamiliarity'])
    >>> int((example.segment == "big spender").sum())
    18
    """
    if n_samples < 100 or n_features < 2:
        raise InputError(f"needs n_samples >= 100 and `n_features` >= 2, got {n_samples} and {n_features}")
    rng = check_random_state(random_state)
    kind = rng.permutation(_kinds(n_samples))
    data = rng.standard_normal((n_samples, n_features))
    centres = np.array([(s.amount, s.unfamiliarity) for s in SEGMENTS])
    data[:, :2] = centres[kind] + SPREAD * data[:, :2]
    bunch = Bunch(
        data=data,
        target=np.array([s.fraud for s in SEGMENTS])[kind],
        feature_names=(_NAMES + [f"noise_{j}" for j in range(len(_NAMES), n_features)])[:n_features],
        target_names=np.array(["honest", "fraud"]),
        segment=np.array([s.name for s in SEGMENTS])[kind],
        source="synthetic",
    )
    return finish(bunch, make_push_example.__doc__, return_X_y=return_X_y, as_frame=as_frame)


def _kinds(n: int) -> np.ndarray:
    """Segment index of each case, sorted, with the shares rounded to the nearest case."""
    ends = np.round(np.cumsum([s.share for s in SEGMENTS]) * n).astype(int)
    return np.searchsorted(ends, np.arange(n), side="right")


def make_letor_example(
    n_queries: int = 40,
    n_features: int = 8,
    random_state: int | np.random.RandomState | None = 0,
    *,
    max_documents: int = 20,
    noise: float = 0.5,
    spread: float = 1.0,
) -> Bunch:
    """Generate queries with documents of grades 0, 1 and 2, in the form returned by :func:`read_letor`.

    Document i has standard normal properties ``u_i``. Its score ``s_i = Σ_j c_j·u_ij + noise·ε_i``, with ``c_j ∝ 1/j``
    of norm 1 and ε standard normal, determines its grade: 0 for the lowest 60 % of all documents, 2 for the highest 15
    %. The observed features depend on the query q: ``x_ij = a_qj + b_qj·u_ij`` with normal ``a`` and log-normal ``b``
    of standard deviation ``spread``, so that only values within a query are comparable, as in real queries. Queries
    have 2 to ``max_documents`` documents, except that the first one has a single document, and the second one no
    relevant document.

    Scaling within each query undoes most of this: a linear ranker fitted on 100 queries has a mean NDCG of 0.89 on 100
    others, and of 0.93 after :class:`~apexrank.preprocessing.QueryNormalizer` (means over four pairs of draws).

    Parameters
    ----------
    n_queries : int, default=40
        Number of queries, at least 3.
    n_features : int, default=8
        Number of features, at least 1.
    random_state : int, RandomState or None, default=0
        Seed of the generator.
    max_documents : int, default=20
        Maximum number of documents per query, at least 2.
    noise : float, default=0.5
        Standard deviation of the part of the score that the features do not explain.
    spread : float, default=1.0
        Variation between queries; 0 makes all values comparable.

    Returns
    -------
    Bunch
        With ``data``, ``target``, ``groups``, ``docids``, ``feature_names``, ``coef`` (c), ``source`` and ``DESCR``.

    Examples
    --------
    >>> from apexrank.datasets import make_letor_example
    >>> example = make_letor_example(n_queries=3, n_features=2)
    >>> example.data.shape, sorted(set(example.groups.tolist())), example.docids[0]
    ((20, 2), ['q1', 'q2', 'q3'], 'q1-1')
    """
    if n_queries < 3 or n_features < 1 or max_documents < 2:
        got = f"{n_queries}, {n_features} and {max_documents}"
        raise InputError(f"needs `n_queries` >= 3, `n_features` >= 1 and `max_documents` >= 2, got {got}")
    if not (0 <= noise < math.inf and 0 <= spread < math.inf):
        raise InputError(f"`noise` and `spread` must be finite and at least 0, got {noise!r} and {spread!r}")
    rng = check_random_state(random_state)
    sizes = rng.randint(2, max_documents + 1, size=n_queries)
    sizes[0] = 1
    query = np.repeat(np.arange(n_queries), sizes)
    hidden = rng.standard_normal((len(query), n_features))
    coef = 1 / np.arange(1, n_features + 1)
    coef /= np.linalg.norm(coef)
    score = hidden @ coef + noise * rng.standard_normal(len(query))
    target = np.searchsorted(np.quantile(score, _GRADE_QUANTILES), score).astype(np.float64)
    target[query == 1] = 0
    shift, stretch = spread * rng.standard_normal((2, n_queries, n_features))
    place = np.arange(len(query)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Bunch(
        data=shift[query] + np.exp(stretch[query]) * hidden,
        target=target,
        groups=np.array([f"q{q + 1}" for q in query]),
        docids=np.array([f"q{q + 1}-{i + 1}" for q, i in zip(query, place, strict=True)], dtype=object),
        feature_names=feature_names(n_features),
        coef=coef,
        source="synthetic",
        DESCR=cleandoc(make_letor_example.__doc__ or ""),
    )


def finish(bunch: Bunch, description: str | None, *, return_X_y: bool, as_frame: bool) -> Bunch:
    """Add the description to a bunch and convert it to the requested format."""
    bunch.DESCR = cleandoc(description or "")
    if as_frame:
        _to_pandas(bunch)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _to_pandas(bunch: Bunch) -> None:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise MissingExtraError("`as_frame=True` needs pandas: pip install pandas") from None
    bunch.data = pd.DataFrame(bunch.data, columns=bunch.feature_names)
    bunch.target = pd.Series(bunch.target, name="target")
    bunch.frame = bunch.data.assign(target=bunch.target)
