"""Text files, plain or gzip: bounded unpacking, UTF-8 and errors that name the line.

Every reader of a text format (CSV, LETOR, TREC, PrefLib, host graphs) opens its file here, so that a damaged or hostile
file gives the same one-line :class:`~apexrank.errors.InputError` everywhere. :func:`numbered_lines` is for formats that
are read line by line, :func:`read_text` and :func:`read_bytes` for those that are read at once.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apexrank.errors import InputError
from apexrank.foreign import HEAD, seems

GZIP_MARK = b"\x1f\x8b"
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
_DAMAGE = "the gzip data end early or are damaged; copy the file again"
_STEP = 1 << 20
MOST_OF_A_PIPE = 1 << 32  # bytes

# How many times its size on disk a file may unpack to, and what it may always unpack to: a small file can hold
# gigabytes of equal values. Text of numbers shrinks to a tenth, and with a larger factor a file of 1 MB could take 1 GB
# of memory; flags in Parquet of which one in a hundred is set shrink to a 300th.
_LIMITS = {"gzip": (60, 1 << 26), "npz": (40, 1 << 28), "parquet": (500, 1 << 29)}


@dataclass(frozen=True)
class Stream:
    """Standard input or a pipe, which can be read only once: its bytes, or a file that has them.

    Stands in for a path in this module.
    """

    name: str
    content: bytes | Path = field(repr=False)

    def __str__(self) -> str:
        return self.name

    def open(self, mode: str = "rb") -> Any:
        """Open the bytes for reading, as often as needed."""
        if isinstance(self.content, Path):
            return self.content.open(mode)
        return io.BufferedReader(io.BytesIO(self.content))


File = str | Path | Stream


def unpacked_limit(path: File, kind: str) -> int:
    """Return how many bytes a file of a kind ("gzip", "npz" or "parquet") may unpack to."""
    times, always = _LIMITS[kind]
    content = path.content if isinstance(path, Stream) else Path(path)
    return max(always, times * (content.stat().st_size if isinstance(content, Path) else len(content)))


def _open(path: File) -> Any:
    if isinstance(path, Stream):
        return path.open()
    file = Path(path).open("rb")  # noqa: SIM115
    return file if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else bounded(file, str(path))


class _BoundedPipe(io.RawIOBase):
    """A pipe that refuses to give more than ``MOST_OF_A_PIPE`` bytes: its writer may never end."""

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name, self._total = file, name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        given = self._file.readinto(buffer) or 0
        self._total += given
        if self._total > MOST_OF_A_PIPE:
            raise InputError(
                f"{self._name} has given more than {MOST_OF_A_PIPE / 1e9:.1f} GB and does not end: save what is needed "
                "to a file"
            )
        return int(given)

    def close(self) -> None:
        if self._file is not sys.stdin.buffer:
            self._file.close()
        super().close()


def bounded(file: Any, name: str) -> io.BufferedReader:
    """Return a pipe or standard input for reading, as far as memory may hold it."""
    return io.BufferedReader(_BoundedPipe(file, name), _STEP)


class _BoundedGzip(gzip.GzipFile):
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


@contextmanager
def opened(
    path: File, *, streamed: bool = False, refused: Callable[[bytes], str | None] = seems
) -> Iterator[Any]:
    r"""Open a file for bytes, decompressed if it is a gzip file; a gzip bomb raises InputError.

    ``streamed`` text, which is never in memory as a whole, may have any length, but not its lines. Where ``refused``
    returns a sentence about the first bytes, by default that their format is foreign, that is an error.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.gz"
    ...     _ = path.write_bytes(gzip.compress(b"one\ntwo\n"))
    ...     with opened(path) as file:
    ...         file.readlines()
    [b'one\n', b'two\n']
    """
    with _open(path) as file:
        if file.peek(2)[:2] != GZIP_MARK:
            _refuse(path, refused(file.peek(HEAD)))
            yield file
            return
        packed = _BoundedGzip(filename=str(path), fileobj=file, mode="rb")
        packed.streamed, packed.most = streamed, unpacked_limit(path, "gzip")
        # a buffer of its own, because gzip's readline runs in Python
        with io.BufferedReader(packed, _STEP) as text:
            _refuse(path, refused(text.peek(HEAD)[:HEAD]))
            yield text


def _refuse(path: File, what: str | None) -> None:
    if what is not None:
        raise (NotUtf8Error if what.startswith("UTF") else InputError)(f"{path} seems to be {what}")


def any_content(head: bytes) -> None:
    """Refuse nothing; see `opened`."""


def is_gzip(path: File) -> bool:
    """Return whether a file is a gzip file, by its first bytes."""
    with _open(path) as file:
        return file.read(2) == GZIP_MARK


def unpacked(path: File, refused: Callable[[bytes], str | None] = seems) -> bytes:
    """Read all bytes of a file, decompressed if it is a gzip file; damage raises one of `DAMAGED`."""
    with opened(path, refused=refused) as file:
        return file.read()


def reason_of(error: OSError) -> str:
    """Return the reason of a system error in lower case."""
    return (error.strerror or str(error) or type(error).__name__).lower()


@contextmanager
def reading(path: File) -> Iterator[None]:
    """Turn errors of reading a file into `InputError`."""
    try:
        yield
    except IsADirectoryError:
        raise InputError(f"cannot read {str(path)!r}: it is a folder; give a file in it") from None
    except DAMAGED as error:
        raise InputError(f"cannot read {str(path)!r}: {str(error).lower()}; {_DAMAGE}") from None
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {reason_of(error)}") from None
    except ValueError as error:
        if "null byte" not in str(error):  # of the path; faults of the content have errors of their own
            raise
        raise InputError(f"cannot read {str(path)!r}: {error}") from None


def check_readable(path: Path) -> None:
    """Raise InputError unless ``path`` is a readable, regular file that is not empty."""
    with reading(path):
        if path.exists() and not path.is_dir() and not path.is_file():
            raise InputError(
                f"cannot read {str(path)!r}: a table is read twice; save the stream to a file first"
            )
        with path.open("rb") as file:
            empty = not file.read(1)
    if any("\ud800" <= letter <= "\udfff" for letter in str(path)):
        raise InputError(f"cannot read {str(path)!r}: its name is not UTF-8 text; rename it")
    if empty:
        raise InputError(f"{path} is empty: it needs a line of column names and at least one row")


def read_bytes(path: File) -> bytes:
    """Read the bytes of a UTF-8 text file, without its byte order mark."""
    with reading(path):
        content = unpacked(path)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(path, line_at(content, error.start)) from None
    if b"\0" in content:
        line = line_at(content, content.index(b"\0"))
        raise InputError(f"{path} line {line}: a zero byte, so this is no text file; save it as UTF-8 text")
    return content.removeprefix(codecs.BOM_UTF8)


def read_text(path: File) -> str:
    """Read a UTF-8 text file."""
    return read_bytes(path).decode("utf-8")


def line_at(content: bytes, position: int) -> int:
    """Return the number of the line, from 1, that holds a byte."""
    return content.count(b"\n", 0, position) + 1


class NotUtf8Error(InputError):
    """A text file is not UTF-8."""


def not_utf8(path: File, line: int) -> NotUtf8Error:
    """Make the error for a line that cannot be decoded."""
    return NotUtf8Error(f"{path} line {line}: this is not UTF-8 text; save the file as UTF-8")


def is_utf8(line: bytes) -> bool:
    """Return whether bytes are UTF-8 text."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def numbered_lines(
    path: File, *, whole: bool = True, refused: Callable[[bytes], str | None] = seems
) -> Iterator[tuple[int, bytes]]:
    r"""Iterate over line numbers, from 1, and lines of a file, without its byte order mark.

    ``whole`` says that all lines will be read and kept: a gzip file is then unpacked once before, so that a bomb is
    refused before its lines are taken apart one by one, which is ten times slower than unpacking them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.txt"
    ...     _ = path.write_bytes(b"one\ntwo")
    ...     list(numbered_lines(path))
    [(1, b'one\n'), (2, b'two')]
    """
    number = 0
    with reading(path):
        try:
            with opened(path, streamed=not whole, refused=refused) as file:
                if whole and isinstance(file.raw, gzip.GzipFile):
                    while file.read(_STEP):
                        pass
                    file.seek(0)
                for number, line in enumerate(file, 1):
                    yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        except DAMAGED:
            raise InputError(f"{path} line {number + 1}: {_DAMAGE}") from None


def numbered_blocks(path: File, *, whole: bool = True) -> Iterator[tuple[int, bytes]]:
    r"""Iterate over blocks of whole lines, about 1 MB each, with the number of their first line.

    ``whole`` says that all lines will be kept: a gzip file is then bounded as a whole, not line by line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.txt"
    ...     _ = path.write_bytes(b"one\ntwo")
    ...     list(numbered_blocks(path))
    [(1, b'one\ntwo')]
    """
    number = 1
    with reading(path):
        try:
            with opened(path, streamed=not whole) as file:
                while block := file.read(_STEP) + file.readline():
                    yield number, block.removeprefix(codecs.BOM_UTF8) if number == 1 else block
                    number += block.count(b"\n")
        except DAMAGED:
            raise InputError(f"{path} line {number}: {_DAMAGE}") from None


def single_blanks(content: bytes) -> bytes:
    r"""Normalise white space to one blank between fields and no blank lines, which polars reads as CSV.

    Examples
    --------
    >>> single_blanks(b" a\t b\r\n\n c  d\n")
    b'a b\nc d'
    """
    text = content.translate(bytes.maketrans(b"\t\v\f\r", b"    "))
    for several, one in ((b"  ", b" "), (b" \n", b"\n"), (b"\n ", b"\n"), (b"\n\n", b"\n")):
        while several in text:
            text = text.replace(several, one)
    return text.strip(b" \n")
