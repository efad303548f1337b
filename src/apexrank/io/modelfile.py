"""The ``.apex`` model file: data, never code, so that a model from a stranger is safe to load.

A file is

1. the line ``apexrank model 3``, whose number is the version of the format;
2. the line ``sha256 HEX``, the checksum of every byte after this line;
3. the line ``header N``, then N bytes of JSON (UTF-8) and a newline;
4. the arrays that the header lists under ``arrays`` (name, dtype, shape), one after the other: raw,
   little-endian, one-dimensional.

The header holds

* ``apexrank``: the version of the library that wrote the file;
* ``estimator``: its ``class``, one of the linear ones of :mod:`apexrank.rankers`, and its ``params``;
* ``columns``: the feature columns in order, each with ``name``, ``kind`` (number or category), ``fill`` (what a
  missing value becomes) and, for a category, its known ``values``;
* ``target``, ``positive``, ``id``, ``groups``, ``weight``, ``ignored``: what the other columns of the training table
  were;
* ``training``: number of rows and positives, scaling, and the solver's certificate;
* ``negatives``: how many negative rows training had, by their weights; 0 where ``positive`` is null, because the target
  holds grades.

The arrays are ``coef`` and ``intercept``; ``center`` and ``scale``, by which a feature is ``(x - center) / scale``;
``mean``, the average training row after scaling; ``counts`` and ``scores``: so many of the training negatives
scored higher than that; ``knots`` and ``values``, between which the link of a regression is linear, empty where there
is none. JSON has no infinity: p = ∞ is written as ``"inf"``, a certificate that does not exist as ``null``.

Formats 1, which had no ``weight``, and 2, which had no link and counted rows without weights, are read as well.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from apexrank import __version__
from apexrank.atomic import write_bytes
from apexrank.errors import InputError
from apexrank.io.encode import KINDS, SCALERS, Column, Encoder
from apexrank.io.table_ranker import CERTIFICATE, TableRanker, Thresholds
from apexrank.textfile import reason_of

FORMAT = 3
OLDEST = 1  # that can still be read
MAX_BYTES = 1 << 30

_MAGIC = b"apexrank model "
_DTYPES = {"<f8": np.dtype("<f8"), "<i8": np.dtype("<i8")}
_ARRAY = {"name": (str,), "dtype": (str,), "shape": (list,)}
_ARRAYS = {"coef", "intercept", "center", "scale", "mean", "scores", "counts", "knots", "values"}
# Parameters of older files, which only said how to fit: estimators may lack them.
_RETIRED = {"joint_convexity", "max_alternations", "normalize", "reward", "start"}
_REFUSED = {
    "PushBoost": "its rounds are estimators of their own, not coefficients",
    "TwoStagePush": "it ranks twice; keep its two rankers in files of their own",
}
_TEXT, _TEXT_OR_NONE = (str,), (str, type(None))
_PLAIN = (str, int, float, bool, type(None))
_PAIRS = ("output_range",)  # parameters that are pairs of numbers
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
    "negatives": (int, float),
}
_COLUMN: dict[str, dict[str, tuple[type, ...]]] = {
    "number": {"name": _TEXT, "fill": (float, type(None))},
    "category": {"name": _TEXT, "fill": (bool,), "values": (list,)},
}


class ModelFileError(InputError):
    """A file is not a model file this version can read."""


def save_model(path: str | Path, model: TableRanker) -> None:
    """Write a model file, whole or not at all.

    Raises
    ------
    InputError
        When the path cannot be written or the estimator cannot be kept as data.
    """
    if not isinstance(model, TableRanker):
        raise InputError(
            f"a model file keeps a TableRanker, not {type(model).__name__}: fit one with "
            "TableRanker.fit(table, recipe, ranker)"
        )
    write_bytes(path, pack(_describe(model), _arrays(model)))


def load_model(path: str | Path) -> TableRanker:
    """Read a model file and check all of it; its scores equal those before saving, bit for bit.

    Raises
    ------
    ModelFileError
        When the file is not a model file, damaged, of another format, or contradicts itself.
    """
    try:
        header, arrays = _upgraded(*unpack(_read(Path(path))))
        check_fields(header, _HEADER)
        return _build(header, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r} {error}") from None


def _upgraded(
    header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of an older format as those of this format."""
    if header["format"] < 2:
        header = {**header, "weight": None}
    if header["format"] < 3:
        arrays = {**arrays, "knots": np.zeros(0), "values": np.zeros(0)}
        if "counts" in arrays:
            arrays["counts"] = arrays["counts"].astype(np.float64)
    return header, arrays


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
        raise ModelFileError(f"cannot be read: {reason_of(error)}") from None


def broken(reason: str) -> ModelFileError:
    """Make the error for a file that is whole but contradicts the format."""
    return ModelFileError(f"is not a valid model file: {reason}")


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Bytes of a header and its arrays (of dtype float64 or int64).

    Examples
    --------
    >>> header, arrays = unpack(pack({"maker": "me"}, {"coef": np.array([0.5, -1.0])}))
    >>> header["maker"], arrays["coef"].tolist()
    ('me', [0.5, -1.0])
    """
    little = {name: np.ascontiguousarray(a, a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    listed = [{"name": name, "dtype": a.dtype.str, "shape": list(a.shape)} for name, a in little.items()]
    text = json.dumps({**header, "arrays": listed}, ensure_ascii=False, allow_nan=False).encode()
    body = b"header %d\n%s\n" % (len(text), text) + b"".join(a.tobytes() for a in little.values())
    checksum = hashlib.sha256(body).hexdigest().encode()
    return b"%s%d\nsha256 %s\n%s" % (_MAGIC, FORMAT, checksum, body)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header, with the version as its ``format``, and arrays.

    Every fault is a `ModelFileError` that continues "FILE ...".
    """
    magic, _, rest = data.partition(b"\n")
    if not magic.startswith(_MAGIC):
        raise ModelFileError("is not an apexrank model file: make one with 'apexrank fit'")
    version = _number(magic.removeprefix(_MAGIC))
    if not OLDEST <= version <= FORMAT:
        raise ModelFileError(
            f"has format {version}, but this apexrank reads formats {OLDEST} to {FORMAT}: upgrade apexrank"
        )
    checksum, _, body = rest.partition(b"\n")
    if checksum != b"sha256 " + hashlib.sha256(body).hexdigest().encode():
        raise ModelFileError("is damaged or cut short (its checksum differs): copy it again, or fit anew")
    header, blob = _split(body)
    check_fields(header, {"arrays": (list,)})
    return {**header, "format": version}, _cut(header["arrays"], blob)


def check_fields(given: Any, wanted: Mapping[str, tuple[type, ...]]) -> None:
    """Refuse an object that lacks a field, or has it with a type that is not wanted."""
    if not isinstance(given, dict):
        raise broken("an entry of its header is not a JSON object")
    for name, types in wanted.items():
        # A missing field is like one of a type that is never wanted; type() because True is an int to isinstance.
        if type(given.get(name, ...)) not in types:
            raise broken(f"{name!r} is missing or of the wrong type")


def _split(body: bytes) -> tuple[Any, bytes]:
    line, _, rest = body.partition(b"\n")
    size = _number(line.removeprefix(b"header "))
    if size > len(rest):
        raise broken(f"its header of {size} bytes is longer than the file")
    try:
        return json.loads(rest[:size], parse_constant=_refuse_constant), rest[size + 1 :]
    except (ValueError, RecursionError):
        raise broken("its header is not JSON") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _number(text: bytes) -> int:
    if not (text.isdigit() and len(text) < 20):
        raise broken(f"{text[:20]!r} is not a number")
    return int(text)


def _cut(listed: list[Any], blob: bytes) -> dict[str, np.ndarray]:
    """Arrays out of their bytes. Sizes are compared with the bytes there are before anything is made."""
    arrays: dict[str, np.ndarray] = {}
    position = 0
    for entry in listed:
        name, dtype, count = _check_array(entry)
        if position + dtype.itemsize * count > len(blob):
            raise broken(f"array {name!r} is longer than the file")
        arrays[name] = np.frombuffer(blob, dtype, count, position).astype(dtype.newbyteorder("="))
        position += dtype.itemsize * count
        if not np.isfinite(arrays[name]).all():
            raise broken(f"array {name!r} holds values that are not finite")
    if position != len(blob):
        raise broken(f"{len(blob) - position} bytes belong to no array")
    return arrays


def _check_array(entry: Any) -> tuple[str, np.dtype, int]:
    check_fields(entry, _ARRAY)
    name, dtype, shape = entry["name"], _DTYPES.get(entry["dtype"]), entry["shape"]
    if dtype is None:
        raise broken(f"array {name!r} has the unknown type {entry['dtype']!r}")
    if len(shape) != 1 or type(shape[0]) is not int or shape[0] < 0:
        raise broken(f"array {name!r} has no proper length")
    return name, dtype, shape[0]


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
    kept = f"a {name} cannot be kept in a model file"
    if name in _REFUSED:
        raise InputError(f"{kept}: {_REFUSED[name]}")
    if _estimator_class(name) is not type(estimator):
        raise InputError(f"{kept}: use one of apexrank's linear rankers")
    if not hasattr(estimator, "coef_"):
        raise InputError(f"{kept}: with a kernel its scores are not linear; fit it with kernel=None")
    params = {key: _written(value) for key, value in estimator.get_params(deep=False).items()}
    for key, value in params.items():
        if type(value) not in _PLAIN and not (key in _PAIRS and type(value) is list):
            raise InputError(f"{key}={value!r} cannot be kept in a model file: give it by name")
    return {"class": name, "params": params}


def _estimator_class(name: str) -> Any:
    """The estimator of that name, if it is one of this library's that a file may hold; else None."""
    from apexrank import rankers

    found: Any = getattr(rankers, name, None) if name in dir(rankers) and name not in _REFUSED else None
    return found if isinstance(found, type) and issubclass(found, BaseEstimator) else None


def _written(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    value = _plain(value)
    if isinstance(value, tuple):
        return [_written(part) for part in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _as_param(key: str, value: Any) -> Any:
    if key in _PAIRS and type(value) is list:
        return tuple(_as_param("", part) for part in value)
    if type(value) not in _PLAIN:
        raise broken("a value is neither text nor a number")
    return float(value) if value in ("inf", "-inf") else value


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _finite_or_none(value: Any) -> Any:
    value = _plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _arrays(model: TableRanker) -> dict[str, np.ndarray]:
    thresholds = model.thresholds or Thresholds(np.zeros(0), np.zeros(0), 0)
    estimator = model.estimator
    link = getattr(estimator, "link_", None)
    knots, values = (
        (getattr(estimator, "knots_", ()), getattr(estimator, "values_", ()))
        if link is None
        else (link.knots, link.values)
    )
    arrays = {
        "coef": model.coef,
        "intercept": np.ravel(getattr(estimator, "intercept_", 0.0)),
        "center": model.encoder.center,
        "scale": model.encoder.scale,
        "mean": model.mean,
        "counts": thresholds.counts,
        "scores": thresholds.scores,
        "knots": knots,
        "values": values,
    }
    return {name: np.asarray(array, np.float64) for name, array in arrays.items()}


def _build(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> TableRanker:
    columns = tuple(_build_column(entry) for entry in header["columns"])
    _check_distinct([column.name for column in columns])
    _check_arrays(columns, arrays)
    estimator = _build_estimator(header["estimator"], header["training"], arrays)
    return TableRanker(
        estimator=estimator,
        encoder=Encoder(columns, arrays["center"], arrays["scale"]),
        target=header["target"],
        positive=header["positive"],
        id=header["id"],
        groups=header["groups"],
        ignored=_strings(header["ignored"]),
        mean=arrays["mean"],
        thresholds=_build_thresholds(header, arrays, not is_classifier(estimator)),
        training=_with_scale(_plain_values(header["training"])),
        weight=header["weight"],
    )


def _build_thresholds(
    header: dict[str, Any], arrays: dict[str, np.ndarray], graded: bool
) -> Thresholds | None:
    counts, scores, negatives = arrays["counts"], arrays["scores"], header["negatives"]
    if graded != (header["positive"] is None):
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
    if set(arrays) != _ARRAYS or any(array.dtype.kind != "f" for array in arrays.values()):
        raise broken("its arrays are not those of a model")
    if any(sizes[name] != size for name, size in wanted.items()):
        raise broken("its arrays do not fit its columns")
    if not (arrays["scale"] > 0).all():
        raise broken("a scale is not positive")
    if len(arrays["knots"]) != len(arrays["values"]) or any(
        (np.diff(arrays[name]) < 0).any() for name in ("knots", "values")
    ):
        raise broken("its link does not rise")


def _check_thresholds(counts: np.ndarray, scores: np.ndarray, negatives: float) -> None:
    ordered = np.array_equal(np.unique(counts), counts) and np.all(np.diff(scores) <= 0)
    if not (
        len(counts) == len(scores) > 0 == counts[0] and float(counts[-1]) < negatives < 1 << 53 and ordered
    ):
        raise broken("its table of thresholds is out of order")


def _build_estimator(given: dict[str, Any], training: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    check_fields(given, {"class": _TEXT, "params": (dict,)})
    kind = _estimator_class(given["class"])
    if kind is None:
        raise broken(f"unknown estimator {given['class']!r}")
    estimator = kind()
    params = {key: _as_param(key, value) for key, value in given["params"].items()}
    known = estimator.get_params()
    if set(params) - set(known) - _RETIRED:
        raise broken(f"a {given['class']} has no such parameters")
    estimator.set_params(**{key: value for key, value in params.items() if key in known})
    estimator.n_features_in_ = len(arrays["coef"])
    if is_classifier(estimator):
        estimator.classes_ = np.array([0, 1])
        estimator.coef_, estimator.intercept_ = arrays["coef"][None, :], arrays["intercept"]
    else:
        estimator.coef_, estimator.intercept_ = arrays["coef"], float(arrays["intercept"][0])
    _set_link(estimator, arrays["knots"], arrays["values"])
    for name in CERTIFICATE:
        value = training.get(name.rstrip("_"))
        setattr(estimator, name, math.nan if value is None else value)
    return estimator


def _set_link(estimator: Any, knots: np.ndarray, values: np.ndarray) -> None:
    """Give a regression its link back."""
    from apexrank.rankers import Isotron, Link, UnknownLinkRegressor
    from apexrank.rankers.link import ConvexFunction

    has_link = isinstance(estimator, Isotron | UnknownLinkRegressor)
    if has_link != bool(len(knots)):
        raise broken("its estimator does not fit its link")
    if isinstance(estimator, Isotron):
        estimator.knots_, estimator.values_ = knots, values
    elif isinstance(estimator, UnknownLinkRegressor):
        free = estimator.link == "isotonic" or len(knots) == 1
        try:
            estimator.link_ = Link(knots, values, math.inf if free else 1 / estimator.strong_convexity)
            estimator.output_range_ = estimator._range()
            estimator.recovered_phi_ = ConvexFunction(estimator.link_)
        except (InputError, TypeError, ZeroDivisionError):
            raise broken("the parameters of its link are wrong") from None
