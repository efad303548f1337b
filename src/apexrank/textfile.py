"""Reading of plain and gzip text files, with bounded decompression, UTF-8 checks and line numbers in errors.

Every reader of a text format (CSV, LETOR, TREC, PrefLib, host graphs) opens its file here, so that a damaged or
malicious file raises the same one-line :class:`~apexrank.errors.InputError` everywhere. Use :func:`numbered_lines` for
formats that are read line by line, and :func:`read_text` or :func:`read_bytes` for those that are read at once.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apexrank.errors import InputError

GZIP_MARK = b"\x1f\x8b"
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
_DAMAGE = "the gzip data end early or are damaged; copy the file again"
_STEP = 1 << 20
MOST_OF_A_PIPE = 1 << 32  # bytes
HEAD = 1 << 13  # bytes that show what a file is

# The first pattern that matches the start of a file tells what it is instead of a table as text, and what to do.
_NO_TABLES = (
    (rb"PAR1", "a Parquet file, not a text table: give it a name that ends in .parquet"),
    (
        rb"PK[\x03\x05]",
        "a zip archive or an Excel workbook, not a text table: unpack it, or export a table as CSV",
    ),
    (rb"\x1f\x8b|BZh\d1AY|\xfd7zXZ|\x28\xb5\x2f\xfd", "a compressed file, not a text table: unpack it"),
    (
        rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|(?:[\t\n\r -~]\0){8}|(?:\0[\t\n\r -~]){8}",
        "UTF-16 or UTF-32 text: save the file as UTF-8",
    ),
    (
        rb"(?i)\s*<(?:\?xml|!doctype|!--|(?:html|head|body|svg|graphml|gexf)\b)",
        "an HTML or XML file, not a text table: if it is an error page, download the file again",
    ),
    (
        rb"\s*(?:\{\s*[\"}]|\[\s*(?:[\[{\"]|-?\d[\d.eE+-]*\s*,))",
        "a JSON file, not a text table: write its records as CSV or Parquet",
    ),
    (rb"[^\0]*\0", "a binary file, not a text table: give the text that it was made from"),
)

# Limits on decompressed size: a multiple of the size on disk, and a number of bytes that is always allowed. A small
# file can hold gigabytes of equal values. Text of numbers compresses to about a tenth, and with a larger factor a file
# of 1 MB could need 1 GB of memory.
_LIMITS = {"gzip": (60, 1 << 26), "npz": (40, 1 << 28)}


@dataclass(frozen=True)
class Stream:
    """Buffered standard input or pipe: its bytes, or a temporary file with them.

    The functions of this module accept it in place of a path.
    """

    name: str
    content: bytes | Path = field(repr=False)

    def __str__(self) -> str:
        return self.name

    def open(self, mode: str = "rb") -> Any:
        """Open the bytes for reading; it can be called repeatedly."""
        if isinstance(self.content, Path):
            return self.content.open(mode)
        return io.BufferedReader(io.BytesIO(self.content))


File = str | Path | Stream


def unpacked_limit(path: File, kind: str) -> int:
    """Return the largest allowed decompressed size of a file of a kind ("gzip" or "npz"), in bytes."""
    times, always = _LIMITS[kind]
    content = path.content if isinstance(path, Stream) else Path(path)
    return max(always, times * (content.stat().st_size if isinstance(content, Path) else len(content)))


def _open(path: File) -> Any:
    if isinstance(path, Stream):
        return path.open()
    file = Path(path).open("rb")  # noqa: SIM115
    return file if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else bounded(file, str(path))


class _BoundedPipe(io.RawIOBase):
    """Pipe that raises InputError after ``MOST_OF_A_PIPE`` bytes, because its writer may never end."""

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name, self._total = file, name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        given = self._file.readinto(buffer) or 0
        self._total += given
        if self._total > MOST_OF_A_PIPE:
            raise InputError(
                f"{self._name} has more than {MOST_OF_A_PIPE / 1e9:.1f} GB: save the part that is needed to "
                "a file"
            )
        return int(given)

    def close(self) -> None:
        if self._file is not sys.stdin.buffer:
            self._file.close()
        super().close()


def bounded(file: Any, name: str) -> io.BufferedReader:
    """Wrap a pipe or standard input in a reader with a limit on the number of bytes."""
    return io.BufferedReader(_BoundedPipe(file, name), _STEP)


class _BoundedGzip(gzip.GzipFile):
    """Gzip file that raises InputError after ``most`` bytes, or after ``most`` bytes of a line if ``streamed``."""

    most = 0
    streamed = False
    start = 0  # position of the current line

    def read(self, size: int | None = -1) -> bytes:
        """Read at most ``size`` bytes; without a size, read all in steps, so that the limit applies early."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_STEP), b""))
        given = super().read(size)
        if self.streamed and b"\n" in given:
            self.start = self.tell() - len(given) + given.rindex(b"\n")
        if self.tell() - self.start > self.most:
            raise InputError(
                f"{self.name}: it unpacks to more than {self.most >> 20} MB{' in one line' if self.streamed else ''}, "
                "far more than its size suggests; if that is correct, unpack it first"
            )
        return given


@contextmanager
def opened(path: File, *, streamed: bool = False, checked: bool = True) -> Iterator[Any]:
    r"""Open a file for bytes, decompressed if it is a gzip file; a gzip bomb raises InputError.

    With ``streamed``, the text is never in memory as a whole, and only the length of its lines is limited. ``checked``
    applies `check_is_text`.

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
            if checked:
                check_is_text(path, file.peek(HEAD))
            yield file
            return
        packed = _BoundedGzip(filename=str(path), fileobj=file, mode="rb")
        packed.streamed, packed.most = streamed, unpacked_limit(path, "gzip")
        # BufferedReader is faster than gzip's own readline, which runs in Python
        with io.BufferedReader(packed, _STEP) as text:
            if checked:
                check_is_text(path, text.peek(HEAD))
            yield text


def check_is_text(path: File, head: bytes) -> None:
    """Raise InputError if the first bytes of a file are JSON, HTML, binary or otherwise no table as text."""
    what = next((what for mark, what in _NO_TABLES if re.match(mark, head[:HEAD])), None)
    if what is not None:
        raise (NotUtf8Error if what.startswith("UTF") else InputError)(f"{path} is {what}")


def is_gzip(path: File) -> bool:
    """Return whether a file is a gzip file, by its first bytes."""
    with _open(path) as file:
        return file.read(2) == GZIP_MARK


def unpacked(path: File, *, checked: bool = True) -> bytes:
    """Read all bytes of a file, decompressed if it is a gzip file; damage raises one of `DAMAGED`."""
    with opened(path, checked=checked) as file:
        return file.read()


def reason_of(error: OSError) -> str:
    """Return the message of a system error in lower case."""
    return (error.strerror or str(error) or type(error).__name__).lower()


@contextmanager
def reading(path: File) -> Iterator[None]:
    """Convert errors in reading a file to `InputError`."""
    try:
        yield
    except IsADirectoryError:
        raise InputError(f"cannot read {str(path)!r}: it is a folder; give a file in it") from None
    except DAMAGED as error:
        raise InputError(f"cannot read {str(path)!r}: {str(error).lower()}; {_DAMAGE}") from None
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {reason_of(error)}") from None
    except ValueError as error:
        if "null byte" not in str(
            error
        ):  # a null byte in the path; errors in the content have their own exceptions
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
        raise InputError(f"{path} line {line}: a zero byte: this is not a text file; save it as UTF-8 text")
    return content.removeprefix(codecs.BOM_UTF8)


def read_text(path: File) -> str:
    """Read a UTF-8 text file."""
    return read_bytes(path).decode("utf-8")


def line_at(content: bytes, position: int) -> int:
    """Return the line number, from 1, of a byte position."""
    return content.count(b"\n", 0, position) + 1


class NotUtf8Error(InputError):
    """Raised when a text file is not UTF-8."""


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


def numbered_lines(path: File, *, whole: bool = True, checked: bool = True) -> Iterator[tuple[int, bytes]]:
    r"""Iterate over line numbers, from 1, and lines of a file, without its byte order mark.

    Pass ``whole`` if all lines will be read and kept: a gzip file is then decompressed once in advance, so that a gzip
    bomb is detected before its lines are parsed one by one, which is ten times slower than decompression.

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
            with opened(path, streamed=not whole, checked=checked) as file:
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

    Pass ``whole`` if all lines will be kept: the size limit then applies to the whole gzip file, not to each line.

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
