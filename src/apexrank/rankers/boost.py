"""Boosting of arbitrary weak learners for the top of the list (JMLR 2009, sec. 5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit
from sklearn.tree import BaseDecisionTree, DecisionTreeClassifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from apexrank.errors import InputError
from apexrank.losses import LOSSES, Loss
from apexrank.metrics import get_scorer
from apexrank.objectives import Push
from apexrank.objectives.push import SIDES
from apexrank.parameters import HasMethods, above, atom, between, checked, names, number, whole
from apexrank.prices import PRICES, Price
from apexrank.problem.design import Matrix, Training, varies
from apexrank.rankers.base import (
    GivenScores,
    TwoClasses,
    checked_rows,
    class_scores,
    intercept_of,
    measure,
    validated,
)
from apexrank.rankers.push import PNormPush
from apexrank.solvers.coordinate import line_search

NO_EDGE = 1e-10  # a smaller edge over chance counts as none


def output_of(estimator: Any, X: Matrix) -> np.ndarray:
    """Ranking score of a fitted two-class estimator: decision function, probability or prediction."""
    gives_scores = hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")
    output = class_scores(estimator, X) if gives_scores else estimator.predict(X)
    return np.asarray(output, dtype=np.float64).reshape(X.shape[0])


@dataclass
class Rounds:
    """Weak rankers and their steps so far, with the objective and the metric after each round, starting at round 0."""

    held_out: Training | None
    scoring: str | Callable[..., float]
    weak: list[Any] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    measures: list[float] = field(default_factory=list)
    stop_reason: str = ""

    def __post_init__(self) -> None:
        self.scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        self.held_out_scores = np.zeros(0 if self.held_out is None else len(self.held_out.labels))

    def add(self, weak: Any, step: float, value: float) -> None:
        """Record a round."""
        self.weak.append(weak)
        self.steps.append(step)
        if self.held_out is not None:
            self.held_out_scores = self.held_out_scores + step * output_of(weak, self.held_out.X)
        self.note(value)

    def note(self, value: float) -> None:
        """Record the objective and the metric on the held-out rows."""
        self.values.append(value)
        self.measures.append(float("nan") if self.held_out is None else self._measure(self.held_out))

    def _measure(self, rows: Training) -> float:
        scored = GivenScores(self.held_out_scores, (False, True))
        found = measure(self.scorer, scored, rows.X, rows.labels, rows.weight, rows.groups)
        if np.isnan(found):
            raise InputError(
                "`scoring` returned no number on the held-out rows: they need rows of both classes"
            )
        return found

    @property
    def best(self) -> int:
        """First round with the best metric, at least 1."""
        return 1 + int(np.argmax(self.measures[1:])) if self.weak else 0

    def limit(self, n_estimators: int, n_iter_no_change: int) -> None:
        """Stop at the maximum number of rounds, or after ``n_iter_no_change`` rounds without improvement."""
        if self.stop_reason == "" and len(self.weak) >= n_estimators:
            self.stop_reason = "n_estimators"
        if self.held_out is not None and len(self.weak) - self.best >= n_iter_no_change:
            self.stop_reason = "validation"


@dataclass(eq=False, repr=False)
class PushBoost(TwoClasses, BaseEstimator):
    """Boosting for the top of the list: a sum of weak rankers that minimises a push (JMLR 2009, Fig. 2).

    Each round computes the gradient of the push with respect to the score of every row. Its size is the row's weight,
    the sum of the papers' pair weights ``d̃_ik`` over the other class; its sign tells whether the row should move up or
    down. A weak learner is fitted to the labels with these weights, and its output h is added to the scores with step

        α = argmin_a push(scores + a·h),    scores ← scores + learning_rate·α·h.

    With single features as weak rankers this is the papers' algorithm, except that the step length is bounded
    (:func:`longest_step`). Boosting continues after the training rows are separated, which widens the margin, as in
    AdaBoost.

    Parameters
    ----------
    estimator : scikit-learn estimator, optional
        The weak learner; its ``fit`` must accept ``sample_weight``. For a classifier, h is its ``decision_function``,
        else its probability of the positive class, else its prediction. A regressor is fitted to +1 and −1. The default
        is a decision stump, ``DecisionTreeClassifier(max_depth=1)``.
    p, price, side, loss
        The push, as in :class:`PNormPush`; p must be finite.
    n_estimators : int, default 100
        Maximum number of rounds.
    learning_rate : float, default 1
        Factor on the exact step.
    validation_fraction : float, optional
        Share of the rows (with groups: of the groups) held out for early stopping. See also ``eval_set`` in `fit`.
    scoring : str or callable
        Metric on the held-out rows, as in :class:`PNormPushCV`.
    n_iter_no_change : int, default 10
        Stop after this many rounds without improvement of the metric; the best round is kept.
    random_state : int, RandomState or None
        Seed of the weak learner and the held-out split.
    verbose : int
        1 prints one line per round.

    Attributes
    ----------
    estimators_, estimator_weights_ : list and array
        The weak rankers kept and their steps.
    n_iter_ : int
        Number of weak rankers kept.
    stop_reason_ : str
        ``"n_estimators"``: the maximum number of rounds was reached. ``"no edge"``: the weak learner no longer beats
        chance on the weighted rows. ``"separated"``: a weak ranker separates the classes by itself, so the optimal step
        is unbounded, or no pair has any loss left. ``"validation"``: the metric stopped improving.
    train_objective_, validation_scores_ : arrays
        After 0, 1, 2, … rounds, including those dropped by early stopping; without held-out rows the second is nan.
    classes_, intercept_ : array, float
        The second class is the positive one; the intercept puts the threshold of ``predict`` at 0.

    Examples
    --------
    >>> from apexrank import PushBoost
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> booster = PushBoost(p=4, n_estimators=20, random_state=0).fit(X[:, :6], y)
    >>> booster.n_iter_, bool((np.diff(booster.train_objective_) < 0).all())
    (20, True)
    """

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [None, HasMethods("fit")],
        "p": [number(1)],
        "price": atom(PRICES),
        "side": [names(SIDES)],
        "loss": atom(LOSSES),
        "n_estimators": [whole(1)],
        "learning_rate": [above(0)],
        "validation_fraction": [None, between(0, 1, closed="neither")],
        "n_iter_no_change": [whole(1)],
        "scoring": [str, callable],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    estimator: Any = None
    p: float = 4.0
    _: KW_ONLY
    n_estimators: int = 100
    learning_rate: float = 1.0
    price: str | Price = "power"
    side: str = "top"
    loss: str | Loss = "exponential"
    validation_fraction: float | None = None
    scoring: str | Callable[..., float] = "partial_auc"
    n_iter_no_change: int = 10
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._weak_learner()).input_tags.sparse
        return tags

    def _weak_learner(self) -> Any:
        return DecisionTreeClassifier(max_depth=1) if self.estimator is None else self.estimator

    @checked
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        eval_set: tuple[Any, ...] | None = None,
    ) -> Self:
        """Boost on rows X with two-class labels y; weights and groups as in :meth:`PNormPush.fit`.

        ``eval_set`` is ``(X, y)`` or ``(X, y, groups)`` of the rows used for early stopping.
        """
        rows, positive, weight = self._in_memory(X, y, sample_weight)
        data = Training(rows, positive, weight, None if groups is None else np.asarray(groups))
        if not has_fit_parameter(self._weak_learner(), "sample_weight"):
            raise InputError(
                f"{type(self._weak_learner()).__name__}.fit takes no `sample_weight`: it cannot be boosted"
            )
        rng = check_random_state(self.random_state)
        data, held_out = self._hold_out(data, eval_set, rng)
        push = PNormPush(self.p, loss=self.loss, price=self.price, side=self.side)
        objective: Any = push._objective(data.labels, data.weight, data.groups)
        rounds = self._boost(data, objective, held_out, rng)
        if not rounds.weak:
            _check_seen(self._weak_learner(), data.X)
        self._store(rounds)
        self.intercept_ = intercept_of(self._last_stage(data.X), data.labels, data.weight, push._power())
        return self

    def _hold_out(
        self, data: Training, eval_set: tuple[Any, ...] | None, rng: np.random.RandomState
    ) -> tuple[Training, Training | None]:
        """Split into training rows and held-out rows, if any."""
        if eval_set is not None:
            if self.validation_fraction is not None:
                raise InputError("give `validation_fraction` or `eval_set`, not both")
            return data, self._check_eval_set(*eval_set)
        if self.validation_fraction is None:
            return data, None
        splitter = StratifiedShuffleSplit if data.groups is None else GroupShuffleSplit
        split = splitter(1, test_size=self.validation_fraction, random_state=rng)
        train, test = next(split.split(data.X, data.labels, data.groups))
        return data.take(train), data.take(test)

    def _check_eval_set(self, X: Any, y: Any, groups: Any = None) -> Training:
        X, y = validated(self, X, y, reset=False)
        if not np.isin(y, self.classes_).all():
            raise InputError(f"`eval_set` has labels that y does not have: y has {self.classes_.tolist()}")
        return Training(X, y == self.classes_[1], None, None if groups is None else np.asarray(groups))

    def _boost(
        self, data: Training, objective: Push, held_out: Training | None, rng: np.random.RandomState
    ) -> Rounds:
        rounds, scores = Rounds(held_out, self.scoring), np.zeros(len(data.labels))
        value, slope = objective.value_and_grad(scores)
        rounds.note(value)
        while rounds.stop_reason == "":
            if not slope.any():  # the loss is zero or too small to represent
                rounds.stop_reason = "separated"
                break
            weak = self._fit_weak(data, slope, rng)
            h = output_of(weak, data.X)
            step, rounds.stop_reason = exact_move(objective, scores, slope, h)
            if rounds.stop_reason != "no edge":
                scores = scores + self.learning_rate * step * h
                value, slope = objective.value_and_grad(scores)
                rounds.add(weak, self.learning_rate * step, value)
                rounds.limit(self.n_estimators, self.n_iter_no_change)
                self._report(rounds)
        return rounds

    def _fit_weak(self, data: Training, slope: np.ndarray, rng: np.random.RandomState) -> Any:
        weight = _weights(slope, np.ones(len(slope)) if data.weight is None else data.weight)
        weak = _seeded(self._weak_learner(), rng)
        target = np.where(data.labels, 1.0, -1.0) if is_regressor(weak) else data.labels.astype(int)
        # trees compute in single precision and reject values that overflow it
        with np.errstate(over="ignore", invalid="ignore"):
            return weak.fit(data.X, target, sample_weight=weight)

    def _report(self, rounds: Rounds) -> None:
        if self.verbose:
            print(
                f"round {len(rounds.weak):4d}  objective {rounds.values[-1]:.12g}  "
                f"validation {rounds.measures[-1]:.6g}  step {rounds.steps[-1]:.4g}"
            )

    def _store(self, rounds: Rounds) -> None:
        self.n_iter_ = rounds.best if rounds.held_out is not None else len(rounds.weak)
        self.estimators_ = rounds.weak[: self.n_iter_]
        self.estimator_weights_ = np.array(rounds.steps[: self.n_iter_])
        self.train_objective_ = np.array(rounds.values)
        self.validation_scores_ = np.array(rounds.measures)
        self.stop_reason_ = rounds.stop_reason

    def staged_decision_function(self, X: ArrayLike) -> Iterator[np.ndarray]:
        """Scores after each round; the last equal :meth:`decision_function`."""
        rows = checked_rows(self, X)
        for scores in islice(self._stages(rows), 1, None):
            yield scores + self.intercept_

    def _stages(self, rows: Matrix) -> Iterator[np.ndarray]:
        """Scores without the intercept after 0, 1, 2, … rounds."""
        scores = np.zeros(rows.shape[0])
        yield scores
        for weak, step in zip(self.estimators_, self.estimator_weights_, strict=True):
            scores = scores + step * output_of(weak, rows)
            yield scores

    def _scores(self, X: ArrayLike) -> np.ndarray:
        return self._last_stage(checked_rows(self, X))

    def _last_stage(self, rows: Matrix) -> np.ndarray:
        return deque(self._stages(rows), maxlen=1).pop()

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean importance over the weak rankers, weighted by step size; only for weak rankers that have importances."""
        check_is_fitted(self)
        size = np.abs(self.estimator_weights_)
        return size @ np.array([weak.feature_importances_ for weak in self.estimators_]) / size.sum()


def exact_move(objective: Push, scores: np.ndarray, slope: np.ndarray, h: np.ndarray) -> tuple[float, str]:
    """Step along h that minimises the objective, and the reason to stop after it, or ``""``.

    A weak ranker's edge is the difference of its weighted means over positives and negatives, in units of its range: 1
    if it separates them, 0 for chance. Without an edge there is no step. For a ranker that separates the classes the
    optimal step is infinite; it gets the first trial step that also separates the sum, and boosting stops.
    """
    width = np.ptp(h)
    unit = (h - h.min()) / width if width > 0 else np.zeros_like(h)  # scale to [0, 1]
    edge = -float(slope @ unit) / (np.abs(slope).sum() / 2)
    if abs(edge) < NO_EDGE:
        return 0.0, "no edge"
    if objective.separated(np.sign(edge) * h):
        step = line_search(objective, scores, slope, unit, lambda a: objective.separated(scores + a * unit))
        return step / width, "separated"
    n = len(h) if objective.log_weight is None else np.exp(objective.log_weight).sum()
    longest = longest_step(n, objective.price.order)
    step = line_search(objective, scores, slope, unit, lambda a: abs(a) > longest)
    return float(np.clip(step, -longest, longest)) / width, "no edge" if abs(step) < NO_EDGE else ""


def longest_step(n: float, p: float) -> float:
    """``ln(1 + 2n)/(p + 1)``: the step of a 0/1 ranker that is correct on all pairs except half a row's.

    A leaf of a tree may hold a single class. No pair then bounds the step, and the rows in that leaf would stay above
    all others for good. RankBoost's remedy is to add ``ε = 1/(2n)`` to the correct and incorrect weights in
    ``ln(W₊/W₋)/(p + 1)`` (Schapire and Singer 1999, sec. 4.2).
    """
    return float(np.log1p(2 * n) / (p + 1))


def _weights(slope: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
    """``|slope|``, scaled to the total of ``sample_weight``.

    Each repetition of a row is rounded to a multiple of 2⁻³⁰ of the mean. Sums of such weights are exact, so weighted
    and repeated rows give the same trees: rounding never decides a tie between splits.
    """
    size = np.abs(slope)
    each = size / np.where(sample_weight > 0, sample_weight, 1) * (sample_weight.sum() / size.sum())
    return sample_weight * np.round(each * 2.0**30) / 2.0**30


def _check_seen(weak: Any, X: Matrix) -> None:
    """Raise InputError if all columns become constant in single precision, which trees use."""
    if isinstance(weak, BaseDecisionTree) and varies(X).any() and not varies(X.astype(np.float32)).any():
        raise InputError(
            "every column of X is constant in single precision, in which trees compute: "
            "subtract its mean and divide by its standard deviation first"
        )


def _seeded(estimator: Any, rng: np.random.RandomState) -> Any:
    """Clone an estimator and set its random states."""
    names = [name for name in sorted(estimator.get_params()) if name.split("__")[-1] == "random_state"]
    return clone(estimator).set_params(**{name: rng.randint(2**31 - 1) for name in names})
