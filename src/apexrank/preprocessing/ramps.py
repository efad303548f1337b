"""Ramp features between quantiles, which turn linear models into additive ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from apexrank.errors import InputError
from apexrank.parameters import checked, whole
from apexrank.problem.ramps import RampBasis, RampRows
from apexrank.rankers.base import validated_weight
from apexrank.validation import check_frame, is_missing

MOST_LEVELS = 1000  # maximum number of levels of a text column


class RampEncoder(TransformerMixin, BaseEstimator):
    """Encode every column as ramps between its quantiles, so that a linear model on them is additive in the columns.

    A column with knots ``k_0 < … < k_M`` becomes M features ``clip((x − k_{m−1})/(k_m − k_{m−1}), 0, 1)/√M``, each
    minus its value at the knot next to the median. Linear functions of these features are exactly the functions of the
    column that are linear between the knots and constant outside; such a function is non-decreasing exactly if its
    coefficients are non-negative, and a ridge on them penalises its slopes. Columns with at most ``n_knots`` distinct
    values have a knot at each. A missing value (NaN) is placed at the median and has a separate feature if training has
    missing values. A text column of a data frame has one feature per value; a value not seen in training counts as
    missing.

    Parameters
    ----------
    n_knots : int
        Maximum number of knots of a column, at least 2.

    Attributes
    ----------
    knots_ : list of arrays
        Knots of each column; the positions of the levels for a text column.
    levels_ : dict
        Values of each text column, by position.
    basis_ : RampBasis
        The functions that define the features.

    Notes
    -----
    ``transform`` returns a dense array. :meth:`rows` returns the same rows as positions between knots, 9 or 10 bytes
    per value; the additive rankers use this form.

    Examples
    --------
    >>> encoder = RampEncoder(n_knots=3).fit([[0.0], [1.0], [3.0]])
    >>> (encoder.transform([[0.5], [2.0]]) * np.sqrt(2)).round(6).tolist()
    [[-0.5, 0.0], [0.0, 0.5]]
    >>> encoder.get_feature_names_out(["age"]).tolist()
    ['age 0 to 1', 'age 1 to 3']
    """

    _parameter_constraints: ClassVar[dict] = {"n_knots": [whole(2)]}

    levels_: dict[int, Sequence[str]]

    def __init__(self, n_knots: int = 33) -> None:
        self.n_knots = n_knots

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    @checked
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the knots; ``sample_weight`` counts as repetitions of rows."""
        rows = self.numbers(X, reset=True)
        weight = validated_weight(sample_weight, rows)
        self.basis_ = learn_basis(rows, weight, self.n_knots, self.levels_)
        return self

    @property
    def knots_(self) -> list[np.ndarray]:
        check_is_fitted(self)
        return list(self.basis_.knots)

    def check_state(self) -> None:
        """Raise InputError unless the columns of levels have a knot for each of them."""
        basis = self.basis_
        for j, knots in enumerate(basis.knots):
            if basis.levels[j] != (j in self.levels_) or len(self.levels_.get(j, knots)) != len(knots):
                raise InputError(f"`levels_` and `basis_` of a RampEncoder differ in column {j}")

    def transform(self, X: Any) -> np.ndarray:
        """Features of the rows, as a dense array."""
        return self.rows(X).dense(slice(None))

    def rows(self, X: Any) -> RampRows:
        """The same features, stored as positions between knots."""
        check_is_fitted(self)
        return RampRows(self.numbers(X, reset=False), self.basis_)

    def numbers(self, X: Any, *, reset: bool) -> np.ndarray:
        """Validated numeric rows, with text encoded by its position among the levels and missing values as NaN."""
        check_frame(X)
        X, self.levels_ = coded(X, None if reset else self.levels_)
        options: Any = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "order": "C"}
        return validate_data(self, X, reset=reset, **options)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Feature names such as ``age 20 to 35``, ``city Oslo`` and ``age missing``."""
        check_is_fitted(self)
        given = (
            getattr(self, "feature_names_in_", None) if input_features is None else np.asarray(input_features)
        )
        columns = [f"x{j}" for j in range(self.n_features_in_)] if given is None else list(given)
        if len(columns) != self.n_features_in_:
            raise InputError(f"`input_features` should have length {self.n_features_in_}, got {len(columns)}")
        names: list[str] = []
        for j, (name, knots) in enumerate(zip(columns, self.knots_, strict=True)):
            if j in self.levels_:
                names += [f"{name} {level}" for level in self.levels_[j]]
            else:
                names += [f"{name} {a:.6g} to {b:.6g}" for a, b in pairwise(knots)]
            names += [f"{name} missing"] * self.basis_.missing[j]
        return np.array(names, dtype=object)


def learn_basis(
    rows: np.ndarray, weight: np.ndarray | None, n_knots: int, levels: Mapping[int, Sequence[str]]
) -> RampBasis:
    """Choose the knots of every numeric column (:func:`knots_of`); columns of codes have a knot at each level."""
    weight = np.ones(len(rows)) if weight is None else weight
    found = [
        (np.arange(len(levels[j]), dtype=float), 0) if j in levels else knots_of(column, weight, n_knots)
        for j, column in enumerate(rows.T)
    ]
    counted = rows[weight > 0]
    missing = [0 < int(np.isnan(column).sum()) < len(counted) for column in counted.T]
    are_levels = [j in levels for j in range(rows.shape[1])]
    return RampBasis([knots for knots, _ in found], [middle for _, middle in found], missing, are_levels)


def coded(X: Any, levels: Mapping[int, Sequence[str]] | None) -> tuple[Any, dict[int, Sequence[str]]]:
    """Encode the text columns of a frame by the positions of their values among ``levels``; returns frame and levels.

    Levels that are not given are learned. Missing values and unknown levels become NaN. Anything but a frame is
    returned unchanged.
    """
    found: dict[int, Sequence[str]] = {} if levels is None else dict(levels)
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return X, found
    original, names = X, list(X.columns)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"X has the column {name!r} twice: rename one of them")
        if "date" in _kind(original[name]):
            raise InputError(f"column {name!r} holds dates: convert them to numbers, such as days or hours")
    for j, name in enumerate(names):
        values = original[name]
        if not (_is_text(values) if levels is None else j in found):
            continue
        words, place = _distinct(values)
        if levels is None:
            # a column of missing values has a level that no row has
            found[j] = tuple(sorted(words[k] for k in np.unique(place[place >= 0]))) or ("",)
            if len(found[j]) > MOST_LEVELS and _kind(values) != "enum":  # whose levels were chosen
                raise InputError(
                    f"column {name!r} has {len(found[j]):,} different texts, more than {MOST_LEVELS}: leave it out, or "
                    "join the rare ones"
                )
        known: dict[Any, float] = {level: float(code) for code, level in enumerate(found[j])}
        codes = np.array([*(known.get(word, np.nan) for word in words), np.nan])[place]
        if hasattr(X, "with_columns"):
            X = X.with_columns(type(values)(name, codes))
        else:
            X = X.copy() if X is original else X
            X[name] = codes
    return X, found


def _distinct(values: Any) -> tuple[list[str], np.ndarray]:
    """Words of a column, and the index of that of each row; −1 if it is missing."""
    if _kind(values) == "enum":  # of polars
        words, place = values.dtype.categories.to_list(), values.to_physical().cast(int).fill_null(-1)
        return words, place.to_numpy()
    place = {}
    texts = (None if is_missing(value) else str(value) for value in np.asarray(values, dtype=object))
    codes = [-1 if word is None else place.setdefault(word, len(place)) for word in texts]
    return list(place), np.array(codes, dtype=np.intp)


def _kind(values: Any) -> str:
    """Name of a type, without its levels or its unit."""
    return str(values.dtype).partition("(")[0].lower()


def _is_text(values: Any) -> bool:
    kind = _kind(values)
    return kind in ("object", "str", "string", "categorical") or kind.startswith(
        ("category", "string", "enum", "cat")
    )


def knots_of(values: np.ndarray, weight: np.ndarray, most: int) -> tuple[np.ndarray, int]:
    """Knots of a column, and the index of the knot next to its median.

    All distinct values if there are few. Otherwise values that are as frequent as the rows between two knots become
    knots, and the other knots are at quantiles of the remaining rows, so a column that is zero in nine rows out of ten
    still has as many knots. Quantiles are values of the column (the inverse of its distribution function), so repeated
    and weighted rows give the same ones.

    Examples
    --------
    >>> knots, middle = knots_of(np.array([0.0] * 90 + [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), np.ones(100), 6)
    >>> knots.tolist(), middle
    ([0.0, 1.0, 3.0, 5.0, 8.0, 10.0], 0)
    """
    kept = ~np.isnan(values) & (weight > 0)
    values, weight = values[kept], weight[kept]
    if not len(values):
        return np.zeros(1), 0
    order = np.argsort(values, kind="stable")
    values, weight = values[order], weight[order]
    first = np.flatnonzero(np.concatenate([[True], values[1:] > values[:-1]]))
    distinct, mass = values[first], np.add.reduceat(weight, first)
    median = distinct[np.searchsorted(np.cumsum(mass), 0.5 * mass.sum() * (1 - 1e-12))]
    knots = distinct
    if len(distinct) > most:
        heavy = mass >= mass.sum() / (most - 1)
        rest, below = distinct[~heavy], np.cumsum(mass[~heavy])
        room = max(2, most - int(heavy.sum()))
        at = np.searchsorted(below, np.linspace(0, 1, room) * below[-1] * (1 - 1e-12))
        knots = np.unique(np.concatenate([rest[at], distinct[heavy], distinct[[0, -1]]]))
    return knots, int(np.argmin(np.abs(knots - median)))
