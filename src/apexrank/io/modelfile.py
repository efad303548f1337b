"""The ``.apex`` model file: data, never code, so that a model from a stranger is safe to load.

A file is a JSON header and arrays; :mod:`apexrank.io.container` documents the bytes. The header holds

* ``apexrank``: the version of the library that wrote the file;
* ``estimator``: its ``class``, one of a fixed list, and its ``params``;
* ``columns``: the feature columns in order, each with ``name``, ``kind`` (number or category), ``fill`` (what a
  missing value becomes) and, for a category, its known ``values``;
* ``target``, ``positive``, ``id``, ``groups``, ``weight``, ``ignored``: what the other columns of the training table
  were;
* ``training``: number of rows and positives, scaling, and the solver's certificate;
* ``negatives``: how many negative rows training had; 0 where ``positive`` is null, because the target holds grades.

The arrays are ``coef`` and ``intercept``; ``center`` and ``scale``, by which a feature is ``(x - center) / scale``;
``mean``, the average training row after scaling; ``counts`` and ``scores``: so many of the training negatives
scored higher than that. JSON has no infinity: p = ∞ is written as ``"inf"``, a certificate that does not exist as
``null``.

Format 1, which had no ``weight``, is read as well.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from apexrank import __version__
from apexrank.atomic import write_bytes
from apexrank.errors import InputError
from apexrank.io.columns import KINDS
from apexrank.io.container import ModelFileError, broken, check_fields, pack, unpack
from apexrank.io.encode import SCALERS, Column, Encoder
from apexrank.io.ranker import CERTIFICATE, TableRanker, Thresholds

__all__ = ["ModelFileError", "load_model", "save_model"]

CLASSIFIERS = ("PNormPush", "IRPush", "RankBoost")
GRADED = ("MonotoneRetargeting", "ListwiseRanker", "CrucialPairsPush")
ESTIMATORS = CLASSIFIERS + GRADED
MAX_BYTES = 1 << 30

_TEXT, _TEXT_OR_NONE = (str,), (str, type(None))
_PLAIN = (str, int, float, bool, type(None))
_HEADER: dict[str, tuple[type, ...]] = {
    "apexrank": _TEXT,
    "estimator": (dict,),
    "columns": (list,),
    "target": _TEXT,
    "positive": _TEXT_OR_NONE,
    "id": _TEXT_OR_NONE,
    "groups": _TEXT_OR_NONE,
    "weight": _TEXT_OR_NONE,
    "ignored": (list,),
    "training": (dict,),
    "negatives": (int,),
}
_COLUMN: dict[str, dict[str, tuple[type, ...]]] = {
    "number": {"name": _TEXT, "fill": (float, type(None))},
    "category": {"name": _TEXT, "fill": (bool,), "values": (list,)},
}
# What kind of numbers each array holds: floats or integers.
_ARRAYS = dict.fromkeys(("coef", "intercept", "center", "scale", "mean", "scores"), "f") | {"counts": "i"}


def save_model(path: str | Path, model: TableRanker) -> None:
    """Write a model file, whole or not at all.

    Raises
    ------
    InputError
        When the path cannot be written or the estimator cannot be kept as data.
    """
    write_bytes(path, pack(_describe(model), _arrays(model)))


def load_model(path: str | Path) -> TableRanker:
    """Read a model file and check all of it; its scores equal those before saving, bit for bit.

    Raises
    ------
    ModelFileError
        When the file is not a model file, damaged, of another format, or contradicts itself.
    """
    try:
        header, arrays = unpack(_read(Path(path)))
        header = _upgraded(header)
        check_fields(header, _HEADER)
        return _build(header, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r} {error}") from None


def _upgraded(header: dict[str, Any]) -> dict[str, Any]:
    """A header of an older format as one of this format."""
    return {**header, "weight": None} if header["format"] == 1 else header


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ModelFileError(f"is too large for a model file: {size} bytes")
        if path.is_char_device():  # which may never end
            raise ModelFileError("is a device: give a model file")
        return path.read_bytes()
    except IsADirectoryError:
        raise ModelFileError("is a folder: give the model file in it") from None
    except OSError as error:
        raise ModelFileError(f"cannot be read: {(error.strerror or type(error).__name__).lower()}") from None


def _describe(model: TableRanker) -> dict[str, Any]:
    """Everything but the arrays, as JSON values."""
    return {
        "apexrank": __version__,
        "estimator": _describe_estimator(model.estimator),
        "columns": [{"kind": column.kind, **vars(column)} for column in model.encoder.columns],
        "target": model.target,
        "positive": model.positive,
        "id": model.id,
        "groups": model.groups,
        "weight": model.weight,
        "ignored": model.ignored,
        "training": {name: _finite_or_none(value) for name, value in model.training.items()},
        "negatives": 0 if model.thresholds is None else model.thresholds.total,
    }


def _describe_estimator(estimator: Any) -> dict[str, Any]:
    name = type(estimator).__name__
    if name not in ESTIMATORS:
        raise InputError(f"a {name} cannot be kept in a model file: use one of {', '.join(ESTIMATORS)}")
    params = {key: _plain(value) for key, value in estimator.get_params(deep=False).items()}
    for key, value in params.items():
        if type(value) not in _PLAIN:
            raise InputError(f"{key}={value!r} cannot be kept in a model file: give it by name")
    return {"class": name, "params": {key: "inf" if v == math.inf else v for key, v in params.items()}}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _finite_or_none(value: Any) -> Any:
    value = _plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _arrays(model: TableRanker) -> dict[str, np.ndarray]:
    thresholds = model.thresholds or Thresholds(np.zeros(0, np.int64), np.zeros(0), 0)
    return {
        "coef": np.asarray(model.coef, np.float64),
        "intercept": np.ravel(np.asarray(getattr(model.estimator, "intercept_", 0.0), np.float64)),
        "center": model.encoder.center,
        "scale": model.encoder.scale,
        "mean": model.mean,
        "counts": thresholds.counts.astype(np.int64),
        "scores": thresholds.scores,
    }


def _build(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> TableRanker:
    columns = tuple(_build_column(entry) for entry in header["columns"])
    _check_distinct([column.name for column in columns])
    _check_arrays(columns, arrays)
    return TableRanker(
        estimator=_build_estimator(header["estimator"], header["training"], arrays),
        encoder=Encoder(columns, arrays["center"], arrays["scale"]),
        target=header["target"],
        positive=header["positive"],
        id=header["id"],
        groups=header["groups"],
        ignored=_strings(header["ignored"]),
        mean=arrays["mean"],
        thresholds=_build_thresholds(header, arrays),
        training=_with_scale(_plain_values(header["training"])),
        weight=header["weight"],
    )


def _build_thresholds(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Thresholds | None:
    counts, scores, negatives = arrays["counts"], arrays["scores"], header["negatives"]
    graded = header["positive"] is None
    if graded != (header["estimator"].get("class") in GRADED):
        raise broken("its estimator does not fit its target")
    if graded:
        if len(counts) or len(scores) or negatives:
            raise broken("grades of relevance have no table of thresholds")
        return None
    _check_thresholds(counts, scores, negatives)
    return Thresholds(counts, scores, negatives)


def _strings(values: list[Any]) -> list[str]:
    if not all(isinstance(value, str) for value in values):
        raise broken("a list of names holds something else")
    return values


def _check_distinct(names: list[str]) -> list[str]:
    if not names or len(set(names)) < len(names):
        raise broken("a list of columns or values is empty or names one twice")
    return names


def _plain_values(values: dict[str, Any]) -> dict[str, Any]:
    if any(type(value) not in _PLAIN for value in values.values()):
        raise broken("a value is neither text nor a number")
    return values


def _with_scale(training: dict[str, Any]) -> dict[str, Any]:
    check_fields(training, {"scale": _TEXT})
    if training["scale"] not in (*SCALERS, "query"):
        raise broken(f"unknown scale {training['scale']!r}")
    return training


def _build_column(entry: Any) -> Column:
    check_fields(entry, {"kind": _TEXT})
    kind = entry["kind"]
    if kind not in _COLUMN:
        raise broken(f"unknown kind of column {kind!r}")
    check_fields(entry, _COLUMN[kind])
    fields = {name: entry[name] for name in _COLUMN[kind]}
    if "values" in fields:
        fields["values"] = tuple(_check_distinct(_strings(fields["values"])))
    if kind == "number" and not math.isfinite(fields["fill"] or 0.0):
        raise broken(f"the fill value of column {fields['name']!r} is not finite")
    return KINDS[kind](**fields)


def _check_arrays(columns: tuple[Column, ...], arrays: dict[str, np.ndarray]) -> None:
    """Refuse arrays that do not fit the columns or one another."""
    n_features = sum(len(column.features) for column in columns)
    sizes = {name: len(array) for name, array in arrays.items()}
    wanted = dict.fromkeys(("coef", "center", "scale", "mean"), n_features) | {"intercept": 1}
    if {name: array.dtype.kind for name, array in arrays.items()} != _ARRAYS:
        raise broken("its arrays are not those of a model")
    if any(sizes[name] != size for name, size in wanted.items()):
        raise broken("its arrays do not fit its columns")
    if not (arrays["scale"] > 0).all():
        raise broken("a scale is not positive")


def _check_thresholds(counts: np.ndarray, scores: np.ndarray, negatives: int) -> None:
    ordered = np.array_equal(np.unique(counts), counts) and np.all(np.diff(scores) <= 0)
    if not (len(counts) == len(scores) > 0 == counts[0] and counts[-1] < negatives < 1 << 53 and ordered):
        raise broken("its table of thresholds is out of order")


def _build_estimator(given: dict[str, Any], training: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    from apexrank import rankers

    check_fields(given, {"class": _TEXT, "params": (dict,)})
    if given["class"] not in ESTIMATORS:
        raise broken(f"unknown estimator {given['class']!r}")
    estimator = getattr(rankers, given["class"])()
    params = {key: math.inf if v == "inf" else v for key, v in _plain_values(given["params"]).items()}
    if (
        given["class"] == "MonotoneRetargeting"
    ):  # of files from before the alternation had an estimator of its own
        params = {key: value for key, value in params.items() if key not in ("max_alternations", "start")}
    if set(params) - set(estimator.get_params()):
        raise broken(f"a {given['class']} has no such parameters")
    estimator.set_params(**params)
    if given["class"] in CLASSIFIERS:
        estimator.classes_ = np.array([0, 1])
        estimator.coef_, estimator.intercept_ = arrays["coef"][None, :], arrays["intercept"]
    else:
        estimator.coef_, estimator.intercept_ = arrays["coef"], float(arrays["intercept"][0])
    estimator.n_features_in_ = len(arrays["coef"])
    for name in CERTIFICATE:
        value = training.get(name.rstrip("_"))
        setattr(estimator, name, math.nan if value is None else value)
    return estimator
