"""The model file: a fitted estimator, pipeline or :class:`~apexrank.io.table_ranker.TableRanker` as data, without code.

A zip archive, uncompressed and without dates, so that equal models give equal bytes. ``model.json`` holds ``format``,
``apexrank`` (the version of the library) and ``model``, and ``0.npy``, ``1.npy``, … the arrays that it refers to. JSON
has None, booleans, whole numbers, finite floats, text and lists; any other value is an object with one key:

==================  ==================================================================
``float``           ``"inf"``, ``"-inf"`` or ``"nan"``
``tuple``, ``dict``  the entries; those of a dict are pairs
``array``           number of the file; ``scalar``: the same of a NumPy scalar
``objects``         an array of objects: its entries
``csr``             kind, shape, data, indices and indptr of a sparse matrix
``tree``            number of features and nodes of a tree of scikit-learn, with all fields and values as numbers
``numpy``           name of a type or function of NumPy
a public name       fields of an object of that class: see :mod:`apexrank.io.fitted`
==================  ==================================================================

Reading never runs code, imports a module or calls a function that the file names: classes are those that
:data:`apexrank.io.fitted.CLASSES` lists. Sizes are checked before memory is allocated, parameters by their constraints,
and fitted attributes by their declared types and sizes.
"""

from __future__ import annotations

import io
import json
import math
import re
import sys
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from apexrank import __version__
from apexrank.errors import InputError
from apexrank.files import reading, replacing
from apexrank.io.fitted import check, class_of, fields_of, is_fitted, name_of, state_of
from apexrank.io.table_ranker import TableRanker

FORMAT = 6
MOST_TEXT = 1 << 28  # bytes of JSON, whose objects take about ten times as much memory
_TREE = "model.json"
_END = 22  # bytes of the record at the end of an archive without a comment
_OLD = b"apexrank model "  # start of the files of versions 0.1 and 0.2
_DTYPES = {np.dtype(kind).str for kind in "?bhilqBHILQefd"}
_TEXT = np.dtype("U").str[:2]  # of any width
_HEADER = re.compile(  # what np.save writes
    rb"\x93NUMPY\x01\0..{'descr': '([<|][a-zA-Z][0-9]{1,9})', "
    rb"'fortran_order': (True|False), 'shape': \(([0-9, ]{,99})\), } *\n",
    re.DOTALL,
)
_FUNCTIONS = ("float32", "float64", "int64", "sqrt", "square", "log1p", "exp", "cbrt")
_KINDS = ("float32", "float64", "int64", "object")
_NUMPY = {name: getattr(np, name) for name in _FUNCTIONS} | {
    f"dtype {name}": np.dtype(name) for name in _KINDS
}
_FLOATS = {name: float(name) for name in ("inf", "-inf", "nan")}
_CSR = {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}
# what a broken or hostile file can make the readers below raise
_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


class ModelFileError(InputError):
    """Error for a file that is not a model file, or not one this version can read."""


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to a file that :func:`load` reads, atomically.

    Parameters
    ----------
    model : estimator, Pipeline or TableRanker
        Any fitted estimator of apexrank, alone, in a scikit-learn ``Pipeline`` with ``StandardScaler``,
        ``MinMaxScaler``, ``MaxAbsScaler``, ``RobustScaler``, ``OneHotEncoder`` or ``SimpleImputer``, or in a
        :class:`~apexrank.io.TableRanker`. Its parameters are data: names, numbers, arrays, losses and other parts of
        apexrank, but no functions. The weak rankers of a :class:`~apexrank.PushBoost` are decision trees of
        scikit-learn or estimators of apexrank.
    path : str or Path
        File to write, usually with the ending ``.apex``.

    Raises
    ------
    InputError
        If the path cannot be written, or the model holds something that is not data or cannot be checked, such as a
        function or an estimator of another library.
    NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> import tempfile
    >>> import apexrank
    >>> from apexrank import datasets
    >>> X, y = datasets.make_push_example(500, return_X_y=True)
    >>> ranker = apexrank.PNormPush(p=4).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     apexrank.save(ranker, f"{folder}/model.apex")
    ...     again = apexrank.load(f"{folder}/model.apex")
    >>> bool((again.decision_function(X) == ranker.decision_function(X)).all())
    True
    """
    if not isinstance(model, BaseEstimator | TableRanker):
        raise InputError(
            f"a model file holds a fitted estimator or a TableRanker, not a {type(model).__name__}"
        )
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    arrays: list[np.ndarray] = []
    tree = {"format": FORMAT, "apexrank": __version__, "model": _encode(model, arrays)}
    files = {_TREE: json.dumps(tree, ensure_ascii=False, allow_nan=False).encode()}
    files |= {f"{i}.npy": _npy(array) for i, array in enumerate(arrays)}
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980, so that equal models give equal bytes
            entry.create_system = 3
            archive.writestr(entry, content)


def load(path: str | Path) -> Any:
    """Read and check a model file; its scores are bit-identical to those before saving.

    Raises
    ------
    ModelFileError
        If the file is not a model file, or is damaged, of another format, or contradicts itself.
    """
    with reading(path):
        if Path(path).exists() and not Path(path).is_dir() and not Path(path).is_file():
            raise ModelFileError(f"{str(path)!r} is a device or a pipe: give a model file")
        file = Path(path).open("rb")  # noqa: SIM115
    with file:
        try:
            return _read(file)
        except (zipfile.BadZipFile, OSError):  # zipfile seeks wherever a damaged directory points
            reason = "is damaged or truncated: copy it again, or fit the model again"
        except ModelFileError as error:
            reason = str(error)
        except _ERRORS as error:
            reason = f"is not a valid model file: {error or type(error).__name__}"
    raise ModelFileError(f"{str(path)!r} {reason}")


def _read(file: BinaryIO) -> Any:
    head = file.read(len(_OLD))
    if head == _OLD:
        raise ModelFileError("was written by an older apexrank: fit the model again")
    if head[:4] != b"PK\3\4":
        raise ModelFileError("is not an apexrank model file: make one with 'apexrank fit' or apexrank.save")
    size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        if not stored or sum(entry.file_size for entry in entries) > size:
            raise ValueError("its entries are compressed, or larger than the file")
        if archive.getinfo(_TREE).file_size > MOST_TEXT:
            raise ValueError(f"{_TREE} has more than {MOST_TEXT >> 20} MB")
        tree = json.loads(archive.read(_TREE), parse_constant=_FLOATS.__getitem__)
        json.dumps(tree, ensure_ascii=False).encode()  # half a surrogate pair is no character
        if tree["format"] != FORMAT:
            raise ModelFileError(
                f"has format {tree['format']!r}, but this apexrank reads format {FORMAT}: upgrade it, or fit again"
            )
        files = {entry.filename for entry in entries} - {_TREE}
        file.seek(-_END, io.SEEK_END)
        if file.read(4) != b"PK\5\6":
            raise ValueError("it has bytes after its end")
        model = _decode(tree["model"], archive, files)
    if files or len(entries) != len({entry.filename for entry in entries}):
        raise ValueError("it has entries that belong to nothing")
    if not (isinstance(model, BaseEstimator | TableRanker) and is_fitted(model)):
        raise ValueError("it holds no fitted model")
    return model


def _encode(value: Any, arrays: list[np.ndarray], where: str = "the model") -> Any:
    """JSON of a value; arrays are appended to ``arrays``."""
    kind: Any = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is float:
        return {"float": str(value)}
    if kind is list:
        return [_encode(one, arrays, where) for one in value]
    if kind in (tuple, dict):
        entries = value if kind is tuple else map(list, value.items())
        return {kind.__name__: [_encode(one, arrays, where) for one in entries]}
    if isinstance(value, np.generic):
        return {"scalar": _encode(np.asarray(value), arrays, where)["array"]}
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        if all(one is None or type(one) in (bool, int, float, str) for one in value):
            return {"objects": [_encode(one, arrays) for one in value.tolist()]}
    elif isinstance(value, np.ndarray) and (value.dtype.str in _DTYPES or value.dtype.str[:2] == _TEXT):
        arrays.append(np.asarray(value))
        return {"array": len(arrays) - 1}
    if kind.__name__ in _CSR:
        parts = value.shape, value.data, value.indices, value.indptr
        return {"csr": [kind.__name__, *(_encode(part, arrays, where) for part in parts)]}
    if kind.__name__ == "Tree" and kind.__module__ == "sklearn.tree._tree":
        from apexrank.rankers.forest import table_of

        return {"tree": [value.n_features, _encode(table_of(value), arrays, where)]}
    for name, known in _NUMPY.items():
        if value is known:
            return {"numpy": name}
    public = name_of(kind)
    if public is None:
        what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {kind.__name__}"
        help_ = "help(apexrank.save) lists what it can"
        if hasattr(value, "best_estimator_"):
            help_ = "save its `best_estimator_`"
        raise InputError(f"a model file cannot hold {what}, which is {where}: {help_}")
    fields = {name: getattr(value, name) for name in fields_of(kind)}
    fields |= state_of(value) if isinstance(value, BaseEstimator) else {}
    tree = {name: _encode(fields[name], arrays, f"`{name}` of a {kind.__name__}") for name in sorted(fields)}
    check(value)
    return {public: tree}


def _decode(tree: Any, archive: zipfile.ZipFile, files: set[str]) -> Any:
    """Value of JSON; removes the names of arrays from ``files``, so that none is read twice."""
    if isinstance(tree, list):
        return [_decode(one, archive, files) for one in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) != 1:
        raise ValueError(f"an object of {_TREE} has {len(tree)} keys instead of one")
    ((kind, content),) = tree.items()
    if kind == "float":
        return _FLOATS[content]
    if kind in ("array", "scalar"):
        files.remove(name := f"{content}.npy")
        array = _array(archive.read(name))
        return array if kind == "array" else array[()]
    if kind == "numpy":
        return _NUMPY[content]
    if kind in ("tuple", "dict", "objects", "csr", "tree"):
        entries = _decode(list(content), archive, files)
        if kind == "objects":
            array = np.empty(len(entries), dtype=object)
            array[:] = entries
            return array
        if kind == "tree":
            from apexrank.rankers.forest import tree_of

            return tree_of(*entries)
        if kind == "csr":
            name, shape, *parts = entries
            matrix = _CSR[name](tuple(parts), shape=shape)
            matrix.check_format(full_check=True)
            return matrix
        return tuple(entries) if kind == "tuple" else dict(entries)
    return _object(kind, {name: _decode(part, archive, files) for name, part in content.items()})


def _object(public: str, fields: dict[str, Any]) -> Any:
    """Object of a public name with these fields, checked."""
    kind = class_of(public)
    if kind is None:
        raise ValueError(f"unknown class {public!r}")
    if missing := [name for name in fields_of(kind) if name not in fields]:
        raise ValueError(f"a {kind.__name__} has no `{missing[0]}`")
    taken = {name: fields.pop(name) for name in fields_of(kind)}
    value = kind(**taken)
    for name, part in taken.items():  # the constructor may have converted it
        if isinstance(part, np.ndarray) and part.dtype != getattr(value, name).dtype:
            raise ValueError(f"`{name}` of a {kind.__name__} is an array of {part.dtype}")
    if issubclass(kind, BaseEstimator):
        vars(value).update(fields)
    elif fields:
        raise ValueError(f"a {kind.__name__} has no field `{min(fields)}`")
    check(value)
    return value


def _npy(array: np.ndarray) -> bytes:
    packed = io.BytesIO()
    np.lib.format.write_array(packed, array, (1, 0), allow_pickle=False)
    return packed.getvalue()


def _array(data: bytes) -> np.ndarray:
    """Array of the bytes of an ``.npy`` file; nothing is allocated beyond their number."""
    start = 10 + int.from_bytes(data[8:10], "little")
    header = _HEADER.fullmatch(data[:start])  # NumPy would evaluate it as an expression
    if header is None:
        raise ValueError("an array has not the header that NumPy writes")
    kind = header[1].decode()
    if kind not in _DTYPES and kind[:2] != _TEXT:
        raise ValueError(f"an array is of the unknown type {kind!r}")
    values = np.frombuffer(data, kind, offset=start)
    if kind[:2] == _TEXT:
        codes = values.view(np.uint32)
        if ((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise ValueError("an array of text holds numbers that are no characters")
    shape = [int(size) for size in header[3].replace(b",", b" ").split()]
    return values.reshape(shape, order="F" if header[2] == b"True" else "C").copy(order="K")
