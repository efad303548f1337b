"""Output of the commands: tables, JSON, notes and progress on the screen; checks before a file is written."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from apexrank.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import polars as pl

_ROWS_ON_SCREEN, _ROWS_OF_FILE = 20, 10
_PICTURES = (".png", ".svg", ".pdf")


def note(message: str) -> None:
    """Print one line on stderr, beside the result."""
    with suppress(OSError):  # a full or closed stderr is no reason to stop
        typer.echo(f"note: {' '.join(message.split())}", err=True)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json_text(value))


def json_text(value: Any) -> str:
    """Convert a value to JSON; numbers that are not finite become null, paths, dates and decimals text."""
    return json.dumps(_finite(value), ensure_ascii=False, indent=2, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> None:
    """Print a table with numbers right-aligned; text is never interpreted as markup."""
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
    """Print the first rows on a terminal, all rows as CSV elsewhere."""
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


def write_frame(frame: pl.DataFrame, output: Path | None) -> None:
    """Write a frame to a CSV or Parquet file, if one is wanted."""
    from apexrank.io import write_table

    if output is not None:
        write_table(frame, output)


def show_frame(frame: pl.DataFrame, output: Path | None, rows: int = _ROWS_OF_FILE) -> bool:
    """Print a frame, or the head of one that was written to a file; return whether text may follow.

    Nothing may follow CSV that goes to a program.
    """
    if output is None:
        print_frame(frame)
        return is_terminal()
    shown = frame.head(rows)
    print_table(shown.columns, shown.rows())
    return True


def _columns_that_fit(frame: pl.DataFrame) -> list[str]:
    """Select the first columns that fit on the screen: a truncated number is worse than none."""
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
    """Format a cell of a table; floats get four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def working(message: str) -> AbstractContextManager[Any]:
    """Show a spinner on stderr while a block runs, if stderr is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(message)


def fit_with_progress(estimator: Any, data: Any, what: str, measure: str, **arguments: Any) -> None:
    """Fit an estimator; show each of its steps, and print its warnings as notes."""
    with working(what) as status, warnings_as_notes():
        if status is not None and "callback" in estimator.get_params():
            estimator.set_params(
                callback=lambda step, value: status.update(f"{what}: step {step}, {measure} {value:.1e}")
            )
        estimator.fit(data, **arguments)


@contextmanager
def warnings_as_notes(words: Callable[[str], str] = str) -> Iterator[None]:
    """Print each distinct warning of the library as a note of one line; ``words`` may rewrite it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)):
        note(words(message))


def check_file(path: Path | None, *inputs: Path | None) -> None:
    """Raise InputError early if a file cannot be written or is one of the inputs."""
    from apexrank.atomic import check_writable

    if path is None:
        return
    check_writable(path)
    if os.path.realpath(path) in [os.path.realpath(given) for given in inputs if given is not None]:
        raise InputError(f"the output {str(path)!r} is also an input: choose another name")


def check_table(path: Path | None, *inputs: Path | None) -> None:
    """Check a CSV or Parquet file to write; see `check_file`."""
    from apexrank.io.tables import check_suffix

    if path is not None:
        check_suffix(path)
        check_file(path, *inputs)


def check_report(path: Path | None, *inputs: Path | None) -> None:
    """Check an HTML file to write; see `check_file`."""
    from apexrank.report.page import check_extra

    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"a report is an HTML file: call it {path.with_suffix('.html').name!r}")
    check_file(path, *inputs)
    check_extra()


def check_picture(path: Path | None) -> None:
    """Check a picture to write; see `check_file`."""
    if path is None:
        return
    if path.suffix.lower() not in _PICTURES:
        raise InputError(f"cannot tell the format of {str(path)!r}: use one of {', '.join(_PICTURES)}")
    check_file(path)
    draw_without_screen()


def prepare_folder(out: Path, *names: str) -> None:
    """Create a folder, and check that the named files can be written into it."""
    if out.exists() and not out.is_dir():
        raise InputError(f"cannot write into {str(out)!r}: it is not a folder")
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        check_file(out / name)


def draw_without_screen() -> None:
    """Select the matplotlib backend that needs no display."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError('pictures need matplotlib: pip install "apexrank[plot]"') from None
    matplotlib.use("Agg")


def save_figure(figure: Any, path: Path) -> None:
    """Write a matplotlib figure atomically and close it."""
    from matplotlib import pyplot as plt

    from apexrank.atomic import write_bytes

    picture = BytesIO()
    figure.savefig(picture, format=path.suffix.lower().lstrip("."), dpi=150)
    write_bytes(path, picture.getvalue())
    plt.close(figure)


def save_roc(scores: Mapping[str, Any], y: Any, path: Path, sample_weight: Any = None) -> None:
    """Write the ROC curves of several rankers: the whole curve and its left end."""
    draw_without_screen()
    from apexrank.plot import RocTopDisplay

    save_figure(RocTopDisplay.from_scores(scores, y, sample_weight=sample_weight).figure_, path)
