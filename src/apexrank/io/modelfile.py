"""The ``.apex`` model file: data only, no code, so that untrusted models are safe to load.

A file consists of

1. the line ``apexrank model 6``, whose number is the version of the format;
2. the line ``sha256 HEX``, the checksum of every byte after this line;
3. the line ``header N``, then N bytes of JSON (UTF-8) and a newline;
4. the arrays that the header lists under ``arrays`` (name, dtype, shape), one after another: raw, little-endian,
   one-dimensional.

The header holds

* ``apexrank``: the version of the library that wrote the file;
* ``estimator``: its ``class``, a linear or additive one of :mod:`apexrank.rankers`, ``TreeRanker`` or
  ``LetorRanker``, and its ``params``; ``monotonic_cst`` names columns of the table, or lists a sign per feature;
* ``columns``: the feature columns in order, each with ``name``, ``kind`` (number, category or date) and the fields of
  :class:`~apexrank.io.types.Number`, :class:`~apexrank.io.types.Category` or :class:`~apexrank.io.types.Date`, such
  as ``fill`` (the imputed value), ``missing`` (whether missing values have a feature), and the ``values`` of a
  category;
* ``target``, ``positive``, ``id``, ``groups``, ``weight``, ``ignored``: the roles of the other columns of the training
  table;
* ``training``: number of rows and positives, scaling, and the solver's certificate;
* ``negatives``: total weight of the negative training rows; 0 if ``positive`` is null, because the target holds
  grades.

The arrays are ``coef`` and ``intercept``; ``center`` and ``scale``, which scale a feature to ``(x - center) / scale``;
``mean``, the average training row after scaling; ``counts`` and ``scores``: the number of training negatives above each
score; ``knots`` and ``values`` of the piecewise linear link of a regression, empty if there is none. A calibrated model
also has ``calibration_scores`` and ``calibration_probabilities``, between which probabilities are linear in the score.

An additive model has no coefficients: its ``coef`` are zeros. For each feature, ``shape_sizes`` is the number of knots,
and ``shape_missing`` and ``shape_missing_counts`` are the effect and the training weight of a missing value.
``shape_knots`` and ``shape_values`` are the concatenated knots of all features and the effects there; ``shape_counts``
are the training weights between them, one fewer than knots and at least one per feature. For pairs of features,
``pair_features`` and ``pair_sizes`` hold two numbers each, the features and their numbers of knots; ``pair_knots`` are
those of the first feature, then of the second, and ``pair_values`` is the grid of effects, row by row. The arrays
``tree_*`` are the fields of :class:`~apexrank.rankers.forest.Forest`.

``profile_sizes`` holds two numbers per column and two for the scores: the numbers of ``profile_edges`` and of
``profile_shares`` of its :class:`~apexrank.io.drift.Profile`; without these arrays there are no profiles.

JSON has no infinity: p = ∞ is written as ``"inf"``, a certificate that does not exist as ``null``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from apexrank import __version__
from apexrank.errors import InputError
from apexrank.files import reason_of, write_bytes
from apexrank.io.drift import Profile
from apexrank.io.encode import SCALERS, Linearise, TypedColumns
from apexrank.io.table_ranker import CERTIFICATE, Calibration, TableRanker, Thresholds
from apexrank.io.types import Category, Column, Date, Number
from apexrank.rankers.additive import AdditiveFit, PairShape, Shape
from apexrank.rankers.forest import Forest, ForestRanker
from apexrank.rankers.letor import LetorRanker

FORMAT = 6
MAX_BYTES = 1 << 30
_MOST_KNOTS = 1 << 16  # maximum number of knots of a feature; rows are coded in two bytes

_MAGIC = b"apexrank model "
_DTYPES = {"<f8": np.dtype("<f8"), "<i8": np.dtype("<i8")}
# Parameters of older files that only affected fitting; estimators may lack them.
_RETIRED = {"joint_convexity", "max_alternations", "normalize", "pos_label", "reward", "start"}
_REFUSED = {
    "PushBoost": "its rounds are separate estimators, not coefficients",
    "TwoStagePush": "it ranks twice; save its two rankers in separate files",
}
_PLAIN = (str, int, float, bool, type(None))
_PAIRS = ("bounds", "output_range")  # parameters that are pairs of numbers

# Fields of the JSON objects in a header, with their allowed types.
Fields = Mapping[str, tuple[type, ...]]
_TEXT, _TEXT_OR_NONE = (str,), (str, type(None))
# Fields of a TableRanker that are stored under their own names.
_ROLES: Fields = {
    "target": _TEXT,
    "positive": _TEXT_OR_NONE,
    "id": _TEXT_OR_NONE,
    "groups": _TEXT_OR_NONE,
    "weight": _TEXT_OR_NONE,
    "ignored": (list,),
}
_HEADER: Fields = {
    "apexrank": _TEXT,
    "estimator": (dict,),
    "columns": (list,),
    **_ROLES,
    "training": (dict,),
    "negatives": (int, float),
}
_ESTIMATOR: Fields = {"class": _TEXT, "params": (dict,)}
_FILLED: Fields = {
    "name": _TEXT,
    "fill": (list, type(None)),
    "missing": (bool,),
    "required": (bool,),
}
_COLUMN: dict[str, Fields] = {
    "number": {**_FILLED, "decimal": _TEXT, "unit": _TEXT},
    "category": {**_FILLED, "values": (list,), "other": (bool,)},
    "date": {**_FILLED, "format": _TEXT},
}
_KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Number, Category, Date)}
_SUMMARY: Fields = {  # of the training rows, and the certificate
    **dict.fromkeys(("rows", "positives"), (int, type(None))),
    **{name.rstrip("_"): (int, float, bool, type(None)) for name in CERTIFICATE},
}
_ARRAY: Fields = {"name": _TEXT, "dtype": _TEXT, "shape": (list,)}
# Arrays with one number per feature, and all others.
_OF_FEATURES = ("coef", "center", "scale", "mean")
_ARRAYS = {*_OF_FEATURES, "intercept", "scores", "counts", "knots", "values"}
_CALIBRATION = ("calibration_scores", "calibration_probabilities")  # optional in every format
_PROFILES = ("profile_sizes", "profile_edges", "profile_shares")  # optional, from format 5 on
_TREES = tuple(f"tree_{name}" for name in Forest._fields)  # arrays of a ForestRanker
_SHAPES = (  # arrays of an additive ranker
    *(f"shape_{name}" for name in ("sizes", "knots", "values", "missing", "counts", "missing_counts")),
    *(f"pair_{name}" for name in ("features", "sizes", "knots", "values")),
)


class ModelFileError(InputError):
    """Error for a file that is not a model file, or not one this version can read."""


def save_model(path: str | Path, model: Any) -> None:
    """Write a model file atomically.

    Parameters
    ----------
    path : str or Path
        File to write, usually with the ending ``.apex``.
    model : TableRanker or estimator
        An estimator of graded relevance, such as :class:`~apexrank.MonotoneRetargeting`, is wrapped by
        :meth:`TableRanker.of` without a group column: ``load_model(path).estimator`` returns it.

    Raises
    ------
    InputError
        If the path cannot be written or the estimator cannot be stored as data.
    """
    if not isinstance(model, TableRanker):
        if not isinstance(model, BaseEstimator):
            raise InputError(
                f"a model file keeps a TableRanker or a ranker of grades, not {type(model).__name__}: fit one with "
                "TableRanker.fit(table, recipe, ranker)"
            )
        _describe_estimator(model)  # raises if the estimator cannot be stored
        model = TableRanker.of(model)
    write_bytes(path, pack(*describe(model)))


def load_model(path: str | Path) -> TableRanker:
    """Read and validate a model file; its scores are bit-identical to those before saving.

    Raises
    ------
    ModelFileError
        If the file is not a model file, or is damaged, of another format, or inconsistent.
    """
    try:
        header, arrays = unpack(_read(Path(path)))
        return _build(header, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r} {error}") from None


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ModelFileError(f"is too large for a model file: {size} bytes")
        if path.exists() and not path.is_dir() and not path.is_file():  # reading it may never end
            raise ModelFileError("is a device or a pipe: give a model file")
        return path.read_bytes()
    except IsADirectoryError:
        raise ModelFileError("is a folder: give the model file in it") from None
    except OSError as error:
        raise ModelFileError(f"cannot be read: {reason_of(error)}") from None


def broken(reason: str) -> ModelFileError:
    """Create the error for a file that is complete but violates the format."""
    return ModelFileError(f"is not a valid model file: {reason}")


def _require(holds: Any, otherwise: str) -> None:
    if not holds:
        raise broken(otherwise)


def check_fields(given: Any, wanted: Fields) -> None:
    """Raise ModelFileError if an object lacks a field or has one of the wrong type."""
    _require(isinstance(given, dict), "an entry of its header is not a JSON object")
    for name, types in wanted.items():
        # a missing field gets a type that is never allowed; type() because isinstance(True, int) holds
        _require(type(given.get(name, ...)) in types, f"{name!r} is missing or of the wrong type")


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Serialise a header and its arrays (of dtype float64 or int64).

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
    """Parse and return the header, with the version as its ``format``, and the arrays.

    Every error is a `ModelFileError` that continues "FILE ...".
    """
    magic, _, rest = data.partition(b"\n")
    if not magic.startswith(_MAGIC):
        raise ModelFileError("is not an apexrank model file: make one with 'apexrank fit'")
    version = _number(magic.removeprefix(_MAGIC))
    if version != FORMAT:
        remedy = "upgrade apexrank" if version > FORMAT else "fit the model again"
        raise ModelFileError(f"has format {version}, but this apexrank reads format {FORMAT}: {remedy}")
    checksum, _, body = rest.partition(b"\n")
    if checksum != b"sha256 " + hashlib.sha256(body).hexdigest().encode():
        raise ModelFileError(
            "is damaged or truncated (its checksum differs): copy it again, or fit the model again"
        )
    line, _, rest = body.partition(b"\n")
    size = _number(line.removeprefix(b"header "))
    _require(size <= len(rest), f"its header of {size} bytes is longer than the file")
    try:
        # NaN and Infinity are not valid JSON, and int raises on them
        header = json.loads(rest[:size], parse_constant=int)
        json.dumps(header, ensure_ascii=False).encode()  # half a surrogate pair is no character
    except (ValueError, RecursionError):
        raise broken("its header is not JSON of Unicode text") from None
    check_fields(header, {"arrays": (list,)})
    return {**header, "format": version}, _cut(header["arrays"], rest[size + 1 :])


def _number(text: bytes) -> int:
    _require(text.isdigit() and len(text) < 20, f"{text[:20]!r} is not a number")
    return int(text)


def _cut(listed: list[Any], blob: bytes) -> dict[str, np.ndarray]:
    """Split the arrays out of their bytes; sizes are checked before anything is allocated."""
    arrays: dict[str, np.ndarray] = {}
    position = 0
    for entry in listed:
        check_fields(entry, _ARRAY)
        name, dtype, shape = entry["name"], _DTYPES.get(entry["dtype"]), entry["shape"]
        if dtype is None:
            raise broken(f"array {name!r} has the unknown type {entry['dtype']!r}")
        is_length = len(shape) == 1 and type(shape[0]) is int and shape[0] >= 0
        _require(is_length, f"array {name!r} has no proper length")
        start, position = position, position + dtype.itemsize * shape[0]
        _require(position <= len(blob), f"array {name!r} is longer than the file")
        arrays[name] = np.frombuffer(blob, dtype, shape[0], start).astype(dtype.newbyteorder("="))
        _require(np.isfinite(arrays[name]).all(), f"array {name!r} holds values that are not finite")
    _require(position == len(blob), f"{len(blob) - position} bytes belong to no array")
    return arrays


def describe(model: TableRanker) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and arrays of a model, the arguments of :func:`pack`."""
    estimator, thresholds = model.estimator, model.thresholds or Thresholds(np.zeros(0), np.zeros(0), 0)
    link, has_coef = getattr(estimator, "link_", None), model.is_linear or isinstance(estimator, LetorRanker)
    header = {
        "apexrank": __version__,
        "estimator": _describe_estimator(estimator),
        "columns": [{"kind": column.kind, **vars(column)} for column in model.encoder.columns],
        **{name: getattr(model, name) for name in _ROLES},
        "training": {name: _as_json(value) for name, value in model.training.items()},
        "negatives": thresholds.total,
    }
    arrays = {
        "coef": np.ravel(estimator.coef_) if has_coef else np.zeros(len(model.mean)),
        "intercept": np.ravel(getattr(estimator, "intercept_", 0.0)),
        "center": getattr(model.encoder, "center", np.zeros(len(model.mean))),
        "scale": getattr(model.encoder, "scale", np.ones(len(model.mean))),
        "mean": getattr(estimator, "mean_", model.mean),
        "counts": thresholds.counts,
        "scores": thresholds.scores,
        "knots": () if link is None else link.knots,
        "values": () if link is None else link.values,
    }
    arrays |= zip(_CALIBRATION, model.calibration or (), strict=False)
    if model.score_profile is not None:
        profiles = (*model.encoder.profiles, model.score_profile)
        sizes = [(len(edges), len(shares)) for edges, shares in profiles]
        arrays |= zip(
            _PROFILES, (np.ravel(sizes), *map(np.concatenate, zip(*profiles, strict=True))), strict=True
        )
    arrays |= {name: np.ravel(a) for name, a in zip(_TREES, getattr(estimator, "forest_", ()), strict=False)}
    if isinstance(estimator, AdditiveFit):
        arrays |= _describe_shapes(estimator.shapes_, estimator.pairs_)
    return header, {name: np.asarray(array, np.float64) for name, array in arrays.items()}


def _describe_shapes(shapes: Sequence[Shape], pairs: Sequence[PairShape]) -> dict[str, np.ndarray]:
    knots = [own for pair in pairs for own in pair.knots]
    found = (
        [len(shape.knots) for shape in shapes],
        np.concatenate([shape.knots for shape in shapes]),
        np.concatenate([shape.values for shape in shapes]),
        [shape.missing for shape in shapes],
        np.concatenate([shape.counts for shape in shapes]),
        [shape.missing_count for shape in shapes],
        np.ravel([pair.features for pair in pairs]),
        [len(own) for own in knots],
        np.concatenate([*knots, np.zeros(0)]),
        np.concatenate([*(np.ravel(pair.values) for pair in pairs), np.zeros(0)]),
    )
    return dict(zip(_SHAPES, map(np.asarray, found), strict=True))


def _describe_estimator(estimator: Any) -> dict[str, Any]:
    name = type(estimator).__name__
    kept = f"a {name} cannot be kept in a model file"
    if name in _REFUSED:
        raise InputError(f"{kept}: {_REFUSED[name]}")
    if _estimator_class(name) is not type(estimator):
        raise InputError(f"{kept}: use one of apexrank's linear rankers")
    if not any(hasattr(estimator, fitted) for fitted in ("coef_", "forest_", "shapes_")):
        raise InputError(f"{kept}: with a kernel its scores are not linear; fit it with `kernel=None`")
    params = {key: _as_json(value, str) for key, value in estimator.get_params(deep=False).items()}
    if params.get("alpha") == "auto":  # "auto" depends on the training rows
        params["alpha"] = float(estimator.alpha_)
    for key, value in params.items():
        is_pair = key in _PAIRS and type(value) is list
        signs = key == "monotonic_cst" and _is_monotone(value)
        if not (type(value) in _PLAIN or is_pair or signs):
            raise InputError(f"`{key}={value!r}` cannot be kept in a model file: give it by name")
    return {"class": name, "params": params}


def _estimator_class(name: str) -> Any:
    """Return this library's estimator with that name if a file may hold it, else None."""
    from apexrank import rankers

    found: Any = getattr(rankers, name, None) if name in dir(rankers) and name not in _REFUSED else None
    return found if isinstance(found, type) and issubclass(found, BaseEstimator) else None


def _as_json(value: Any, infinite: Any = lambda _: None) -> Any:
    """Convert a value to JSON; ``infinite`` converts non-finite floats."""
    value = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    if isinstance(value, tuple | list):
        return [_as_json(part, infinite) for part in value]
    if isinstance(value, Mapping):
        return {key: _as_json(part, infinite) for key, part in value.items()}
    return infinite(value) if isinstance(value, float) and not math.isfinite(value) else value


def _build(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> TableRanker:
    check_fields(header, _HEADER)
    columns = tuple(map(_build_column, header["columns"]))
    _check_distinct([column.name for column in columns])
    estimated = _estimator_class(header["estimator"].get("class"))
    typed = getattr(estimated, "takes_columns", False)
    widths = [1 if typed else len(column.features) for column in columns]
    filled = typed or all(
        column.fill or (column.required and column.kind != "category") for column in columns
    )
    _require(filled, "a column of a linear model has no fill value")
    _check_arrays(sum(widths), arrays)
    _check_strings(header["ignored"])
    training = header["training"]
    _require(all(map(_is_plain, training.values())), "a value is neither text nor a number")
    check_fields(dict.fromkeys(_SUMMARY) | training, {"scale": _TEXT, **_SUMMARY})
    _require(training["scale"] in (*SCALERS, "query"), f"unknown scale {training['scale']!r}")
    estimator = _build_estimator(header["estimator"], training, arrays)
    if typed:
        estimator.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        levels = {j: column.levels for j, column in enumerate(columns) if isinstance(column, Category)}
        estimator.levels_ = {j: tuple(sorted(names)) for j, names in levels.items()}
    graded = header["positive"] is None
    _require(graded != is_classifier(estimator), "its estimator does not fit its target")
    thresholds = Thresholds(arrays["counts"], arrays["scores"], header["negatives"])
    _check_thresholds(thresholds, graded)
    profiles = _build_profiles(arrays, columns)
    return TableRanker(
        estimator=estimator,
        encoder=TypedColumns(columns, profiles[:-1])
        if typed
        else Linearise(columns, profiles[:-1], arrays["center"], arrays["scale"]),
        mean=arrays["mean"],
        thresholds=None if graded else thresholds,
        training=training,
        calibration=_build_calibration(arrays, graded),
        score_profile=profiles[-1] if profiles else None,
        **{name: header[name] for name in _ROLES},
    )


def _build_calibration(arrays: dict[str, np.ndarray], graded: bool) -> Calibration | None:
    found = [arrays[name] for name in _CALIBRATION if name in arrays]
    if not found:
        return None
    fits = len(found) == 2 and len(found[0]) == len(found[1]) > 0 and not graded
    rises = fits and all((np.diff(array) > 0).all() for array in found)
    _require(
        rises and found[1][0] >= 0 and found[1][-1] <= 1, "its probabilities do not rise with the scores"
    )
    return Calibration(*found)


def _build_profiles(arrays: dict[str, np.ndarray], columns: Sequence[Column]) -> tuple[Profile, ...]:
    """Profiles of the columns and of the scores; empty if the file has none."""
    if not arrays.keys() & set(_PROFILES):
        return ()
    _require(arrays.keys() >= set(_PROFILES), "its profiles are not complete")
    sizes, edges, shares = (arrays[name] for name in _PROFILES)
    whole = len(sizes) == 2 * (len(columns) + 1) and ((sizes >= 0) & (sizes == np.floor(sizes))).all()
    fits = whole and sizes[::2].sum() == len(edges) and sizes[1::2].sum() == len(shares)
    _require(fits and ((shares >= 0) & (shares <= 1)).all(), "its profiles have no proper sizes")
    parts = (_parts(array, sizes[k::2].astype(np.int64)) for k, array in enumerate((edges, shares)))
    profiles = tuple(map(Profile, *parts))
    for column, (bounds, known) in zip((*columns, None), profiles, strict=True):
        width = len(column.values) + 2 if isinstance(column, Category) else max(1, len(bounds))
        ordered = len(known) == width and (np.diff(bounds) >= 0).all() and len(bounds) != 1
        _require(
            ordered and not (isinstance(column, Category) and len(bounds)), "its profiles are out of order"
        )
    return profiles


def _build_column(entry: Any) -> Column:
    check_fields(entry, {"kind": _TEXT})
    wanted = _COLUMN.get(entry["kind"])
    if wanted is None:
        raise broken(f"unknown kind of column {entry['kind']!r}")
    check_fields(entry, wanted)
    fields: dict[str, Any] = {
        name: tuple(entry[name]) if type(entry[name]) is list else entry[name] for name in wanted
    }
    if fields.get("values"):
        _check_strings(entry["values"])
        _check_distinct(entry["values"])
    fill = fields["fill"] or ()
    finite = all(type(value) is float and math.isfinite(value) for value in fill)
    _require(finite, f"the fill value of column {fields['name']!r} is not finite")
    try:
        return _KINDS[entry["kind"]](**fields)
    except InputError as error:
        raise broken(str(error)) from None


def _check_strings(values: list[Any]) -> None:
    _require(all(isinstance(value, str) for value in values), "a list of names holds something else")


def _check_distinct(names: list[str]) -> list[str]:
    distinct = 0 < len(names) == len(set(names))
    _require(distinct, "a list of columns or values is empty or names one twice")
    return names


def _check_arrays(n_features: int, arrays: dict[str, np.ndarray]) -> None:
    """Raise ModelFileError for arrays that do not fit the columns or each other."""
    known = set(arrays).difference(_CALIBRATION, _PROFILES, _TREES, _SHAPES) == _ARRAYS and all(
        array.dtype.kind == "f" for array in arrays.values()
    )
    _require(known, "its arrays are not those of a model")
    fit = len(arrays["intercept"]) == 1 and all(len(arrays[name]) == n_features for name in _OF_FEATURES)
    _require(fit, "its arrays do not fit its columns")
    _require((arrays["scale"] > 0).all(), "a scale is not positive")
    knots, values = arrays["knots"], arrays["values"]
    rises = len(knots) == len(values) and (np.diff(knots) >= 0).all() and (np.diff(values) >= 0).all()
    _require(rises, "its link does not rise")


def _check_thresholds(thresholds: Thresholds, graded: bool) -> None:
    counts, scores, total = thresholds.counts, thresholds.scores, thresholds.total
    if graded:
        empty = not (len(counts) or len(scores) or total)
        _require(empty, "grades of relevance have no table of thresholds")
        return
    ordered = np.array_equal(np.unique(counts), counts) and np.all(np.diff(scores) <= 0)
    fits = len(counts) == len(scores) > 0 == counts[0] and float(counts[-1]) < total < 1 << 53
    _require(ordered and fits, "its table of thresholds is out of order")


def _build_estimator(given: dict[str, Any], training: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    check_fields(given, _ESTIMATOR)
    kind = _estimator_class(given["class"])
    if kind is None:
        raise broken(f"unknown estimator {given['class']!r}")
    estimator = kind()
    params = {key: _as_param(key, value) for key, value in given["params"].items()}
    known = estimator.get_params()
    _require(set(params) <= set(known) | _RETIRED, f"a {given['class']} has no such parameters")
    estimator.set_params(**{key: value for key, value in params.items() if key in known})
    estimator.n_features_in_ = len(arrays["coef"])
    _require(
        isinstance(estimator, ForestRanker) == (_TREES[0] in arrays)
        and isinstance(estimator, AdditiveFit) == (not arrays.keys().isdisjoint(_SHAPES)),
        "its estimator does not fit its arrays",
    )
    _require(getattr(estimator, "alpha", None) != "auto", "its alpha is not a number")
    try:
        estimator._validate_params()
    except ValueError as error:
        raise broken(str(error)) from None
    if is_classifier(estimator):
        estimator.classes_ = np.array([0, 1])
    if isinstance(estimator, ForestRanker):
        estimator.forest_ = _build_forest(arrays)
        if isinstance(estimator, LetorRanker):
            estimator.coef_, estimator.mean_ = arrays["coef"], arrays["mean"]
        return estimator
    estimator.intercept_ = arrays["intercept"] if is_classifier(estimator) else float(arrays["intercept"][0])
    if isinstance(estimator, AdditiveFit):
        estimator.shapes_, estimator.pairs_ = _build_shapes(arrays)
    else:
        estimator.coef_ = arrays["coef"][None, :] if is_classifier(estimator) else arrays["coef"]
    _set_link(estimator, arrays["knots"], arrays["values"])
    for name in CERTIFICATE:
        value = training.get(name.rstrip("_"))
        setattr(estimator, name, math.nan if value is None else value)
    return estimator


def _build_forest(arrays: dict[str, np.ndarray]) -> Forest:
    """Trees of a file."""
    _require(set(_TREES) <= set(arrays) and len(arrays["tree_base"]) == 1, "its trees are not complete")
    given = [arrays[name] for name in _TREES[:-1]]
    whole = [name in ("feature", "left", "right", "roots") for name in Forest._fields[:-1]]
    typed = [array.astype(np.int64) if i else array for array, i in zip(given, whole, strict=True)]
    _require(all(map(np.array_equal, given, typed)), "a number of its trees is not whole")
    forest = Forest._make([*typed, float(arrays["tree_base"][0])])
    try:
        forest.check(len(arrays["coef"]))
    except InputError as error:
        raise broken(str(error)) from None
    return forest


def _build_shapes(arrays: dict[str, np.ndarray]) -> tuple[list[Shape], list[PairShape]]:
    """Functions of features and of pairs; checks that knots increase and every knot has a value."""
    _require(set(_SHAPES) <= set(arrays), "its shapes are not complete")
    sizes, knots, values, missing, counts, missing_counts, features, sides, pair_knots, grids = (
        arrays[name] for name in _SHAPES
    )
    n_features = len(arrays["coef"])
    whole = all((array == np.floor(array)).all() for array in (sizes, sides, features))
    sized = all(((array >= 1) & (array < _MOST_KNOTS)).all() for array in (sizes, sides))
    inside = ((features >= 0) & (features < n_features)).all() and len(features) == len(sides)
    _require(whole and sized and inside and len(features) % 2 == 0, "its shapes have no proper sizes")
    sizes, sides, features = (array.astype(np.int64) for array in (sizes, sides, features))
    between, cells = np.maximum(1, sizes - 1), sides[::2] * sides[1::2]
    pairs = [(int(j), int(k)) for j, k in features.reshape(-1, 2)]
    fit = (
        len(sizes) == len(missing) == len(missing_counts) == n_features
        and len(knots) == len(values) == sizes.sum()
        and len(counts) == between.sum()
        and len(pair_knots) == sides.sum()
        and len(grids) == cells.sum()
        and all(j != k for j, k in pairs)
    )
    _require(fit, "its shapes have arrays of different lengths")
    own, of_pairs = _parts(knots, sizes), _parts(pair_knots, sides)
    _require(
        all((part[1:] > part[:-1]).all() for part in own + of_pairs), "the knots of its shapes do not rise"
    )
    _require((counts >= 0).all() and (missing_counts >= 0).all(), "its shapes count less than no rows")
    columns = zip(own, _parts(values, sizes), missing, _parts(counts, between), missing_counts, strict=True)
    shapes = [Shape(j, k, v, float(m), c, float(n)) for j, (k, v, m, c, n) in enumerate(columns)]
    both = zip(of_pairs[::2], of_pairs[1::2], _parts(grids, cells), strict=True)
    return shapes, [
        PairShape(pair, (a, b), grid.reshape(len(a), len(b)))
        for pair, (a, b, grid) in zip(pairs, both, strict=True)
    ]


def _parts(array: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Split an array into parts of these sizes."""
    return np.split(array, np.cumsum(sizes)[:-1]) if len(sizes) else []


def _is_monotone(value: Any) -> bool:
    """Whether a value is a list of signs, or signs by column name."""
    named = type(value) is dict and all(type(key) is str for key in value)
    signs = value.values() if named else value if type(value) is list else [None]
    return all(type(sign) is int and abs(sign) <= 1 for sign in signs)


def _is_plain(value: Any) -> bool:
    """Whether a value is None, text, or a number that NumPy can hold exactly."""
    return type(value) in _PLAIN and (type(value) is not int or abs(value) <= 1 << 53)


def _as_param(key: str, value: Any) -> Any:
    if key in _PAIRS and type(value) is list:
        return tuple(_as_param("", part) for part in value)
    if key == "monotonic_cst" and value is not None:
        _require(_is_monotone(value), "its monotone columns have signs other than 1, -1 and 0")
        return value
    _require(_is_plain(value), "a value is neither text nor a number")
    return float(value) if value in ("inf", "-inf") else value


def _set_link(estimator: Any, knots: np.ndarray, values: np.ndarray) -> None:
    """Restore the link of a regression."""
    from apexrank.rankers import Link, UnknownLinkRegressor
    from apexrank.rankers.link import ConvexFunction

    has_link = isinstance(estimator, UnknownLinkRegressor)
    _require(has_link == bool(len(knots)), "its estimator does not fit its link")
    if has_link:
        free = estimator.link == "isotonic" or len(knots) == 1
        try:
            estimator.link_ = Link(knots, values, math.inf if free else 1 / estimator.strong_convexity)
            estimator.output_range_ = estimator._range()
            estimator.recovered_phi_ = ConvexFunction(estimator.link_)
        except (InputError, TypeError, ZeroDivisionError):
            raise broken("the parameters of its link are wrong") from None
