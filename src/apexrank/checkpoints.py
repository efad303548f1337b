"""Checkpoints of long fits: an on-disk journal of the values, gradients and Hessians computed so far.

Solvers are deterministic: given the same values, gradients and Hessians, they take bit-identical steps. So a checkpoint
is independent of the solver. It is a journal of the problem's results, in order; a restarted fit replays them without
passes over the rows and then continues. The file contains

1. the line ``apexrank checkpoint 1``, where the number is the version of the format;
2. the line ``about HEX``, the SHA-256 of the options of the fit and the version of the library;
3. records: length (4 bytes), key (16 bytes, a hash of the request), arrays (for each: the number of dimensions in one
   byte, their lengths in 8 bytes each, 8-byte floats), CRC-32 (4 bytes). Everything is little-endian.

A record truncated by a crash is ignored. The first record of each fit and the last record of the file are recomputed
and must be bit-identical, which detects changed rows.
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import numpy as np

from apexrank import __version__
from apexrank.atomic import write_failure
from apexrank.errors import InputError

__all__ = ["Journal", "checkpoint", "recall", "remembered"]

_NAME = b"apexrank checkpoint"
_MAGIC = _NAME + b" 1\n"
_LENGTH, _DIMENSION, _KEY = struct.Struct("<I"), struct.Struct("<q"), 16
_CURRENT: ContextVar[Journal | None] = ContextVar("journal", default=None)

Answer = tuple[np.ndarray, ...]
Method = TypeVar("Method", bound=Callable[[Any, np.ndarray], Any])


class Journal:
    """On-disk journal of a problem's results: it returns recorded results and appends new ones.

    ``resumed`` is the number of results found in the file, ``refusal`` the error if the file belongs to another fit.
    """

    def __init__(self, path: str | Path, about: str = "", every: float = 1.0) -> None:
        self.path, self.every = Path(os.path.realpath(path)), every
        self._header = _MAGIC + b"about " + _digest_of(about) + b"\n"
        self._process = os.getpid()
        self.refusal: InputError | None = None
        self._file = self._open()
        try:
            self.resumed = self._find_records()
        except BaseException:
            self._file.close()
            raise
        self._given, self._waiting, self._flushed = 0, b"", time.monotonic()
        self._writes = True
        self._checked: Callable[[], Any] = lambda: None

    def recall(self, owner: Any, name: str, point: np.ndarray, compute: Callable[[], Answer]) -> Answer:
        """Return the result of ``compute`` at ``point`` for the problem ``owner``, from the file if recorded."""
        if os.getpid() != self._process:  # a forked worker
            return compute()
        if self.refusal is not None:  # the caller caught it and continued with the next fit
            raise self.refusal
        key = hashlib.blake2b(
            name.encode() + np.ascontiguousarray(point).tobytes(), digest_size=_KEY
        ).digest()
        if self._given == self.resumed:
            answer = compute()
            self._add(key + _pack(answer))
            return answer
        record = _next_record(self._file) or b""  # new records follow the last one
        self._given += 1
        to_check = self._given == self.resumed or self._checked() is not owner
        self._checked = weakref.ref(owner)
        if record[:_KEY] != key or (to_check and record[_KEY:] != _pack(compute())):
            self.refusal = self._error(
                "belongs to another fit, or its rows have changed, or this computer sums in another order: "
                "delete it to start over, or give another name"
            )
            raise self.refusal
        return self._unpacked(record[_KEY:])

    def close(self, *, done: bool) -> None:
        """Close the journal; remove its file if the fits are ``done`` or nothing has been recorded."""
        if os.getpid() != self._process:
            return
        done = done and self.refusal is None
        if not done:
            self._flush()
        empty = not self.resumed and self._file.tell() <= len(self._header)
        if done or empty:
            self.path.unlink(missing_ok=True)  # before the lock is released
        with suppress(OSError):  # closing fails if the disk is full
            self._file.close()

    def _open(self) -> BinaryIO:
        """Open and lock the file; retry if it was replaced in the meantime."""
        while True:
            try:
                file = open(self.path, "r+b" if self.path.exists() else "x+b")  # noqa: SIM115
            except FileExistsError:
                continue  # created by another process in the meantime
            except OSError as error:
                raise self._unwritable(error) from None
            if not _locked(file):
                file.close()
                raise self._error("is in use by another fit: wait for it, or give another name")
            if self.path.exists() and os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                return file
            file.close()

    def _find_records(self) -> int:
        """Count the complete records, truncate the file after them, and seek to the first."""
        file, start = self._file, self._file.read(len(self._header))
        # a crash may truncate the header; with less than the name, the file could have any format
        cut = (
            len(start) < len(self._header)
            and start.startswith(_NAME)
            and _MAGIC.startswith(start[: len(_MAGIC)])
        )
        if start and not cut and not start.startswith(_MAGIC):
            raise self._error("is not a checkpoint of apexrank: give another name")
        if start and not cut and start != self._header:
            raise self._error(
                "belongs to a fit with other options, or to another version: delete it, or give another name"
            )
        found, end = 0, len(self._header)
        while start == self._header and _next_record(file) is not None:
            found, end = found + 1, file.tell()
        try:
            if start != self._header:  # a new file, or one with a truncated header
                file.seek(0)
                file.write(self._header)
            file.truncate(end)
            file.seek(len(self._header))
            file.flush()
        except OSError as error:
            if not start:
                self.path.unlink(missing_ok=True)
            raise self._unwritable(error) from None
        return found

    def _unpacked(self, data: bytes) -> Answer:
        try:
            return _unpack(data)
        except (ValueError, IndexError, struct.error):
            raise self._error("is damaged: delete it to start over") from None

    def _add(self, record: bytes) -> None:
        self._waiting += _LENGTH.pack(len(record)) + record + _LENGTH.pack(zlib.crc32(record))
        if time.monotonic() - self._flushed >= self.every:
            self._flush()

    def _flush(self) -> None:
        """Write pending records. A full disk must not end the fit."""
        # clear the buffer first: a signal during the write must not cause a second write
        waiting, self._waiting = self._waiting, b""
        self._flushed = time.monotonic()
        if not (self._writes and waiting):
            return
        try:
            self._file.write(waiting)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self._writes = False
            warnings.warn(f"checkpoint {str(self.path)!r} is no longer kept: {error.strerror}", stacklevel=2)

    def _unwritable(self, error: OSError) -> InputError:
        return self._error(f"cannot be written: {write_failure(error, 'choose another place')}")

    def _error(self, reason: str) -> InputError:
        return InputError(f"checkpoint {str(self.path)!r} {reason}")


@contextmanager
def checkpoint(path: str | Path, about: str = "", every: float = 1.0) -> Iterator[Journal]:
    """Make the fits in a block resumable: after an interruption, a rerun continues and gives bit-identical models.

    The values, gradients and Hessians passed to the solver are stored in a file, which is removed when the block
    succeeds. A rerun must make the same fits in the same order on the same rows; a file of other fits raises an error.
    The file grows by 8 bytes per feature for each value and gradient, and by 8 bytes per pair of features for each
    Hessian. Only rankers with ``coef_`` are stored, not boosting and not fits in other threads or processes
    (``n_jobs``).

    Parameters
    ----------
    path : str or Path
        Checkpoint file. If it exists, the fits resume from it.
    about : str
        Description of the fits, such as their options; a file with another description raises an error.
    every : float
        Seconds between writes, the most work that an interruption can lose.

    Yields
    ------
    Journal
        ``resumed`` is the number of results found in the file.

    Raises
    ------
    InputError
        When the file cannot be written, is in use, is not a checkpoint, or belongs to other fits.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank import PNormPush
    >>> X, y = np.array([[0.0], [1.0], [2.0], [1.5]]), [0, 0, 1, 0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with checkpoint(f"{folder}/push.checkpoint") as journal:
    ...         ranker = PNormPush(alpha=0.1).fit(X, y)
    ...     journal.resumed, journal.path.exists()
    (0, False)
    """
    journal = Journal(path, f"{__version__} {about}", every)
    token, done = _CURRENT.set(journal), False
    try:
        yield journal
        done = True
    finally:
        _CURRENT.reset(token)
        journal.close(done=done)
    if journal.refusal is not None:  # caught by code that continued without the fit
        raise journal.refusal


def recall(owner: Any, name: str, point: np.ndarray, compute: Callable[[], Answer]) -> Answer:
    """Return the result of ``compute``, from the active checkpoint if recorded there.

    ``owner`` is the problem, ``name`` the quantity and ``point`` the argument at which it is computed.
    """
    journal = _CURRENT.get()
    return compute() if journal is None else journal.recall(owner, name, point, compute)


def remembered(method: Method) -> Method:
    """Decorate a problem's method of ``w`` so that its results are stored in the active checkpoint."""

    @wraps(method)
    def asked(self: Any, w: np.ndarray) -> Any:
        journal = _CURRENT.get()
        if journal is None:
            return method(self, w)

        def compute() -> Answer:
            answer = method(self, w)
            parts = answer if isinstance(answer, tuple) else (answer,)
            return tuple(np.asarray(part, order="C") for part in parts)

        parts = [
            float(part) if part.ndim == 0 else part
            for part in journal.recall(self, method.__name__, w, compute)
        ]
        return parts[0] if len(parts) == 1 else tuple(parts)

    return cast(Method, asked)


def _digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).hexdigest().encode()


def _pack(answer: Answer) -> bytes:
    packed = b""
    for part in answer:
        array = np.ascontiguousarray(part, "<f8").reshape(np.shape(part))
        packed += bytes([array.ndim]) + b"".join(map(_DIMENSION.pack, array.shape)) + array.tobytes()
    return packed


def _unpack(data: bytes) -> Answer:
    arrays, position = [], 0
    while position < len(data):
        ndim, position = data[position], position + 1
        shape = [_DIMENSION.unpack_from(data, position + 8 * axis)[0] for axis in range(ndim)]
        count, position = int(np.prod(shape, dtype=np.int64)), position + 8 * ndim
        arrays.append(np.frombuffer(data, "<f8", count, position).astype(np.float64).reshape(shape))
        position += 8 * count
    return tuple(arrays)


def _next_record(file: BinaryIO) -> bytes | None:
    """Return the record at the file's position, or None if there is no complete one."""
    length = file.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        return None
    size = _LENGTH.unpack(length)[0]
    if size < _KEY or file.tell() + size + _LENGTH.size > os.fstat(file.fileno()).st_size:
        return None
    record, check = file.read(size), file.read(_LENGTH.size)
    return record if check == _LENGTH.pack(zlib.crc32(record)) else None


def _locked(file: BinaryIO) -> bool:
    """Lock the file and return whether that succeeded; without support for locks, assume that it did."""
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
    return True
