"""The command ``apexrank`` and how it speaks of errors: one line on stderr, exit code 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import apexrank
from apexrank.cli.aggregate import aggregate
from apexrank.cli.cluster import cluster
from apexrank.cli.compare import compare
from apexrank.cli.consensus import consensus
from apexrank.cli.demo import demo
from apexrank.cli.evaluate import evaluate
from apexrank.cli.export import export
from apexrank.cli.fit import fit
from apexrank.cli.graph import graph_app
from apexrank.cli.graph_compare import graph_compare
from apexrank.cli.rank import rank
from apexrank.cli.reproduce import reproduce
from apexrank.errors import ApexrankError

# Some versions of Typer carry their own copy of Click: the class must come from the copy in use.
_UsageError: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


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
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except _UsageError as error:
            code = _report(f"{error.format_message()} (see --help)")  # type: ignore[attr-defined]
        except ApexrankError as error:
            code = _report(str(error))
        except BrokenPipeError:
            code = _reader_has_left()
        except OSError as error:
            code = _report(
                f"cannot use {error.filename!r}: {error.strerror}" if error.filename else str(error)
            )
        except typer.Abort:
            code = 130
        except Exception as error:
            if os.environ.get("APEXRANK_DEBUG"):
                raise
            _report(f"unexpected {type(error).__name__}: {error} (APEXRANK_DEBUG=1 shows where)")
            code = 1
        sys.exit(code if isinstance(code, int) else 0)


def _reader_has_left() -> int:
    """Stop as a command does whose reader has seen enough, such as ``head``."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _report(message: str) -> int:
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
graph_app.command("compare")(graph_compare)
graph_app.command()(consensus)
app.add_typer(graph_app)
