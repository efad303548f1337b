"""Options of all verbs that read files of edges, and how these are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from apexrank.cli.output import note, refuse_overwriting, working
from apexrank.errors import InputError

READING = "Reading"
REPEATED = {"sum": ", added up", "once": ", kept once", "error": ""}


def reading_option(help: str, *names: str) -> Any:
    """An option about reading."""
    return typer.Option(*names, help=help, rich_help_panel=READING)


Edges = Annotated[
    Path,
    typer.Argument(
        help="File of edges: CSV, TSV or a plain list (also .gz), or Parquet.", show_default=False
    ),
]
Source = Annotated[
    str | None,
    reading_option(
        "Column of the links' sources: its name, or its position from 0; by default source, src, from, or the first."
    ),
]
Target = Annotated[
    str | None, reading_option("Column of their targets; by default target, dst, to, or the second.")
]
Weight = Annotated[
    str | None,
    reading_option("Column of their weights; by default weight, rating, value, or none: links weigh 1."),
]
Undirected = Annotated[bool, reading_option("Edges count in both directions.", "--undirected")]
Repeated = Annotated[str, reading_option("Repeated edges: sum (of their weights), once or error.")]
NoSelfLoops = Annotated[bool, reading_option("Leave out links of a vertex to itself.", "--no-self-loops")]
Signed = Annotated[bool, reading_option("Negative weights are distrust, not an error.", "--signed")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def check_output(output: Path | None, *inputs: Path) -> None:
    """Refuse an output that cannot be written, before any work."""
    from apexrank.atomic import check_writable
    from apexrank.io.tables import check_suffix

    if output is not None:
        check_suffix(output)
        check_writable(output)
        refuse_overwriting(output, *inputs)


class Reading(NamedTuple):
    """The options that say how a file of edges is read."""

    source: str | None
    target: str | None
    weight: str | None
    undirected: bool
    repeated: str
    no_self_loops: bool
    signed: bool

    def columns(self) -> dict[str, str | int | None]:
        """Columns by name, or by position where the option is a whole number: many lists have no header."""
        given = {"source": self.source, "target": self.target, "weight": self.weight}
        return {role: int(name) if name and name.isdecimal() else name for role, name in given.items()}

    def rules(self) -> dict[str, Any]:
        """Columns and rules, as the library takes them."""
        if self.repeated not in REPEATED:
            raise InputError(
                f"unknown rule {self.repeated!r} for --repeated: use one of {', '.join(REPEATED)}"
            )
        return {
            **self.columns(),
            "directed": not self.undirected,
            "repeated": self.repeated,
            "self_loops": "drop" if self.no_self_loops else "keep",
        }

    def read(self, edges: Path) -> Any:
        """The graph, or the signed graph."""
        from apexrank.graph.files import guessed_columns
        from apexrank.graph.reading import as_graph

        try:
            with working(f"reading {edges}"):
                graph = as_graph(edges, **self.rules(), signed=self.signed)
        except InputError as error:
            raise InputError(in_options(str(error))) from None
        guessed = guessed_columns(edges, **self.columns())
        if guessed is not None:
            note(f"{edges}: {guessed} (--source, --target and --weight choose)")
        return graph


def in_options(message: str) -> str:
    """The library's advice in the words of the command line.

    Examples
    --------
    >>> in_options("use signed=True, or name their column with weight=")
    'use --signed, or name their column with --weight'
    """
    message = message.replace("read it by as_graph with signed=True", "use --method lpq --signed")
    message = message.replace("signed=True", "--signed").replace(
        "repeated='sum' or 'once'", "--repeated sum or once"
    )
    return re.sub(r"with (source|target|weight)=", r"with --\1", message)
