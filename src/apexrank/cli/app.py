"""The command ``apexrank`` and how it speaks of errors: one line on stderr, exit code 2.

An interruption is one line as well, with the exit codes of shells: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP, and
141, without a word, where the reader of the output has left.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import apexrank
from apexrank.cli.aggregate import aggregate
from apexrank.cli.cluster import cluster
from apexrank.cli.compare import compare
from apexrank.cli.demo import demo
from apexrank.cli.evaluate import evaluate
from apexrank.cli.export import export
from apexrank.cli.fit import fit
from apexrank.cli.graph import graph_app
from apexrank.cli.rank import rank
from apexrank.cli.reproduce import reproduce
from apexrank.errors import ApexrankError

# Some versions of Typer carry their own copy of Click: the class must come from the copy in use.
_UsageError: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
_INTERRUPTED, _READER_LEFT = 128 + 2, 128 + 13  # as shells have it for SIGINT and SIGPIPE


class _Stopped(BaseException):
    """A signal asks the process to end; no error, so that nothing but clean-up runs on its way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class OneLineErrors(TyperGroup):
    """A group of verbs that reports every expected error in one line."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a verb; a wrong word on the command line is reported like wrong data."""
        try:
            with _stopping_cleanly(), _names_as_they_are():
                code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
            if code == _INTERRUPTED:
                _report("interrupted")
        except _UsageError as error:
            code = _report(f"{error.format_message()} (see --help)")  # type: ignore[attr-defined]
        except ApexrankError as error:
            code = _report(str(error))
        except BrokenPipeError:
            code = _reader_has_left()
        except SystemExit as error:
            # Typer has a way of its own to end when the reader has left.
            if not isinstance(error.__context__, BrokenPipeError):
                raise
            code = _reader_has_left()
        except OSError as error:
            code = _report(_system_error(error))
        except (typer.Abort, KeyboardInterrupt):
            _report("interrupted")
            code = _INTERRUPTED
        except _Stopped as stop:
            _report(f"stopped by {signal.Signals(stop.number).name}")
            code = 128 + stop.number
        except Exception as error:
            if os.environ.get("APEXRANK_DEBUG"):
                raise
            _report(f"unexpected {type(error).__name__}: {error} (APEXRANK_DEBUG=1 shows where)")
            code = 1
        sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def _names_as_they_are() -> Iterator[None]:
    """Print the bytes of a file's name that are no text as they are, unless the user has chosen another way."""
    stdout = sys.stdout
    if not isinstance(stdout, io.TextIOWrapper) or stdout.errors != "strict":
        yield
        return
    stdout.reconfigure(errors="surrogateescape")
    try:
        yield
    finally:
        with suppress(OSError, ValueError):  # what is still to be printed cannot be; it is told elsewhere
            stdout.reconfigure(errors="strict")


@contextmanager
def _stopping_cleanly() -> Iterator[None]:
    """Clean up what is being written when a signal ends the process; a second one ends it at once."""
    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in known if signal.getsignal(number) == signal.SIG_DFL]

    def stop(number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise _Stopped(number)

    try:
        for number in numbers:
            signal.signal(number, stop)
    except ValueError:  # not the main thread, which alone may do that
        numbers = []
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _reader_has_left() -> int:
    """Stop as a command does whose reader has seen enough, such as ``head``."""
    silent = os.open(os.devnull, os.O_WRONLY)
    if sys.stdout is not None:
        with suppress(OSError):  # no file of the system
            os.dup2(silent, sys.stdout.fileno())
    os.close(silent)
    return _READER_LEFT


def _system_error(error: OSError) -> str:
    if error.filename:
        return f"cannot use {error.filename!r}: {error.strerror}"
    # Errors of files are told by those who open them: what is left is the screen, or where it was redirected to.
    return f"cannot print the result: {str(error.strerror).lower()}" if error.errno in _FULL else str(error)


def _report(message: str) -> int:
    with suppress(OSError):  # nobody can be told
        typer.echo(f"error: {' '.join(message.split())}", err=True)
    return 2


app = typer.Typer(
    name="apexrank",
    cls=OneLineErrors,
    help="Rank by convex optimisation so that the top of the list is right.",
    epilog="Start with: apexrank demo",
    add_completion=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"apexrank {apexrank.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _verb in (demo, compare, fit, rank, evaluate, export, aggregate, cluster, reproduce):
    app.command()(_verb)
app.add_typer(graph_app)
