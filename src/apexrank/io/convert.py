"""Conversion of tables between LETOR text, CSV and Parquet."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from apexrank.errors import InputError
from apexrank.io.tables import LETOR_ROLES, Table, is_letor, read_table, write_table


def convert_table(source: str | Path | Table, target: str | Path) -> Table:
    r"""Read a table, write it in the format given by the suffix of ``target``, and return it.

    A LETOR file becomes the columns ``relevance``, ``qid``, ``docid``, ``feature_1`` …, and a table with ``relevance``
    and ``qid`` (and optionally ``docid``) becomes a LETOR file, whose features are all other columns in order. Numbers
    are preserved exactly; ``NULL`` stands for a missing value.

    Parameters
    ----------
    source : str, Path or Table
        A table, or a file: CSV (also ``.tsv``, ``.gz``), Parquet or LETOR (``.txt``, ``.svm``, ``.letor``, also
        ``.gz``).
    target : str or Path
        File to write: ``.csv``, ``.csv.gz``, ``.parquet`` or LETOR.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.io import convert_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder)
    ...     _ = (path / "train.txt").write_text("2 qid:7 1:0.5 2:3.0 #docid = D1\n")
    ...     columns = convert_table(path / "train.txt", path / "train.parquet").frame.columns
    ...     _ = convert_table(path / "train.parquet", path / "back.txt")
    ...     print(columns, (path / "back.txt").read_text(), end="")
    ['relevance', 'qid', 'docid', 'feature_1', 'feature_2'] 2 qid:7 1:0.5 2:3.0 #docid = D1
    """
    table = source if isinstance(source, Table) else read_table(source)
    if is_letor(Path(target)):
        _write_letor(table, target)
    else:
        write_table(table.frame.fill_nan(None), target)
    return table


def _write_letor(table: Table, path: str | Path) -> None:
    from apexrank.datasets.letor import write_letor  # lazy, because it imports scikit-learn

    frame, roles = table.frame, LETOR_ROLES
    for name in (roles["target"], roles["groups"]):
        if name not in frame.columns:
            raise InputError(
                f"{table.source} has no column {name!r}, which a LETOR file needs: rename a column"
            )
    features = frame.drop(*roles.values(), strict=False)
    for name in features.columns:
        try:
            features = features.with_columns(pl.col(name).cast(pl.Float64))
        except pl.exceptions.PolarsError:
            raise InputError(
                f"column {name!r} of {table.source} does not hold numbers: drop it, as LETOR files hold only numbers"
            ) from None
    docids = frame[roles["id"]].to_numpy() if roles["id"] in frame.columns else None
    write_letor(
        path,
        features.to_numpy(),
        frame[roles["target"]].to_numpy(),
        frame[roles["groups"]].to_numpy(),
        docids,
    )
