"""The outer shell of a model file: a JSON header and arrays, with a version and a checksum.

1. the line ``apexrank model 2``, whose number is the version of the format;
2. the line ``sha256 HEX``, the checksum of every byte after this line;
3. the line ``header N``, then N bytes of JSON (UTF-8) and a newline;
4. the arrays that the header lists under ``arrays`` (name, dtype, shape), one after the other: raw,
   little-endian, one-dimensional.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from apexrank.errors import InputError

FORMAT = 2
OLDEST = 1  # that can still be read

_MAGIC = b"apexrank model "
_DTYPES = {"<f8": np.dtype("<f8"), "<i8": np.dtype("<i8")}
_ARRAY = {"name": (str,), "dtype": (str,), "shape": (list,)}


class ModelFileError(InputError):
    """A file is not a model file this version can read."""


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
