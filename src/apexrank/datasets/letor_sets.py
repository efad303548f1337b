"""LETOR sets: the folds of a set from its files, and MQ2008-agg, the set for rank aggregation."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import issparse, vstack
from sklearn.utils import Bunch

from apexrank.datasets.letor import feature_names, read_letor
from apexrank.datasets.sources import DATA_VARIABLE, data_path
from apexrank.errors import InputError, MissingDataError

_N_PARTS = 5
_PART_PREFIXES = ("S", "A")
_FOLD_FILES = (
    ("train.txt", "trainingset.txt"),
    ("vali.txt", "validationset.txt"),
    ("test.txt", "testset.txt"),
)
N_RANKERS = 25
_PARTS = (1, 2, 3, 4, 5)


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


def load_mq2008_agg(part: int | None = None, *, path: str | Path | None = None) -> Bunch:
    """MQ2008-agg: 15,211 documents of 784 queries, ranked by 25 rankers.

    ``data[i, j]`` is the position of document i in the list that ranker j gave for its query, **1 for the best**, and
    NaN where the list lacks the document (``NULL`` in the files, 65 % of the entries). Positions are those of the
    rankers' own long lists (up to 530) and not only of the documents that are here; no two documents of a query share
    one. The labels decide what the numbers mean: of all pairs of documents of one query, of different relevance and
    ranked by the same ranker, the more relevant one has the **smaller** number in 62.6 % (22 of the 25 rankers, all but
    1, 7 and 17, have more than half); and the mean NDCG of the best ranker is 0.747 with small numbers first, 0.658
    with large ones first. Being in a list at all tells as much: the mean relevance is higher in the list than outside
    for every ranker but 13, 20, 24 and 25.

    The queries, documents, relevance (0, 1, 2) and five parts are those of MQ2008; 220 queries have no relevant
    document. Source: LETOR 4.0 (Qin and Liu, 2009). Nothing was cleaned.

    Parameters
    ----------
    part : {1, 2, 3, 4, 5}, optional
        One of the parts A1 to A5; default: all of them.
    path : str or Path, optional
        The folder with ``A1.txt`` to ``A5.txt`` (or ``.gz``); default: ``aggregation/MQ2008-agg`` below the folder that
        the environment variable ``APEXRANK_DATA`` names.

    Returns
    -------
    Bunch
        With ``data`` (positions), ``target`` (relevance), ``groups`` (query ids), ``docids``, ``part`` (1 to 5 for each
        row), ``feature_names``, ``source`` and ``DESCR``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.datasets import load_mq2008_agg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(1, 6):
    ...         ranks = " ".join(f"{j}:{j}" for j in range(2, 26))
    ...         _ = (Path(folder) / f"A{k}.txt").write_text(f"{k} qid:{k} 1:NULL {ranks} #docid = D{k}")
    ...     lists = load_mq2008_agg(path=folder)
    >>> lists.data.shape, lists.data[0, :3].tolist(), lists.target.tolist(), lists.docids[4]
    ((5, 25), [nan, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0, 5.0], 'D5')
    """
    if part is not None and part not in _PARTS:
        raise InputError(f"part must be 1, 2, 3, 4 or 5, or left out for all of them, got {part!r}")
    # fold k tests on part k + 4, counted round, so the five test sets are the five parts
    parts = {(k + 3) % 5 + 1: fold.test for k, fold in enumerate(mq2008_agg_folds(path), 1)}
    chosen = {k: parts[k] for k in _PARTS if part in (None, k)}
    return Bunch(
        **{
            key: np.concatenate([bunch[key] for bunch in chosen.values()])
            for key in ("data", "target", "groups", "docids")
        },
        part=np.concatenate([np.full(len(bunch.target), k) for k, bunch in chosen.items()]),
        feature_names=parts[1].feature_names,
        source=", ".join(bunch.source for bunch in chosen.values()),
        DESCR=cleandoc(load_mq2008_agg.__doc__ or ""),
    )


def mq2008_agg_folds(path: str | Path | None = None) -> Iterator[Fold]:
    """Give the five folds: number k trains on parts k to k + 2, validates on k + 3, tests on k + 4, counted round.

    Parameters
    ----------
    path : str or Path, optional
        As in :func:`load_mq2008_agg`, which says what the numbers are.

    Yields
    ------
    Fold
        ``(name, train, validation, test)``; each part is a bunch with ``data``, ``target``, ``groups`` and ``docids``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.datasets import mq2008_agg_folds
    >>> ranks = " ".join(f"{j}:{j}" for j in range(1, 26))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(1, 6):
    ...         _ = (Path(folder) / f"A{k}.txt").write_text(f"{k} qid:{k} {ranks} #docid = D{k}")
    ...     folds = list(mq2008_agg_folds(folder))
    >>> [(fold.train.docids.tolist(), fold.validation.docids[0], fold.test.docids[0]) for fold in folds][1]
    (['D2', 'D3', 'D4'], 'D5', 'D1')
    """
    folder = data_path("aggregation", "MQ2008-agg") if path is None else Path(path)
    if folder is None:
        raise MissingDataError(
            "MQ2008-agg is not there: put A1.txt to A5.txt (or .gz) into a folder aggregation/MQ2008-agg below "
            f"{DATA_VARIABLE}, or name their folder with path="
        )
    return map(_of_ranks, letor_folds(folder, n_features=N_RANKERS, null="nan"))


def _of_ranks(fold: Fold) -> Fold:
    for bunch in fold[1:]:
        _check_ranks(bunch)
        bunch.feature_names = [f"ranker_{j}" for j in range(1, N_RANKERS + 1)]
    return fold


def _check_ranks(bunch: Bunch) -> None:
    known = np.where(np.isnan(bunch.data), 1.0, bunch.data)
    bad = (known < 1) | (known % 1 != 0)
    if bad.any():
        row, ranker = np.argwhere(bad)[0]
        raise InputError(
            f"{bunch.source}: document {bunch.docids[row]} of query {bunch.groups[row]} has the rank "
            f"{bunch.data[row, ranker]:g} for ranker {ranker + 1}; write a whole number of at least 1, or NULL"
        )
