"""Write a file whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apexrank.errors import InputError


def check_writable(path: str | Path) -> Path:
    """Say early, before any work, why ``path`` could not be written.

    Raises
    ------
    InputError
        When the folder is missing or not writable, or ``path`` is a folder or a device.
    """
    path = Path(path)
    folder = path.resolve().parent
    if not folder.is_dir():
        raise InputError(f"cannot write {str(path)!r}: there is no folder {str(folder)!r}; create it first")
    if path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: it is a folder; give a file name")
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {str(path)!r}: it is not a regular file")
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {str(path)!r}: no permission to write in {str(folder)!r}")
    return path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that takes its place when the block ends well.

    A block that fails leaves the old file as it was and no temporary file behind.

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
    target = check_writable(path).resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path``, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
