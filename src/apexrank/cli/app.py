"""The ``apexrank`` application: errors are one line on stderr with exit code 2.

An interruption is one line as well, with the exit code of shells: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP. If
the reader of stdout has closed the pipe, the exit code is 141 and nothing is printed.
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import apexrank
from apexrank.cli.aggregate import aggregate
from apexrank.cli.cluster import cluster
from apexrank.cli.compare import compare
from apexrank.cli.demo import demo
from apexrank.cli.evaluate import evaluate
from apexrank.cli.export import export
from apexrank.cli.fit import fit
from apexrank.cli.graph import graph_app
from apexrank.cli.output import OPTIONS, SPREADSHEET_SAFE, in_options
from apexrank.cli.rank import rank
from apexrank.cli.reproduce import reproduce
from apexrank.errors import ApexrankError, near_name

# Some versions of Typer carry their own copy of Click: the class must come from the copy in use.
_UsageError: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
_INTERRUPTED, _READER_LEFT = 128 + 2, 128 + 13  # as shells have it for SIGINT and SIGPIPE


class _Stopped(BaseException):
    """A termination signal; not an Exception, so that only clean-up code runs."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _PlainFlags:
    """Help page that shows no value type for flags."""

    def get_params(self, context: Any) -> Any:
        """Return the parameters of the command."""
        parameters = super().get_params(context)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


# The command that writes an argument, or has the most options to read it: messages may suggest its options.
_HOMES = {"model": "fit", "edges": "graph rank"}


class Verb(_PlainFlags, TyperCommand):
    """Command that renders parameters in messages as its options."""

    def invoke(self, context: Any) -> Any:
        """Run the command."""
        flags = {"graded": "fit --model retarget"} | _flags(self)
        for argument, home in _HOMES.items():
            if any(each.name == argument for each in self.params):
                made = _flags(context.parent.command.commands[home.split()[-1]])
                flags |= {f"{name}=": f"{home} {flag}" for name, flag in made.items()}
        OPTIONS.set(flags)
        return super().invoke(context)


def _flags(command: Any) -> dict[str, str]:
    return {each.name: each.opts[0] for each in command.params if each.opts[0].startswith("-")}


class Verbs(_PlainFlags, TyperGroup):
    """Group of verbs."""


class OneLineErrors(Verbs):
    """Command group that reports every expected error in one line."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command; usage errors are reported like errors in the data."""
        try:
            with _stopping_cleanly(), _names_as_they_are():
                code = super().main(*args, **extra | {"standalone_mode": False})
            if code == _INTERRUPTED:
                _report("interrupted")
        except _UsageError as error:
            code = _report(f"{_usage_error(error)} (see --help)")
        except ApexrankError as error:
            code = _report(in_options(str(error)))
        except BrokenPipeError:
            code = _reader_has_left()
        except SystemExit as error:
            # Typer has its own exit for a closed pipe.
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
            refusal = _refusal(error)
            if os.environ.get("APEXRANK_DEBUG") and not refusal:
                raise
            code = _report(
                in_options(refusal)
                or f"unexpected {type(error).__name__}: {error} (APEXRANK_DEBUG=1 shows where)"
            )
            code = code if refusal else 1
        parallel = sys.modules.get("apexrank.parallel")  # not imported, as that would load numba
        if parallel is not None and parallel.has_abandoned_work():
            # Temporary files are gone, and the interpreter would wait for threads whose results nobody wants.
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError, AttributeError):
                    stream.flush()
            os._exit(code)
        sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def _names_as_they_are() -> Iterator[None]:
    """Print file names that are not valid text byte for byte, unless the user chose another error handler."""
    stdout = sys.stdout
    if not isinstance(stdout, io.TextIOWrapper) or stdout.errors != "strict":
        yield
        return
    stdout.reconfigure(errors="surrogateescape")
    try:
        yield
    finally:
        with suppress(OSError, ValueError):  # a failed flush is reported elsewhere
            stdout.reconfigure(errors="strict")


@contextmanager
def _stopping_cleanly() -> Iterator[None]:
    """Clean up temporary files when a signal ends the process; a second signal ends it at once."""
    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in known if signal.getsignal(number) == signal.SIG_DFL]

    def stop(number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise _Stopped(number)

    try:
        for number in numbers:
            signal.signal(number, stop)
    except ValueError:  # only the main thread may set signal handlers
        numbers = []
    hook = sys.unraisablehook
    sys.unraisablehook = lambda error: None if _is_interruption(error.exc_type) else hook(error)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _is_interruption(kind: type[BaseException]) -> bool:
    """Return whether an error is an interruption: polars raises its own, and Python's may hit a closing generator."""
    return issubclass(kind, KeyboardInterrupt | _Stopped)


def _reader_has_left() -> int:
    """Silence stdout after its reader, such as ``head``, has closed the pipe; return the exit code."""
    silent = os.open(os.devnull, os.O_WRONLY)
    if sys.stdout is not None:
        with suppress(OSError):  # not backed by a file descriptor
            os.dup2(silent, sys.stdout.fileno())
    os.close(silent)
    return _READER_LEFT


def _usage_error(error: Any) -> str:
    """Describe a usage error; suggest only the most similar option for an unknown one, if it is similar enough."""
    if getattr(error, "possibilities", None):
        near = near_name(error.option_name.lstrip("-"), [name.lstrip("-") for name in error.possibilities])
        error.possibilities = [f"--{near}"] if near else None
    return str(error.format_message())


def _system_error(error: OSError) -> str:
    if error.filename:
        return f"cannot use {error.filename!r}: {error.strerror}"
    # Code that opens files reports their errors, so this error is about stdout.
    return f"cannot print the result: {str(error.strerror).lower()}" if error.errno in _FULL else str(error)


def _refusal(error: Exception) -> str:
    """Shorten the error by which scikit-learn refuses a parameter or data to one line; "" for any other error."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else frame.tb_frame.f_globals.get("__name__", "")
    if not isinstance(error, ValueError) or not where.startswith("sklearn."):
        return ""
    line = str(error).strip().partition("\n")[0].rstrip(".")
    line = re.sub(r" or an (instance of|object implementing) '[\w.]+'", "", line)  # for Python only
    return re.sub(r"^The '(\w+)' parameter of \w+ (.*)\. Got (.*) instead$", r"`\1` \2, got \3", line)


def _report(message: str) -> int:
    with suppress(OSError):  # stderr is closed too
        typer.echo(f"error: {' '.join(message.split())}", err=True)
    return 2


app = typer.Typer(
    name="apexrank",
    cls=OneLineErrors,
    help="Ranking by convex optimisation, with the focus on the top of the list.",
    epilog="Start with: apexrank demo",
    rich_markup_mode="rich",
)


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe",
            help="Prefix text that a spreadsheet would run as a formula with ' in CSV output; goes before the command.",
        ),
    ] = False,
) -> None:
    SPREADSHEET_SAFE.set(spreadsheet_safe)
    if version:
        typer.echo(f"apexrank {apexrank.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _verb in (demo, compare, fit, rank, evaluate, export, aggregate, cluster, reproduce):
    app.command()(_verb)
app.add_typer(graph_app, cls=Verbs, epilog="Example: apexrank graph rank edges.csv --top 10")

EXAMPLES = {
    "demo": "",
    "compare": "train.csv --target fraud --top 100 --report report.html",
    "fit": "train.csv --target fraud --id case -p 8 -o model.apex",
    "rank": "model.apex new.csv --top 100 --explain -o top.csv",
    "evaluate": "model.apex test.csv --confidence 0.95",
    "export": "model.apex -o model.onnx",
    "aggregate": "votes.csv --method kemeny -o order.csv",
    "cluster": "votes.csv -k 4",
    "reproduce": "table3 --out results",
    "graph rank": "edges.csv --method guarded --top 100 -o ranks.csv",
    "graph inspect": "edges.csv",
    "graph pack": "'crawl/*.csv.gz' -o crawl.shards --memory 4GB",
    "graph compare": "edges.csv --report farms.html",
    "graph attack": "edges.csv --report attack.html",
    "graph consensus": "monday.csv tuesday.csv -o ranks.csv",
}
for _prefix, _group in (("", app), ("graph ", graph_app)):
    for _command in _group.registered_commands:
        _name = f"{_prefix}{_command.name or getattr(_command.callback, '__name__', None)}"
        _command.cls = Verb
        _command.epilog = f"Example: apexrank {_name} {EXAMPLES[_name]}"
