"""Atomic file writes.

Data go to a temporary file beside the target, which is flushed to disk and then renamed over the target. If the writer
is stopped (by an error, a full disk, a signal or a power cut), either the old file or the complete new one remains. The
new file keeps the mode of the old one but is owned by the user who writes it; a read-only file is not replaced.

Only a killed process leaves its temporary file behind, hidden and named ``.NAME.XXXXXXXX.tmp``. It is removed when the
same target is written at least a day later; a younger one may belong to another writer.

A folder cannot be replaced by one rename: the old one is first renamed to ``.NAME.XXXXXXXX.old``. If the process is
killed before the new one has its name, the next that reads or writes the folder renames the old one back.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
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
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that replaces it when the block succeeds.

    If the block fails, the old file is unchanged and the temporary file is removed.

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
    # Keep symbolic links: replace the file that the link points to.
    target = Path(os.path.realpath(check_writable(path)))
    temporary = _temporary_name(target)
    try:
        if target.exists():  # the new file must not be readable by more users than the old one
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        _flush(temporary)
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
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: str | Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a temporary folder beside ``path`` that replaces it when the block succeeds.

    An existing folder is replaced only if it is empty or ``is_ours`` returns True for it. If the block fails, the
    existing folder is unchanged and the temporary folder is removed.

    Raises
    ------
    InputError
        When ``path`` cannot be written, is a file or an unrelated folder, or writing fails.
    """
    restore_folder(path)
    target = Path(os.path.realpath(path))
    if target.is_dir():
        if any(target.iterdir()) and not is_ours(target):
            raise InputError(
                f"cannot write {str(path)!r}: it is a folder with other files; choose another name"
            )
    elif target.exists():
        raise InputError(f"cannot write {str(path)!r}: it is a file; choose another name")
    temporary, old = _temporary_name(target), _old_name(target)
    check_writable(temporary)
    try:
        temporary.mkdir()
        yield temporary
        for file in temporary.iterdir():
            _flush(file)
        while True:
            if target.exists():
                _remove_folder(old)
                target.rename(old)
            try:
                temporary.rename(target)
                break
            except OSError as error:  # not empty: another process has just restored the old folder
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        _flush_folder(target.parent)
    except Exception as error:
        reason = _write_failure(error)
        if reason is None or not _is_of(error, temporary, target):
            raise
        raise InputError(f"cannot write {str(path)!r}: {reason}") from error
    finally:
        restore_folder(target)
        shutil.rmtree(temporary, ignore_errors=True)
        _remove_folder(old)


def restore_folder(path: str | Path) -> None:
    """Give a folder its name back if a process was killed while it replaced the folder."""
    with suppress(
        OSError, ValueError
    ):  # such as a pattern too long for a name, or a file system that is read-only
        target = Path(os.path.realpath(path))
        if not target.exists():
            _old_name(target).rename(target)


def _old_name(target: Path) -> Path:
    """Hidden name of a folder that is being replaced."""
    return target.with_name(f"{_stem(target)}.{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]}.old")


def _remove_folder(old: Path) -> None:
    """Remove a folder under another name, so that no part of it is ever restored."""
    with suppress(OSError):
        shutil.rmtree(old.rename(old.with_name(f"{Path(old.stem).stem}.{secrets.token_hex(4)}.tmp")))


def _is_of(error: Exception, *paths: Path) -> bool:
    """Return whether an error concerns one of these paths: it names one of them, a file below one, or no file."""
    name = getattr(error, "filename", None)
    return name is None or any(Path(os.fsdecode(name)).is_relative_to(path) for path in paths)


def _temporary_name(target: Path) -> Path:
    """Return a new temporary name beside a file or folder, after removing stale temporary files of killed writers."""
    stem = _stem(target)
    for left in target.parent.glob(f"{stem}.{'[0-9a-f]' * 8}.tmp"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    return target.with_name(f"{stem}.{secrets.token_hex(4)}.tmp")


def _stem(target: Path) -> str:
    """Short plain name: not every writer accepts very long names or names that are not text."""
    return "." + re.sub(r"[^A-Za-z0-9._-]", "_", target.name)[:40]


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
