"""Checkpoints of long fits: the results of passes over the rows, kept on disk.

Solvers are deterministic: given the same values, gradients and Hessians they take the same steps, to the last bit. So a
checkpoint need not know any solver. It is a journal of what a problem answered, in order; a fit that starts again is
given these answers without a pass over the rows, and goes on where they end.

1. the line ``apexrank checkpoint 1``, whose number is the version of the format;
2. the line ``about HEX``, the SHA-256 of what the fit is about: its options and the version of the library;
3. records: length (4 bytes), key (16 bytes: what was asked), arrays (for each the number of its dimensions in one byte,
   their lengths in 8 bytes each, numbers of 8 bytes), CRC-32 (4 bytes). Everything is little-endian.

A record that was cut short by a crash is left out. The first record of each fit and the last of all are computed again
and must be the same to the last bit, which is how rows that have changed are recognised.
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
    """Journal of a problem's results on disk: recorded ones are returned, new ones are appended.

    ``resumed`` is the number of answers that were there, ``refusal`` the error where the fit turned out to be another.
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
        """Return the result of ``compute`` at ``point`` for the problem ``owner``, from the file if it is there."""
        if os.getpid() != self._process:  # a worker that was forked from here
            return compute()
        if self.refusal is not None:  # somebody caught it and went on to the next fit
            raise self.refusal
        key = hashlib.blake2b(
            name.encode() + np.ascontiguousarray(point).tobytes(), digest_size=_KEY
        ).digest()
        if self._given == self.resumed:
            answer = compute()
            self._add(key + _pack(answer))
            return answer
        record = _next_record(self._file) or b""  # new ones are added after the last
        self._given += 1
        to_check = self._given == self.resumed or self._checked() is not owner
        self._checked = weakref.ref(owner)
        if record[:_KEY] != key or (to_check and record[_KEY:] != _pack(compute())):
            self.refusal = self._error(
                "is of another fit, or its rows have changed, or this computer adds up in another order: "
                "delete it to start anew, or give another name"
            )
            raise self.refusal
        return self._unpacked(record[_KEY:])

    def close(self, *, done: bool) -> None:
        """Remove the file if the fits are ``done`` or have found nothing yet, else keep all that was found."""
        if os.getpid() != self._process:
            return
        done = done and self.refusal is None
        if not done:
            self._flush()
        empty = not self.resumed and self._file.tell() <= len(self._header)
        if done or empty:
            self.path.unlink(missing_ok=True)  # while it is locked
        with suppress(OSError):  # what a full disk did not take
            self._file.close()

    def _open(self) -> BinaryIO:
        """The file, ours alone and still under its name."""
        while True:
            try:
                file = open(self.path, "r+b" if self.path.exists() else "x+b")  # noqa: SIM115
            except FileExistsError:
                continue  # made by somebody else meanwhile
            except OSError as error:
                raise self._unwritable(error) from None
            if not _locked(file):
                file.close()
                raise self._error("is in use by another fit: wait for it, or give another name")
            if self.path.exists() and os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                return file
            file.close()

    def _find_records(self) -> int:
        """Count the records that are whole, cut off what comes after them, and go back to the first."""
        file, start = self._file, self._file.read(len(self._header))
        # as a crash may have left it; less than the name may be the start of anything
        cut = (
            len(start) < len(self._header)
            and start.startswith(_NAME)
            and _MAGIC.startswith(start[: len(_MAGIC)])
        )
        if start and not cut and not start.startswith(_MAGIC):
            raise self._error("is not a checkpoint of apexrank: give another name")
        if start and not cut and start != self._header:
            raise self._error(
                "is of a fit with other options, or of another version: delete it, or give another name"
            )
        found, end = 0, len(self._header)
        while start == self._header and _next_record(file) is not None:
            found, end = found + 1, file.tell()
        try:
            if start != self._header:  # a new file, or one whose header was cut short
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
            raise self._error("is damaged: delete it to start anew") from None

    def _add(self, record: bytes) -> None:
        self._waiting += _LENGTH.pack(len(record)) + record + _LENGTH.pack(zlib.crc32(record))
        if time.monotonic() - self._flushed >= self.every:
            self._flush()

    def _flush(self) -> None:
        """Write what waits. A disk that is full must not end the fit."""
        # taken away first: a signal in the middle of the write must not let it be written twice
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
            warnings.warn(f"checkpoint {str(self.path)!r} is kept no longer: {error.strerror}", stacklevel=2)

    def _unwritable(self, error: OSError) -> InputError:
        return self._error(f"cannot be written: {write_failure(error, 'choose another place')}")

    def _error(self, reason: str) -> InputError:
        return InputError(f"checkpoint {str(self.path)!r} {reason}")


@contextmanager
def checkpoint(path: str | Path, about: str = "", every: float = 1.0) -> Iterator[Journal]:
    """Let the fits of a block survive an interruption: run again, it resumes and gives bit-identical models.

    What values, gradients and Hessians the solver was given is kept in a file, which is removed when the block ends
    well. The same fits must be run in the same order on the same rows; a file of others is refused. It grows by 8 bytes
    per feature for each value and gradient, and per pair of features for each Hessian. Kept are fits of rankers with
    ``coef_``; not boosting, nor fits in other threads and processes (``n_jobs``).

    Parameters
    ----------
    path : str or Path
        The file. Where it exists, the fits go on from it.
    about : str
        What the fits are about, such as options; a file of another text is refused.
    every : float
        Seconds between writes: as much work may be lost.

    Yields
    ------
    Journal
        ``resumed`` says how many answers were there.

    Raises
    ------
    InputError
        When the file cannot be written, is in use, no checkpoint, or one of other fits.

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
    if journal.refusal is not None:  # caught by somebody who went on without the fit
        raise journal.refusal


def recall(owner: Any, name: str, point: np.ndarray, compute: Callable[[], Answer]) -> Answer:
    """Result of ``compute``, from the checkpoint if there is one.

    ``owner`` is the problem that is asked, ``name`` and ``point`` say what.
    """
    journal = _CURRENT.get()
    return compute() if journal is None else journal.recall(owner, name, point, compute)


def remembered(method: Method) -> Method:
    """Make a method of a problem, an array or a value and a gradient at ``w``, one whose answers are kept."""

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
    """The record at the file's position, or None where there is none that is whole."""
    length = file.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        return None
    size = _LENGTH.unpack(length)[0]
    if size < _KEY or file.tell() + size + _LENGTH.size > os.fstat(file.fileno()).st_size:
        return None
    record, check = file.read(size), file.read(_LENGTH.size)
    return record if check == _LENGTH.pack(zlib.crc32(record)) else None


def _locked(file: BinaryIO) -> bool:
    """Whether the file is ours alone; where there are no locks it is taken to be."""
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
    return True
