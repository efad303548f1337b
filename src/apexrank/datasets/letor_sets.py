"""The folds of a LETOR set, from its five parts or from one folder per fold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import issparse, vstack
from sklearn.utils import Bunch

from apexrank.datasets.letor import feature_names, read_letor
from apexrank.errors import InputError

_N_PARTS = 5
_PART_PREFIXES = ("S", "A")
_FOLD_FILES = (
    ("train.txt", "trainingset.txt"),
    ("vali.txt", "validationset.txt"),
    ("test.txt", "testset.txt"),
)


class Fold(NamedTuple):
    """One round of cross-validation; each part is a bunch as :func:`read_letor` gives it."""

    name: str
    train: Bunch
    validation: Bunch
    test: Bunch


def letor_folds(
    folder: str | Path,
    *,
    n_features: int | None = None,
    null: str | float = "raise",
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> Iterator[Fold]:
    """Give the folds of a LETOR set one after the other, all with the same number of features.

    The folder holds either the five parts ``S1.txt`` ... ``S5.txt`` (``A1.txt`` ... in the sets for rank aggregation),
    of which fold k trains on parts k, k + 1 and k + 2, validates on k + 3 and tests on k + 4, counted round; or the
    folds themselves, ``Fold1/train.txt``, ``Fold1/vali.txt``, ``Fold1/test.txt`` and so on (also ``trainingset.txt``,
    ``validationset.txt``, ``testset.txt``). Every file may end in ``.gz``. Parts are read once; of folds only one is
    held at a time, and the first one decides the number of features when ``n_features`` is not given.

    Parameters
    ----------
    folder : str or Path
        Where the files are.
    n_features, null, sparse, dtype
        As in :func:`read_letor`.

    Yields
    ------
    Fold
        ``(name, train, validation, test)``; the name is ``"Fold1"`` and so on.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.datasets import letor_folds, make_letor_example, write_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(1, 6):
    ...         part = make_letor_example(n_queries=4, random_state=k)
    ...         write_letor(Path(folder) / f"S{k}.txt", part.data, part.target, part.groups)
    ...     folds = list(letor_folds(folder))
    >>> [fold.name for fold in folds], folds[0].test.source.endswith("S5.txt")
    (['Fold1', 'Fold2', 'Fold3', 'Fold4', 'Fold5'], True)
    """
    folder = Path(folder)
    options = {"null": null, "sparse": sparse, "dtype": dtype}
    for prefix in _PART_PREFIXES:
        names = [f"{prefix}{k}.txt" for k in range(1, _N_PARTS + 1)]
        parts = [_existing(folder, name) for name in names]
        if all(parts):
            return _folds_of_parts([part for part in parts if part], n_features, options)
        if any(parts):
            missing = ", ".join(name for name, part in zip(names, parts, strict=True) if not part)
            raise InputError(
                f"{folder} lacks {missing} (or .gz): the folds need all of {names[0]} to {names[-1]}"
            )
    folds = sorted(path for path in folder.glob("Fold[0-9]*") if path.is_dir())
    if not folds:
        raise InputError(
            f"{folder} holds no LETOR folds: looked for S1.txt to S5.txt, A1.txt to A5.txt and Fold1/train.txt, "
            "Fold1/vali.txt, Fold1/test.txt, each also as .gz"
        )
    return _folds_of_folders([(fold.name, _files_of_fold(fold)) for fold in folds], n_features, options)


def _existing(folder: Path, *names: str) -> Path | None:
    paths = [folder / f"{name}{suffix}" for name in names for suffix in ("", ".gz")]
    return next((path for path in paths if path.is_file()), None)


def _files_of_fold(fold: Path) -> list[Path]:
    files = []
    for names in _FOLD_FILES:
        file = _existing(fold, *names)
        if file is None:
            raise InputError(f"{fold} is incomplete: looked for {' and '.join(names)}, each also as .gz")
        files.append(file)
    return files


def _read_alike(paths: list[Path], n_features: int | None, options: dict[str, Any]) -> list[Bunch]:
    """Read files and give all of them the columns of the widest."""
    parts = [read_letor(path, n_features=n_features, **options) for path in paths]
    width = max(part.data.shape[1] for part in parts)
    for part in parts:
        n, own = part.data.shape
        if issparse(part.data):
            part.data.resize(n, width)
        elif own < width:
            part.data = np.pad(part.data, ((0, 0), (0, width - own)))
        part.feature_names = feature_names(width)
    return parts


def _joined(parts: list[Bunch]) -> Bunch:
    tables = [part.data for part in parts]
    return Bunch(
        data=vstack(tables, format="csr") if issparse(tables[0]) else np.concatenate(tables),
        **{key: np.concatenate([part[key] for part in parts]) for key in ("target", "groups", "docids")},
        feature_names=parts[0].feature_names,
        source=", ".join(part.source for part in parts),
    )


def _folds_of_parts(paths: list[Path], n_features: int | None, options: dict[str, Any]) -> Iterator[Fold]:
    parts = _read_alike(paths, n_features, options)
    for k in range(_N_PARTS):
        a, b, c, validation, test = (parts[(k + i) % _N_PARTS] for i in range(_N_PARTS))
        yield Fold(f"Fold{k + 1}", _joined([a, b, c]), validation, test)


def _folds_of_folders(
    folds: list[tuple[str, list[Path]]], n_features: int | None, options: dict[str, Any]
) -> Iterator[Fold]:
    for name, paths in folds:
        train, validation, test = _read_alike(paths, n_features, options)
        n_features = train.data.shape[1]
        yield Fold(name, train, validation, test)
