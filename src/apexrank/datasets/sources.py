"""Files of data sets below the folder named by ``APEXRANK_DATA``, and the output formats of loaders."""

from __future__ import annotations

import os
from inspect import cleandoc
from pathlib import Path

from sklearn.utils import Bunch

from apexrank.errors import InputError, MissingExtraError

DATA_VARIABLE = "APEXRANK_DATA"


def data_path(*parts: str) -> Path | None:
    """Path of a file or folder below ``$APEXRANK_DATA``; ``None`` if it does not exist."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise InputError(f"{DATA_VARIABLE} points to {folder}, which is not a folder: correct or unset it")
    path = Path(folder).joinpath(*parts)
    return path if path.exists() else None


def finish(bunch: Bunch, description: str | None, *, return_X_y: bool, as_frame: bool) -> Bunch:
    """Add the description to a bunch and convert it to the requested format."""
    bunch.DESCR = cleandoc(description or "")
    if as_frame:
        _to_pandas(bunch)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _to_pandas(bunch: Bunch) -> None:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise MissingExtraError("`as_frame=True` needs pandas: pip install pandas") from None
    bunch.data = pd.DataFrame(bunch.data, columns=bunch.feature_names)
    bunch.target = pd.Series(bunch.target, name="target")
    bunch.frame = bunch.data.assign(target=bunch.target)
