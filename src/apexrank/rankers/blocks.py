"""Fit a ranker on rows that come in blocks: the same answer as in memory, from passes over the blocks."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential
from apexrank.models.block_problem import BlockProblem, ListBlocks
from apexrank.models.block_push import PushBlocks
from apexrank.models.blocks import MIXED_LABELS, Blocks, Survey, survey
from apexrank.objectives.push import STREAMED_PRICES, Push
from apexrank.prices import PRICES, Power
from apexrank.rankers.push import IRPush, PNormPush
from apexrank.rankers.retarget import COLLAPSES, MonotoneRetargeting
from apexrank.rankers.threshold import balanced_threshold
from apexrank.solvers import LBFGS, Auto, Newton

Ranker = TypeVar("Ranker", PNormPush, IRPush, MonotoneRetargeting)


def fit_blocks(ranker: Ranker, blocks: Blocks) -> Ranker:
    """Fit ``ranker`` on blocks of rows, of which one at a time is in memory.

    The objective, the solvers and the certificates are those of ``ranker.fit``, and so are the coefficients up to
    rounding and ``tol``. One pass surveys the rows, each value and gradient is one more (two for the log1p price), and
    so is each Hessian.

    Parameters
    ----------
    ranker : PNormPush, IRPush or MonotoneRetargeting
        Exponential loss, power (finite p), identity or log1p price, and ridge penalty, without groups; or retargeting
        without a kernel and without alternations, with groups that are whole in their blocks. It is fitted in place.
    blocks : Blocks
        :class:`apexrank.models.blocks.ArrayBlocks` of an array or a memory map, or what
        :func:`apexrank.io.stream.read_blocks` finds in files.

    Returns
    -------
    ranker
        The fitted ranker, with the attributes that ``fit`` gives it, except ``targets_``.

    Notes
    -----
    Two-class rankers whose intercept is the threshold of least balanced error (any but power price and one side) bring
    the scores and labels of all rows together once: about 50 bytes a row while they are sorted. Columns so far from
    zero that scores would lose digits are moved there in a copy of each block, which takes the memory of a second one.

    Examples
    --------
    >>> from apexrank.models.blocks import ArrayBlocks
    >>> from apexrank.rankers.push import PNormPush
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X[:, 0] + rng.normal(size=1000) > 1
    >>> ranker = fit_blocks(PNormPush(p=2, alpha=0.1), ArrayBlocks(X, y, rows=300))
    >>> bool(np.allclose(ranker.coef_, PNormPush(p=2, alpha=0.1).fit(X, y).coef_, rtol=1e-8))
    True
    """
    if not isinstance(ranker, PNormPush | IRPush | MonotoneRetargeting):
        raise InputError(
            f"{type(ranker).__name__} cannot be fitted in blocks: use PNormPush, IRPush or MonotoneRetargeting"
        )
    check_solver(ranker)
    w0 = np.ravel(ranker.coef_).copy() if ranker.warm_start and hasattr(ranker, "coef_") else None
    if isinstance(ranker, MonotoneRetargeting):
        _fit_lists(ranker, blocks, w0)
    else:
        _fit_push(ranker, blocks, w0)
    return ranker


def check_solver(ranker: Any) -> None:
    """Refuse solvers that need X in one piece."""
    solver = getattr(ranker, "solver", "auto")
    if not (solver in ("auto", "lbfgs", "newton") or isinstance(solver, Auto | LBFGS | Newton)):
        raise InputError(f"solver {solver!r} cannot fit in blocks: use auto, lbfgs or newton")


def check_push(ranker: PNormPush | IRPush) -> None:
    """Refuse pushes that are no sums over rows."""
    if getattr(ranker, "l1_ratio", 0) * ranker.alpha > 0:
        raise InputError("blocks take a ridge penalty only: set l1_ratio=0")
    if isinstance(ranker, PNormPush):
        streams = ranker.price in STREAMED_PRICES or getattr(ranker.price, "name", "") in STREAMED_PRICES
        if not (streams and isinstance(LOSSES.get(ranker.loss), Exponential)) or ranker._is_infinite:
            raise InputError(
                "blocks take sums over rows, not over pairs: use loss='exponential' with a finite p, or with price "
                "'identity' or 'log1p'"
            )


def check_lists(ranker: MonotoneRetargeting) -> None:
    """Refuse retargeting that needs all rows at once."""
    if ranker.kernel is not None or ranker.max_alternations is not None:
        raise InputError(
            "blocks take linear retargeting with margins: set kernel=None and max_alternations=None"
        )


def _fit_push(ranker: Any, blocks: Blocks, w0: np.ndarray | None) -> None:
    ranker._check_numbers()
    check_push(ranker)
    found = survey(blocks, binary=True)
    classes = _classes(found)
    weight = np.array([found.labels[classes[1]], found.labels[classes[0]]])
    push: Push = ranker._objective(np.array([True, False]), weight, None)
    _set_features(ranker, blocks, found)
    problem = PushBlocks(blocks, found, push, classes[1], ranker.alpha)
    _solve(ranker, problem, w0)
    ranker.classes_ = np.array(classes, dtype=found.label_type)
    w, ranker.coef_ = ranker.coef_, ranker.coef_[None, :]
    ranker.intercept_ = np.array([_intercept(ranker, problem, w)])


def _classes(found: Survey) -> list[Any]:
    try:
        classes = sorted(found.labels)
    except TypeError:
        raise InputError(MIXED_LABELS) from None
    if len(classes) > 2:
        raise InputError(
            f"Only binary classification is supported: the target has {len(classes)} values; "
            "mark the wanted class as positive first"
        )
    if len(classes) < 2:
        raise InputError(
            f"ranking needs positives and negatives, but the target has only one class: {classes[0]!r}"
        )
    return classes


def _intercept(ranker: Any, problem: PushBlocks, w: np.ndarray) -> float:
    """P-Classification's from sums of exponentials where there is one, else from all scores."""
    price = PRICES.get(ranker.price, p=ranker.p) if isinstance(ranker, PNormPush) else None
    if not isinstance(price, Power) or ranker.side == "both":
        return -balanced_threshold(*problem.labelled_scores(w))
    p, sign = price.order, 1.0 if ranker.side == "top" else -1.0
    outer, inner = (0, 1) if ranker.side == "top" else (1, 0)
    slope = np.empty(2)
    slope[outer], slope[inner] = sign * p, -sign
    sums = problem.sums(w).log_sum_exp(slope).value
    return sign * float((sums[inner] - sums[outer]) / (p + 1)) - problem.offset(w)


def _fit_lists(ranker: MonotoneRetargeting, blocks: Blocks, w0: np.ndarray | None) -> None:
    ranker._check_numbers()
    check_lists(ranker)
    found = survey(blocks, binary=False)
    _set_features(ranker, blocks, found)
    problem = ListBlocks(blocks, found, _Lists(ranker), ranker.alpha)
    ranker._forget()
    _solve(ranker, problem, w0)
    ranker.n_groups_ = problem.objective.n_groups


class _Lists:
    """The objective of some lists, as the ranker's parameters say; travels without what was fitted before."""

    def __init__(self, ranker: MonotoneRetargeting) -> None:
        self.ranker = MonotoneRetargeting(**ranker.get_params(deep=False))

    def __call__(self, relevance: np.ndarray, groups: Any, weight: Any) -> Any:
        objective = self.ranker._objective(relevance, groups, weight, None)
        if objective.collapses:
            raise InputError(COLLAPSES)
        return objective


def _set_features(ranker: Any, blocks: Blocks, found: Survey) -> None:
    ranker.n_features_in_ = found.n_features
    ranker.__dict__.pop("feature_names_in_", None)
    if blocks.names is not None:
        ranker.feature_names_in_ = np.array(list(blocks.names), dtype=object)


def _solve(ranker: Any, problem: BlockProblem, w0: np.ndarray | None) -> None:
    d = problem.n_features
    start = w0 if w0 is not None and len(w0) == d else np.zeros(d)
    solution = ranker._solver().solve(problem, start)
    ranker.coef_ = solution.w
    ranker.objective_, ranker.dual_gap_ = float(solution.value), float(solution.gap)
    ranker.grad_norm_, ranker.converged_ = float(solution.grad_norm), bool(solution.converged)
    ranker.n_iter_, ranker.history_ = max(1, solution.n_iter), np.array(solution.history)
    ranker._warn(solution)
