"""Output of the commands: tables, JSON, notes and progress on the screen; checks before a file is written.

Messages of the library name parameters in backticks; `in_options` renders them as options of the running verb, in one
place for all verbs.
"""

from __future__ import annotations

import ast
import errno
import glob
import json
import math
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from apexrank.errors import InputError, MissingExtraError, printable
from apexrank.files import check_writable, reading, write_bytes
from apexrank.progress import listening

if TYPE_CHECKING:
    import polars as pl

_ROWS_ON_SCREEN, _ROWS_OF_FILE = 20, 10
_COLUMNS_BEFORE = 2  # columns of the progress line while the number of steps is unknown
_PICTURES = (".png", ".svg", ".pdf")
SPREADSHEET_SAFE: ContextVar[bool] = ContextVar("spreadsheet_safe", default=False)  # --spreadsheet-safe
# Flags of the running command by parameter, and flags of the command that wrote its input by parameter with "=".
OPTIONS: ContextVar[Mapping[str, str]] = ContextVar("options")
# Library parameters whose option has a different name; the option of n_bins is --bins by default.
_RENAMED = {
    "cv": "folds",
    "decimal": "decimal_comma",
    "direction": "distrust",
    "layer_prior": "prior",
    "header": "no_header",
    "monotonic_cst": "monotone",
    "objective": "loss",
    "pos_label": "positive",
    "ps": "p",
    "sample_weight": "weight",
    "separator": "sep",
    "t_max": "max_iter",
}


def in_options(message: str) -> str:
    """Render the parameters in a message of the library as options of the running verb.

    The library puts a parameter, with or without a value, in backticks. A parameter without an option loses them.

    Examples
    --------
    >>> token = OPTIONS.set({"signed": "--signed", "weight": "--weight", "long": "--long", "drop": "--drop"})
    >>> in_options("use `signed=True`, or name their column with `weight=`; `verbose` must be 0 or 1")
    'use --signed, or name their column with --weight; verbose must be 0 or 1'
    >>> in_options("this looks like `long='User name,film,stars'`")
    "this looks like --long 'User name,film,stars'"
    >>> in_options("leave the columns out (`drop=['id', 'note']`)")
    'leave the columns out (--drop id,note)'
    >>> OPTIONS.reset(token)
    """
    return re.sub(r"`(\w+)(=[^`]*)?`", _option, message)


def _option(found: re.Match[str]) -> str:
    name, value = found[1], found[2] or ""
    name = _RENAMED.get(name, name if name in OPTIONS.get({}) else name.removeprefix("n_"))
    flag = OPTIONS.get({}).get(name) or (value and OPTIONS.get({}).get(f"{name}=")) or None
    if flag is None or value in ("", "=", "=True"):
        return flag or found[0].strip("`")
    try:
        given = ast.literal_eval(value[1:])
    except (SyntaxError, ValueError):
        given = value[1:]
    text = ",".join(given) if isinstance(given, list) else str(given)
    return f"{flag} {shlex.quote(printable(text))}"  # column names may contain control characters


def size(n_bytes: float) -> str:
    """Write a number of bytes in decimal units.

    Examples
    --------
    >>> size(999), size(1_234_567), size(25e9)
    ('999 bytes', '1.23 MB', '25 GB')
    """
    units = iter(("bytes", "kB", "MB", "GB"))
    unit = next(units)
    while n_bytes >= 999.5 and (larger := next(units, None)):
        n_bytes, unit = n_bytes / 1000, larger
    return f"{n_bytes:.3g} {unit}"


def note(*messages: str) -> None:
    """Print each message as one line on stderr, beside the result."""
    for message in messages:
        with suppress(OSError):  # a full or closed stderr is no reason to stop
            typer.echo(f"note: {' '.join(printable(in_options(message)).split())}", err=True)


class Stopwatch(dict[str, float]):
    """Seconds of the stages of a command, by name.

    Examples
    --------
    >>> watch = Stopwatch()
    >>> watch |= {"reading": 0.25, "ranking": 1.5}
    >>> str(watch)
    'read in 0.2 s, ranked in 1.5 s'
    """

    def __init__(self) -> None:
        super().__init__()
        self._began = time.perf_counter()

    def end(self, stage: str) -> None:
        """Record the duration of a stage and start the next one."""
        now = time.perf_counter()
        self[stage], self._began = round(now - self._began, 3), now

    def __str__(self) -> str:
        irregular = {"reading": "read", "merging": "merged"}
        past = {stage: irregular.get(stage, stage.removesuffix("ing") + "ed") for stage in self}
        return ", ".join(f"{past[stage]} in {seconds:.1f} s" for stage, seconds in self.items())


def print_json(report: Mapping[str, Any], output: Path | None = None, **tables: pl.DataFrame) -> None:
    """Print a report as JSON, including tables that were not written to an ``output`` file."""
    texts = {key: _rendered(report[key]) for key in ("notes", "verdict", "verdicts") if key in report}
    rows = {} if output is not None else {name: table.to_dicts() for name, table in tables.items()}
    typer.echo(json_text({**report, **texts, **rows}))


def _rendered(value: Any) -> Any:
    """Render the parameters in texts, also in lists and dictionaries, as options."""
    if isinstance(value, dict):
        return {key: _rendered(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rendered(item) for item in value]
    return in_options(value) if isinstance(value, str) else value


def with_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert text columns that hold only whole numbers, such as ids in CSV files, to integers.

    Text such as 007 or 1.50 is kept, because a number would change it.

    Examples
    --------
    >>> import polars as pl
    >>> with_numbers(pl.DataFrame({"id": ["12", "-3"], "code": ["007", "12"]})).rows()
    [(12, '007'), (-3, '12')]
    """
    import polars as pl

    whole = r"^(0|-?[1-9]\d{0,15})$"
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    numeric = [name for name in texts if frame[name].count() and frame[name].str.contains(whole).all()]
    return frame.with_columns(pl.col(numeric).cast(pl.Int64))


def plural(number: float, one: str, many: str = "") -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> plural(1, "field"), plural(2, "vertex", "vertices")
    ('1 field', '2 vertices')
    """
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def ended(converged: bool, steps: int) -> str:
    """Describe how an iteration ended.

    Examples
    --------
    >>> ended(True, 12), ended(False, 1)
    ('converged after 12 steps', 'stopped after 1 step')
    """
    return f"{'converged' if converged else 'stopped'} after {plural(steps, 'step')}"


def print_written(output: Path | None, about: str = "") -> None:
    """Print the name of a file that was written, if any."""
    if output is not None:
        typer.echo(f"written: {output}{about}")


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
        table.add_column(Text(printable(header)), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(show(cell)) for cell in row))
    # Wide enough for any table if the output is not a terminal.
    console = Console() if is_terminal() else Console(width=200)
    with console.capture() as capture:
        console.print(table)
    if title is not None:
        typer.echo("\n".join(map(printable, title.split("\n"))))
    typer.echo("\n".join(line.rstrip() for line in capture.get().strip("\n").splitlines()))


def print_frame(frame: pl.DataFrame) -> None:
    """Print the first rows on a terminal, all rows as CSV elsewhere."""
    if not is_terminal():
        from apexrank.io.write import check_flat

        check_flat(frame)
        typer.echo(_for_spreadsheets(frame).write_csv(), nl=False)
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
    """Write a frame to a CSV or Parquet file, if one was requested."""
    if output is None:
        return
    from apexrank.io.read import PARQUET
    from apexrank.io.write import write_table

    is_csv = not output.name.lower().endswith(PARQUET)
    write_table(_for_spreadsheets(frame) if is_csv else frame, output)


def _for_spreadsheets(frame: pl.DataFrame) -> pl.DataFrame:
    from apexrank.io.write import without_formulas

    return without_formulas(frame) if SPREADSHEET_SAFE.get() else frame


def show_frame(frame: pl.DataFrame, output: Path | None, rows: int = _ROWS_OF_FILE) -> bool:
    """Print a frame, or the head of one that was written to a file; return whether text may follow it.

    No text may follow CSV in a pipe.
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
    """Format a cell of a table; floats get four significant digits, and control characters are escaped."""
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else printable(str(value))


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


@contextmanager
def _warnings_as_notes(about: str, strict: bool | None) -> Iterator[None]:
    """Print each distinct warning of a block that succeeds as a note; if strict, the first one is an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error" if strict else "always", UserWarning)
        try:
            yield
        except UserWarning as warning:
            raise InputError(f"{about}{warning} (--strict)") from None
    texts = dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning))
    note(*(about + text for text in texts))


class Progress:
    """Progress line with a bar, a percentage and the time left once the number of steps is known."""

    def __init__(self, bar: Any, message: str) -> None:
        self._bar, self._task = bar, bar.add_task(message, total=None)

    def update(self, what: str | None = None, done: int | None = None, total: int | None = None) -> None:
        """Show the current activity and the number of finished steps."""
        from rich.progress import BarColumn, TaskProgressColumn, TimeRemainingColumn

        if total is not None and len(self._bar.columns) == _COLUMNS_BEFORE:
            self._bar.columns += (BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._bar.update(self._task, description=what, completed=done, total=total)

    def note(self, message: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(f"note: {message}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def working(message: str, about: str = "", strict: bool | None = None) -> Iterator[Progress | None]:
    """Show progress while a block runs, if stderr is a terminal; then print each distinct warning as a note.

    Loops over `apexrank.progress.steps` get a bar. The notes begin with ``about``; if ``strict`` they are errors.
    """
    with _warnings_as_notes(about, strict):
        if sys.stderr is None or not sys.stderr.isatty():
            yield None
            return
        from rich import progress
        from rich.console import Console

        columns = progress.SpinnerColumn(), progress.TextColumn("{task.description}")
        with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            shown = Progress(bar, message)
            with listening(lambda done, total: shown.update(None, done, total)):
                yield shown


def fit_with_progress(estimator: Any, data: Any, what: str, measure: str, **arguments: Any) -> None:
    """Fit an estimator, and show each of its steps."""
    with working(what) as status:
        if status is not None and "callback" in estimator.get_params():

            def tell(step: int, value: float) -> None:
                status.update(f"{what}: step {step}, {measure} {value:.1e}")

            estimator.set_params(callback=tell)
        estimator.fit(data, **arguments)


def check_inputs(*paths: Path | None) -> None:
    """Raise InputError if a file to read is missing or may not be read."""
    for path in paths:
        if path is None or str(path) == "-" or (glob.has_magic(str(path)) and not path.exists()):
            continue  # standard input and patterns are resolved where they are read
        with reading(path):
            path.stat()
            if not os.access(path, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def check_file(path: Path | None, *inputs: Path | None) -> None:
    """Raise InputError early if a file cannot be written or is one of the inputs."""
    if path is None:
        return
    check_writable(path)
    if os.path.realpath(path) in [os.path.realpath(given) for given in inputs if given is not None]:
        raise InputError(f"the output {str(path)!r} is also an input: choose another name")


def check_table(path: Path | None, *inputs: Path | None) -> None:
    """Check a CSV or Parquet file to write; see `check_file`."""
    if path is not None:
        from apexrank.io.write import check_suffix

        check_suffix(path)
        check_file(path, *inputs)


def check_report(path: Path | None, *inputs: Path | None) -> None:
    """Check an HTML file to write; see `check_file`."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"a report is an HTML file: call it {path.with_suffix('.html').name!r}")
    check_file(path, *inputs)
    from apexrank.report.page import check_extra

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

    picture = BytesIO()
    figure.savefig(picture, format=path.suffix.lower().lstrip("."), dpi=150)
    write_bytes(path, picture.getvalue())
    plt.close(figure)


def save_roc(scores: Mapping[str, Any], y: Any, path: Path, sample_weight: Any = None) -> None:
    """Write the ROC curves of several rankers: the whole curve and its left end."""
    draw_without_screen()
    from apexrank.plot import RocTopDisplay

    save_figure(RocTopDisplay.from_scores(scores, y, sample_weight=sample_weight).figure_, path)
