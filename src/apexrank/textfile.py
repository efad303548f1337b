"""Gzip files, unpacked no further than text of their size can need: a small file may hold gigabytes of nothing."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

from apexrank.errors import InputError

GZIP_MARK = b"\x1f\x8b"
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
_MOST_TIMES = 60  # tables of numbers shrink to a tenth; with more a file of 1 MB could take 1 GB of memory
_ALWAYS = 1 << 26
_STEP = 1 << 20


class _Bounded(gzip.GzipFile):
    """A gzip file that refuses to give more bytes than ``most``, or more of one line where its text is ``streamed``."""

    most = 0
    streamed = False
    start = 0  # of the line

    def read(self, size: int | None = -1) -> bytes:
        """At most ``size`` bytes; all of them in steps, so that the bound is seen in time."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_STEP), b""))
        given = super().read(size)
        if self.streamed and b"\n" in given:
            self.start = self.tell() - len(given) + given.rindex(b"\n")
        if self.tell() - self.start > self.most:
            raise InputError(
                f"{self.name}: it unpacks to more than {self.most >> 20} MB{' in one line' if self.streamed else ''}, "
                "far more than its size lets expect; if that is as it should be, unpack it first"
            )
        return given


def unpacking(path: str | Path, packed: Any, *, streamed: bool = False) -> io.BufferedReader:
    r"""The text of a gzip file that is open as ``packed``; a bomb is an `InputError` that names ``path``.

    Text that is ``streamed``, and never in memory as a whole, may be of any length, but for its lines.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.gz"
    ...     _ = path.write_bytes(gzip.compress(b"one\ntwo\n"))
    ...     with path.open("rb") as packed, unpacking(path, packed) as file:
    ...         file.readlines()
    [b'one\n', b'two\n']
    """
    file = _Bounded(filename=str(path), fileobj=packed, mode="rb")
    file.streamed = streamed
    file.most = max(_ALWAYS, _MOST_TIMES * Path(path).stat().st_size)
    # a buffer of its own, because gzip's readline runs in Python
    return io.BufferedReader(file, _STEP)


def check_unpacked(path: str | Path, packed: Any) -> None:
    """Refuse a bomb before its lines are taken apart one by one, which is ten times slower than unpacking them."""
    with unpacking(path, packed) as file:
        while file.read(_STEP):
            pass
    packed.seek(0)


def unpacked(path: str | Path) -> bytes:
    """All bytes of a file, unpacked where it is a gzip file; damage is one of `DAMAGED`."""
    with Path(path).open("rb") as file:
        if file.peek(2)[:2] != GZIP_MARK:
            return file.read()
        with unpacking(path, file) as text:
            return text.read()
