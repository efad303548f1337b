"""Files of data sets below the folder named by ``APEXRANK_DATA``."""

from __future__ import annotations

import os
from pathlib import Path

from apexrank.errors import InputError

DATA_VARIABLE = "APEXRANK_DATA"


class MissingDataError(InputError):
    """Raised when an external data set is not on this machine."""


def data_path(*parts: str) -> Path | None:
    """Path of a file or folder below ``$APEXRANK_DATA``; ``None`` if it does not exist."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise InputError(f"{DATA_VARIABLE} points to {folder}, which is not a folder: correct or unset it")
    path = Path(folder).joinpath(*parts)
    return path if path.exists() else None
