"""Options of the verbs that read ballots, and what can be said of them before a file is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from apexrank.cli.edge_options import READING, check_output
from apexrank.errors import InputError

PREFLIB = (".soc", ".soi", ".toc", ".toi")


def method_option(help: str, *names: str, **more: Any) -> Any:
    """An option about what is done with ballots."""
    return typer.Option(*names, help=help, rich_help_panel="Method", **more)


def output_option(help: str, *names: str, **more: Any) -> Any:
    """An option about what is written."""
    return typer.Option(*names, help=help, rich_help_panel="Output", **more)


def _reading(help: str, **more: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=READING, **more)


def _points(help: str) -> Any:
    return typer.Option(help=help, rich_help_panel="Points")


BallotFile = Annotated[
    Path,
    typer.Argument(
        help="Table with one row per voter and one column per item: CSV, TSV (also .gz) or Parquet; or a PrefLib file "
        ".soc, .soi, .toc or .toi (also .gz).",
        show_default=False,
    ),
]
Kind = Annotated[
    str | None,
    _reading(
        "What the cells hold: scores (larger is better, the default), ranks (1 is best), or orders: a row lists its "
        "items from the best on, and may stop early."
    ),
]
ItemsIn = Annotated[
    str | None,
    _reading("Where the items are: columns (the default), or rows of a table with one column per voter."),
]
Long = Annotated[
    str | None,
    _reading(
        "Columns of voter, item and score (or rank) of a table with one row per voter and item, such as "
        "user,film,stars.",
        metavar="VOTER,ITEM,SCORE",
    ),
]
Id = Annotated[
    str | None,
    _reading(
        "Column of the voters' names, with --items-in rows of the items'; by default the first if it is text, or has "
        "a name such as id, voter or item, or none."
    ),
]
Weights = Annotated[
    str | None,
    _reading(
        "Column that says how often each ballot was cast; with --items-in rows weights of the columns, such as a=2,b=1."
    ),
]
Drop = Annotated[list[str] | None, _reading("Columns to leave out, such as a,b.")]
Normalize = Annotated[
    str | None,
    _points(
        "Put each voter on a scale of its own: minmax, sum, zscore, rank or borda; scores are raw by default."
    ),
]
Points = Annotated[
    str | None,
    _points(
        "What a place is worth with ranks and orders: borda (the default), linear, reciprocal, dcg, or 3,2,1."
    ),
]
Missing = Annotated[
    str | None,
    _points(
        "What a missing score means: ignore (no opinion), or last (below all others; the default of orders)."
    ),
]


def is_preflib(path: Path) -> bool:
    """Whether a file's name is that of a PrefLib file.

    Examples
    --------
    >>> is_preflib(Path("debian.soi.gz")), is_preflib(Path("debian.csv"))
    (True, False)
    """
    return path.name.lower().removesuffix(".gz").endswith(PREFLIB)


def read_points(text: str | None, kind: str | None, path: Path) -> Any:
    """Points by name, or those of each place.

    Examples
    --------
    >>> read_points("dcg", "ranks", Path("a.csv")), read_points("5,3,1", "ranks", Path("a.csv"))
    ('dcg', [5.0, 3.0, 1.0])
    """
    if text is None:
        return None
    if (kind or "scores") == "scores" and not is_preflib(path):
        raise InputError(
            "--points are for --kind ranks and orders: of scores use --normalize borda or another"
        )
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


def read_options(method: str, **options: Any) -> Any:
    """The rule of a method; what the library says of its parameters is said of the options.

    Examples
    --------
    >>> from apexrank.errors import InputError
    >>> try:
    ...     read_options("rrf", k=-1.0, normalize=None, points=None, max_exact=40, time_limit=60.0)
    ... except InputError as error:
    ...     print(error)
    --k must be a finite number of at least 0, got -1.0
    """
    from apexrank.aggregation.fusion import read_rule

    try:
        return read_rule(method, **options)
    except InputError as error:
        message = re.sub(
            r"^(unknown )?(k|normalize|points|max_exact|time_limit|min_support)\b",
            lambda found: f"{found[1] or ''}--{found[2].replace('_', '-')}",
            str(error),
        )
        raise InputError(message) from None


def check_missing(missing: str | None) -> None:
    """Refuse an unknown rule early."""
    if missing not in (None, "ignore", "last"):
        raise InputError(f"--missing must be ignore or last, got {missing!r}")


def check_outputs(ballots: Path, *outputs: Path | None) -> None:
    """Refuse tables that cannot be written, before any work."""
    given = [output for output in outputs if output is not None]
    for output in given:
        check_output(output, ballots)
    if len({output.resolve() for output in given}) < len(given):
        raise InputError(f"two outputs are named {str(given[0])!r}: give each a name of its own")
