"""Atomic file writes.

A temporary file beside the target takes its place in one step, once its bytes are on the disk. So whatever stops the
writer (an error, a full disk, a signal, a kill, a power cut) leaves the old file or the complete new one. The new file
has the mode of the old one, but belongs to whoever writes it; a file that may not be written is not replaced either.

Only a kill leaves the temporary file, hidden and named ``.NAME.XXXXXXXX.tmp``. It disturbs nobody, and goes when the
same file is written a day later: before that it may belong to a writer that is at work.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from apexrank.errors import InputError

_STALE = 24 * 3600.0  # seconds
_CANNOT_FLUSH = (errno.EINVAL, errno.ENOTSUP)  # what some network file systems say to all flushing
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
        problem = write_failure(error) or str(error)
    if problem is not None:
        raise InputError(f"cannot write {str(path)!r}: {problem}")
    return path


def _mode(path: str | Path) -> int:
    """What a path is, or 0 where there is nothing."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def write_failure(error: Exception, advice: str | None = None) -> str | None:
    """Say why the system refused a write and what to do (``advice`` where nothing better is known).

    None where something else failed.
    """
    # polars gives the system's error number in its text alone
    found = re.search(r"\(os error (\d+)\)", str(error))
    number = int(found[1]) if found else getattr(error, "errno", None)
    if number is None:
        return str(error).lower() if isinstance(error, OSError) else None
    advice = _ADVICE.get(number, advice)
    return os.strerror(number).lower() + (f": {advice}" if advice else "")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that takes its place when the block ends well.

    A block that fails leaves the old file as it was and no temporary file behind.

    Raises
    ------
    InputError
        When ``path`` cannot be written, or the system stops its writing: a full disk, say.

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
    # A link must stay a link: its target is what gets replaced.
    target = Path(os.path.realpath(check_writable(path)))
    temporary = _temporary_name(target)
    try:
        if target.exists():  # nobody may read the new file who may not read the old one
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        _flush(temporary)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
        _flush_folder(target.parent)
    except Exception as error:
        reason = write_failure(error)
        if reason is None or not _is_of(error, temporary, target):
            raise
        raise InputError(f"cannot write {str(path)!r}: {reason}") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: str | Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a temporary folder beside ``path`` that takes its place when the block ends well.

    A folder that is there already is replaced if it is empty or ``is_ours`` says so. A block that fails leaves it as
    it was and no temporary folder behind.

    Raises
    ------
    InputError
        When ``path`` cannot be written, is a file or a folder of something else, or the system stops the writing.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        if any(target.iterdir()) and not is_ours(target):
            raise InputError(
                f"cannot write {str(path)!r}: it is a folder of other files; choose another name"
            )
    elif target.exists():
        raise InputError(f"cannot write {str(path)!r}: it is a file; choose another name")
    temporary, old = _temporary_name(target), _temporary_name(target)
    check_writable(temporary)
    try:
        temporary.mkdir()
        yield temporary
        for file in temporary.iterdir():
            _flush(file)
        if target.exists():
            target.rename(old)
        temporary.rename(target)
        _flush_folder(target.parent)
    except Exception as error:
        reason = write_failure(error)
        if reason is None or not _is_of(error, temporary, target):
            raise
        raise InputError(f"cannot write {str(path)!r}: {reason}") from error
    finally:
        if old.exists() and not target.exists():
            old.rename(target)
        for left in (temporary, old):
            shutil.rmtree(left, ignore_errors=True)


def _is_of(error: Exception, *paths: Path) -> bool:
    """Whether an error may be one of these files or of what is in these folders: it names one of them, or none."""
    name = getattr(error, "filename", None)
    return name is None or any(Path(os.fsdecode(name)).is_relative_to(path) for path in paths)


def _temporary_name(target: Path) -> Path:
    """A new name beside a file or folder; what killed writers of the same have left there is removed."""
    # Names may be as long as names can be, or not be text: not every writer takes those.
    stem = "." + re.sub(r"[^A-Za-z0-9._-]", "_", target.name)[:40]
    for left in target.parent.glob(f"{stem}.{'[0-9a-f]' * 8}.tmp"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    return target.with_name(f"{stem}.{secrets.token_hex(4)}.tmp")


def _flush(path: Path) -> None:
    """Wait until the bytes are on the disk: a power cut must not find the new name before them."""
    with path.open("r+b") as file:
        try:
            os.fsync(file.fileno())
        except OSError as error:
            if error.errno not in _CANNOT_FLUSH:
                raise


def _flush_folder(folder: Path) -> None:
    """Wait until the new name is on the disk, where the system can."""
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
            # neither time nor name goes into the file: same data, same bytes
            file = stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
        file.writelines(lines)
