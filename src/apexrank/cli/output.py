"""What the verbs print: text for people, JSON for machines, notes and progress on stderr."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from apexrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl

_ROWS_ON_SCREEN = 20


def note(message: str) -> None:
    """Say one line beside the result."""
    with suppress(OSError):  # a full or closed stderr is no reason to stop
        typer.echo(f"note: {' '.join(message.split())}", err=True)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json_text(value))


def json_text(value: Any) -> str:
    """A value as JSON; what is not finite becomes null, a date or a decimal its text."""
    return json.dumps(_finite(value), ensure_ascii=False, indent=2, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> None:
    """Print a table with numbers to the right; text is shown as it is, never read as markup."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for index, header in enumerate(headers):
        numeric = all(isinstance(row[index], int | float) for row in rows)
        table.add_column(Text(header), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(show(cell)) for cell in row))
    # Wide enough for any table where no person's screen sets the width.
    console = Console() if is_terminal() else Console(width=200)
    with console.capture() as capture:
        console.print(table)
    if title is not None:
        typer.echo(title)
    typer.echo("\n".join(line.rstrip() for line in capture.get().strip("\n").splitlines()))


def print_frame(frame: pl.DataFrame) -> None:
    """Show the first rows to a person, all of them as CSV to a program."""
    if not is_terminal():
        from apexrank.io.tables import check_flat

        check_flat(frame)
        typer.echo(frame.write_csv(), nl=False)
        return
    shown = frame.head(_ROWS_ON_SCREEN)
    columns = _columns_that_fit(shown)
    print_table(columns, shown.select(columns).rows())
    if shown.height < frame.height or len(columns) < frame.width:
        typer.echo(
            f"{shown.height} of {frame.height} rows, {len(columns)} of {frame.width} columns; "
            "write them all with -o FILE.csv"
        )


def _columns_that_fit(frame: pl.DataFrame) -> list[str]:
    """The first columns that a screen has room for: a number that is cut short is worse than none."""
    import shutil

    room = shutil.get_terminal_size().columns
    kept: list[str] = []
    for name in frame.columns:
        room -= 3 + max(len(name), *(len(show(cell)) for cell in frame[name]))
        if kept and room < 0:
            break
        kept.append(name)
    return kept


def show(value: Any) -> str:
    """Show a table's cell: four digits of a number."""
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def is_terminal() -> bool:
    """Whether a person reads stdout."""
    return sys.stdout is not None and sys.stdout.isatty()


def working(message: str) -> AbstractContextManager[Any]:
    """Turn a spinner on stderr while a block runs, when a person reads it."""
    if sys.stderr is None or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(message)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show each warning of the library once, as a note of one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)):
        note(message)


def split_names(values: Sequence[str] | None, known: Sequence[str] = ()) -> list[str]:
    """Column names from options such as ``--drop a,b --drop c``; quotes protect a comma in a name.

    A value that is one of the ``known`` names as it stands is not split.

    Examples
    --------
    >>> split_names(["a,b", '"x, y"'])
    ['a', 'b', 'x, y']
    >>> split_names(["a,b", "x, y"], known=["a", "b", "x, y"])
    ['a', 'b', 'x, y']
    """
    import csv

    names: list[str] = []
    for value in values or []:
        fields = [value] if value in known else [name.strip() for name in next(csv.reader([value]), [])]
        names += [name for name in fields if name]
    return names


def refuse_overwriting(output: Path | None, *inputs: Path) -> None:
    """Refuse an output that is one of the inputs."""
    if output is not None and os.path.realpath(output) in [os.path.realpath(path) for path in inputs]:
        raise InputError(f"the output {str(output)!r} is also an input: choose another name")
