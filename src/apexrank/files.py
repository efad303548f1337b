"""Files: reading of plain and gzip text, and atomic replacement of a file or a folder.

Every reader of a text format opens its file by `opened`, so that a damaged or malicious file raises the same one-line
:class:`~apexrank.errors.InputError` everywhere.

Output goes to a temporary file or folder beside the target, is flushed to disk and then takes the name of the target:
a file by a rename, a folder by an exchange of the two names in one step (on Linux and macOS; file systems without such
an exchange need two renames). If the writer is stopped (by an error, a full disk, a signal or a power cut), either the
old target or the complete new one remains. A new file keeps the mode of the old one but is owned by the user who writes
it; a read-only file is not replaced. Only a killed process leaves its temporary file behind, hidden and named
``.NAME.XXXXXXXX.tmp``. It is removed when the same target is written at least a day later; a younger one may belong to
another writer.
"""

from __future__ import annotations

import codecs
import ctypes
import errno
import gzip
import io
import os
import re
import secrets
import shutil
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
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
_STALE = 24 * 3600.0  # seconds
_CANNOT_FLUSH = (errno.EINVAL, errno.ENOTSUP)  # returned by network file systems that do not support fsync
_ADVICE = {
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some space or choose another folder",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "choose another folder",
    errno.EACCES: "choose another folder",
    errno.EPERM: "choose another folder",
    errno.ENAMETOOLONG: "choose a shorter one",
    errno.ELOOP: "remove the link or choose another name",
}


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


def check_writable(path: str | Path) -> Path:
    """Raise InputError, before any work is done, if ``path`` cannot be written.

    Raises
    ------
    InputError
        When the folder is missing or not writable, or ``path`` is a folder, a device or a read-only file.
    """
    path = Path(path)
    try:
        folder, mode = os.path.dirname(os.path.realpath(path)), _mode(path)
        problems = {
            f"there is no folder {folder!r}; create it first": not stat.S_ISDIR(_mode(folder)),
            "it is a folder; give a file name": stat.S_ISDIR(mode),
            "it is not a regular file": mode and not stat.S_ISREG(mode),
            f"no permission to write in {folder!r}": not os.access(folder, os.W_OK | os.X_OK),
            "it is read-only; make it writable or choose another name": mode and not os.access(path, os.W_OK),
        }
        problem = next((problem for problem, is_there in problems.items() if is_there), None)
    except (OSError, ValueError) as error:  # a name with a NUL in it is a ValueError
        problem = _write_failure(error) or str(error)
    if problem is not None:
        raise InputError(f"cannot write {str(path)!r}: {problem}")
    return path


def _mode(path: str | Path) -> int:
    """Return the file mode of a path, or 0 if it does not exist."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _write_failure(error: Exception) -> str | None:
    """Describe a failed write and how to fix it; None if ``error`` is not a system error."""
    # polars reports the system's error number only in its message
    found = re.search(r"\(os error (\d+)\)", str(error))
    number = int(found[1]) if found else getattr(error, "errno", None)
    if number is None:
        return str(error).lower() if isinstance(error, OSError) else None
    advice = _ADVICE.get(number)
    return os.strerror(number).lower() + (f": {advice}" if advice else "")


@contextmanager
def replacing(path: str | Path, is_ours: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that replaces it when the block succeeds.

    With ``is_ours`` it is a folder, which replaces an existing one only if that is empty or ``is_ours`` returns True
    for it. If the block fails, the old file or folder is unchanged and the temporary one is removed.

    Raises
    ------
    InputError
        When ``path`` cannot be written, or writing fails, for example on a full disk.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "note.txt"
    ...     with replacing(target) as temporary:
    ...         _ = temporary.write_text("whole")
    ...     target.read_text(), len(list(Path(folder).iterdir()))
    ('whole', 1)
    """
    # Keep symbolic links: replace the target of the link.
    target = Path(os.path.realpath(path if is_ours else check_writable(path)))
    is_old = target.is_dir() if is_ours else target.exists()
    if is_ours and is_old and any(target.iterdir()) and not is_ours(target):
        raise InputError(f"cannot write {str(path)!r}: it is a folder with other files; choose another name")
    if is_ours and not is_old and target.exists():
        raise InputError(f"cannot write {str(path)!r}: it is a file; choose another name")
    temporary = _temporary_name(target)
    try:
        if is_ours:
            check_writable(temporary).mkdir()
        elif is_old:  # the new file must not be readable by more users than the old one
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        for file in temporary.iterdir() if is_ours else [temporary]:
            _flush(file)
        if is_ours:
            _rename_folder(temporary, target)
        else:
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        _flush_folder(target.parent)
    except Exception as error:
        reason = _write_failure(error)
        if reason is None or not _is_of(error, temporary, target):
            raise
        raise InputError(f"cannot write {str(path)!r}: {reason}") from error
    finally:
        _remove(temporary)


def _rename_folder(new: Path, target: Path) -> None:
    """Give a folder the name of another, which may exist and then gets the name of the new one."""
    try:
        new.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        names, system = (os.fsencode(new), os.fsencode(target)), ctypes.CDLL(None)
        if hasattr(system, "renameat2"):  # Linux; the numbers are AT_FDCWD and RENAME_EXCHANGE
            failed = system.renameat2(-100, names[0], -100, names[1], 2)
        else:  # macOS; the number is RENAME_SWAP
            failed = system.renamex_np(*names, 2) if hasattr(system, "renamex_np") else -1
        if failed:  # such as on NFS
            old = _temporary_name(target)
            target.rename(old)
            new.rename(target)
            _remove(old)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _is_of(error: Exception, *paths: Path) -> bool:
    """Return whether an error concerns one of these paths: it names one of them, a file below one, or no file."""
    name = getattr(error, "filename", None)
    return name is None or any(Path(os.fsdecode(name)).is_relative_to(path) for path in paths)


def _temporary_name(target: Path) -> Path:
    """Return a new temporary name beside a file or folder, after removing stale temporary files of killed writers."""
    # short and plain, because not every writer accepts very long names or names that are not text
    stem = "." + re.sub(r"[^A-Za-z0-9._-]", "_", target.name)[:40]
    with suppress(OSError, ValueError):
        for left in target.parent.glob(f"{stem}.{'[0-9a-f]' * 8}.tmp"):
            if time.time() - left.stat().st_mtime > _STALE:
                _remove(left)
    return target.with_name(f"{stem}.{secrets.token_hex(4)}.tmp")


def _flush(path: Path) -> None:
    """Flush a file to disk, so that a power cut after the rename cannot leave an incomplete file."""
    with path.open("r+b") as file:
        try:
            os.fsync(file.fileno())
        except OSError as error:
            if error.errno not in _CANNOT_FLUSH:
                raise


def _flush_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, if the system supports it."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path`` atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_lines(path: str | Path, lines: Iterable[bytes]) -> None:
    """Write a text file atomically, gzip-compressed if its name ends in ``.gz``."""
    with replacing(path) as temporary, ExitStack() as stack:
        file: Any = stack.enter_context(temporary.open("wb"))
        if Path(path).suffix.lower() == ".gz":
            # no time stamp and no name in the header, so that equal data give equal bytes
            file = stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
        file.writelines(lines)
