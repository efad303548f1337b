"""Options that several commands share, each declared once with its help text.

Options that always go together are the fields of a dataclass. A command decorated with `option_groups` takes the
dataclass as one parameter: Typer sees the fields, the command gets an instance.
"""

from __future__ import annotations

import codecs
import csv
import inspect
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

import apexrank
from apexrank import io
from apexrank.cli import output as out
from apexrank.errors import InputError, MissingExtraError, unknown
from apexrank.files import NotUtf8Error

if TYPE_CHECKING:
    from apexrank.aggregation.ballot_files import BallotFile
    from apexrank.graph import Graph
    from apexrank.graph.edges import Edges


def panel(title: str | None = None) -> Callable[..., Any]:
    """Return a factory for options under one heading of the help page; each option is a field of a dataclass.

    ``names`` are the flags, by default the name of the field; ``choices`` are the allowed values, ``min`` the smallest.
    """

    def option(help: str, *names: str, default: Any = None, **more: Any) -> Any:
        about: dict[str, Any] = {name: more.pop(name) for name in ("choices", "min") if name in more}
        about |= {"names": names, "option": {"help": help, "rich_help_panel": title, **more}}
        return field(default=default, metadata=about)

    return option


plain = panel()
column = panel("Columns")
method = panel("Method")
label = panel("Labels")
reading = panel("Reading")
costs = panel("Costs")
worth = panel("Points")
large = panel("Larger than memory")
written = panel("Output")
TABLE_OUTPUT = "CSV or Parquet file to write (default: print to the screen)."
_METAVARS = {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH", list[str]: "NAMES"}
# flags that differ from the name
_FLAGS = {"output": ("--output", "-o"), "p": ("-p", "--p"), "k": ("-k", "--k")}


def option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter whose type is a dataclass by the fields of that dataclass."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if not (isinstance(group, type) and is_dataclass(group)):
            parameters.append(parameter)
            continue
        groups[parameter.name] = group
        about = {each.name: each.metadata for each in fields(group)}
        for each in inspect.signature(group, eval_str=True).parameters.values():
            if own := about[each.name]:  # an argument already has its annotation
                kind, *_ = get_args(each.annotation) or (each.annotation,)
                more = {"metavar": _METAVARS.get(kind)} | own["option"]
                more |= {"rich_help_panel": group.panel} if hasattr(group, "panel") else {}
                more["metavar"] = f"{more['metavar']} [x>={own['min']}]" if "min" in own else more["metavar"]
                names = own["names"] or _FLAGS.get(each.name, (flag(each.name),))
                each = each.replace(annotation=Annotated[each.annotation, typer.Option(*names, **more)])
            parameters.append(each)

    @wraps(command)
    def grouped(**given: Any) -> None:
        for name, group in groups.items():
            options = {each.name: given.pop(each.name) for each in fields(group)}
            for each in fields(group):
                choices, least = each.metadata.get("choices"), each.metadata.get("min")
                if (value := options[each.name]) is None:
                    continue
                shown = (*each.metadata.get("names", ()), flag(each.name))[0]
                if choices and value not in choices:
                    raise unknown(shown, value, choices)
                refuse(least is not None and value < least, f"{shown} must be at least {least}, got {value}")
            given[name] = group(**options)
        command(**given)

    flat = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    grouped.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    grouped.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return grouped


def given_options(group: Any) -> dict[str, Any]:
    """Return the options of a group that the user set."""
    return {name: value for name, value in asdict(group).items() if value is not None}


def flag(name: str) -> str:
    """Return an option as the user types it.

    Examples
    --------
    >>> flag("p"), flag("max_iter")
    ('-p', '--max-iter')
    """
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


def as_words(options: Mapping[str, Any]) -> list[str]:
    """Return options as the user types them; a list repeats its option, and None is left out.

    Examples
    --------
    >>> as_words({"target": "fraud", "id": None, "drop": ["a", "b"], "p": 4.0})
    ['--target', 'fraud', '--drop', 'a', '--drop', 'b', '-p', '4']
    """
    words: list[str] = []
    for name, given in options.items():
        for value in given if isinstance(given, list | tuple) else [given]:
            text = f"{value:g}" if isinstance(value, int | float) else value
            words += [] if value is None else [flag(name), *([] if value is True else [str(text)])]
    return words


def split_names(values: Sequence[str] | None, known: Sequence[str] = ()) -> list[str]:
    """Split column names given as ``--drop a,b --drop c``; quotes protect a comma in a name.

    A value that is one of the ``known`` names is not split.

    Examples
    --------
    >>> split_names(["a,b", '"x, y"'])
    ['a', 'b', 'x, y']
    >>> split_names(["a,b", "x, y"], known=["a", "b", "x, y"])
    ['a', 'b', 'x, y']
    """
    names: list[str] = []
    for value in values or []:
        fields = [value] if value in known else [name.strip() for name in next(csv.reader([value]), [])]
        names += [name for name in fields if name]
    return names


def split_powers(text: str, example: str) -> list[float]:
    """Parse the powers of ``-p``.

    Examples
    --------
    >>> split_powers("1,2.5,inf", "1,4")
    [1.0, 2.5, inf]
    """
    try:
        return [float(part.replace("∞", "inf")) for part in text.split(",")]
    except ValueError:
        such_as = f"such as {example}, got {text!r}"
        raise InputError(f"-p takes numbers separated by commas, {such_as}") from None


def refuse(wrong: object, message: str) -> None:
    """Raise InputError with a message about the options if something is wrong.

    Examples
    --------
    >>> refuse(False, "--top counts rows: leave out --all")
    """
    if wrong:
        raise InputError(message)


def set_parameters(
    estimator: Any, given: Mapping[str, Any], chosen: str, renamed: Mapping[str, str] | None = None
) -> Any:
    """Set parameters of an estimator; the error about an option that it does not have names the chosen method."""
    for option, value in given.items():
        name = (renamed or {}).get(option, option)
        refuse(name not in estimator.get_params(), f"{chosen} has no {flag(option)}: leave it out")
        estimator.set_params(**{name: value})
    return estimator


def argument(help: str) -> Any:
    """Return a positional argument."""
    return typer.Argument(help=help, show_default=False)


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ModelFile = Annotated[Path, argument("Model file, written by 'apexrank fit'.")]


@dataclass(frozen=True)
class ReportOptions:
    """A report to write."""

    report: Path | None = written("HTML report to write, a single self-contained page.")
    title: str | None = written("Title of the report.")


@dataclass(frozen=True)
class GraphStudyOutputs(ReportOptions):
    """Files that a study of a graph writes."""

    output: Path | None = written("CSV or Parquet file to write the whole table to.")

    def check(self, *inputs: Path | None) -> None:
        """Raise InputError unless the inputs exist and the files can be written."""
        out.check_table(self.output, *inputs)
        out.check_report(self.report, *inputs)
        out.check_inputs(*inputs)


@dataclass(frozen=True, kw_only=True)
class Strictness:
    """Whether guesses are errors."""

    strict: bool | None = reading(
        "Do not guess: treat any note about the input as an error, and write nothing.",
        "--strict",
    )

    def note(self, *messages: str) -> None:
        """Print notes about the input; with ``--strict`` the first of them is an error."""
        for message in messages if self.strict else ():
            raise InputError(f"{message} (--strict)")
        out.note(*messages)


@dataclass(frozen=True)
class CsvOptions(Strictness):
    """Format of CSV files."""

    encoding: str | None = reading(
        "Encoding of CSV files, such as latin-1, cp1252 or utf-16 (default: UTF-8)."
    )
    sep: str | None = reading(
        "Separator of CSV files, such as | or '\\t' (default: comma, semicolon or tab, detected in the header).",
        metavar="CHAR",
    )
    no_header: bool | None = reading(
        "The first line of CSV files is a row: call the columns column_1, column_2, ...", "--no-header"
    )
    decimal_comma: bool | None = reading(
        "Numbers in CSV files are written as 1,5 or 1.234,5.", "--decimal-comma"
    )
    missing_marks: list[str] | None = reading(
        "Values of CSV files that are missing, such as NA,?.", metavar="MARKS"
    )

    def given(self) -> dict[str, Any]:
        """Return the given options that apply only to CSV files."""
        return {
            each.name: getattr(self, each.name) for each in fields(CsvOptions)[1:] if getattr(self, each.name)
        }

    def refuse(self, wrong: object, reason: str) -> None:
        """Raise InputError if something is wrong and an option that applies only to CSV files is given."""
        refuse(wrong and self.given(), f"{reason}: leave out {' and '.join(map(flag, self.given()))}")

    def read_table(self, path: Path, *, index: str | None = None) -> io.Table:
        """Read a table and print notes about guesses; ballot files have their own note about the index."""
        separator = "\t" if self.sep == "\\t" else self.sep
        try:
            table = io.read_table(
                path,
                encoding=self.encoding,
                separator=separator,
                index=index,
                header=not self.no_header,
                decimal="," if self.decimal_comma else ".",
                missing=split_names(self.missing_marks),
            )
        except NotUtf8Error as error:
            with path.open("rb") as file:
                likely = "utf-16" if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "cp1252"
            raise InputError(f"{error}, or name its encoding, such as --encoding {likely}") from None
        self.note(*(guess for guess in table.guesses if index == "index" or "no name" not in guess))
        return table


ENGINE_IS_UTF8 = "--engine reads plain UTF-8 files only"
FOLDER_IS_UTF8 = "files in a folder must be plain UTF-8"


@dataclass(frozen=True)
class CostOptions:
    """Gain of a hit and cost of a false alarm."""

    cost_false_alarm: float | None = costs(
        "Cost of a negative row on the list; the list is cut where the total gain is largest. Needs --gain-hit.",
        metavar="COST",
    )
    gain_hit: float | None = costs(
        "Gain of a positive row on the list. Needs --cost-false-alarm.", metavar="GAIN"
    )

    def pair(self) -> tuple[float, float] | None:
        """Return the validated cost and gain, or None if neither is given."""
        cost, gain = self.cost_false_alarm, self.gain_hit
        if cost is None or gain is None:
            refuse(cost != gain, "--cost-false-alarm and --gain-hit go together: give both")
            return None
        positive = 0 <= cost < math.inf and 0 < gain < math.inf
        refuse(not positive, "--cost-false-alarm must be at least 0 and --gain-hit above 0")
        return cost, gain


@dataclass(frozen=True)
class FeatureColumns:
    """Roles of the columns of a training table."""

    positive: str | None = column("Positive value of the target; all other values are negative.")
    id: str | None = column("Column of row ids; not used as a feature.")
    weight: str | None = column("Column of row weights; not used as a feature.")
    features: list[str] | None = column(
        "Columns to use, such as a,b (default: all useful ones). 'all,a' uses a even if it would be left out."
    )
    drop: list[str] | None = column("Columns to leave out, such as a,b.")
    categorical: list[str] | None = column(
        "Columns to one-hot encode, or 'all' for every text column (default: text columns whose values "
        "repeat; none for grades)."
    )
    impute: str | None = column(
        "Missing numbers: median or mean of the column, or none (missing numbers are an error). Default: median; none "
        "for grades. Trees and curves take missing values as they are.",
        choices=("median", "mean", "none"),
    )
    scale: str | None = column(
        "Scaling of numbers: standard (mean 0, standard deviation 1), minmax (0 to 1, as in the papers), query (0 to 1 "
        "within each group; fit only) or none. Default: standard; minmax for rankboost.",
        choices=("standard", "minmax", "query", "none"),
    )

    def arguments(self, known: Sequence[str]) -> dict[str, Any]:
        """Return the options as the library takes them; ``known`` are the columns of the table."""
        names = ("features", "drop", "categorical")
        lists = {name: split_names(getattr(self, name), known) for name in names}
        return asdict(self) | lists | {"categorical": lists["categorical"] or None}


EdgePath = Annotated[
    Path,
    argument(
        "Edges: CSV, TSV, a plain list or JSON lines (also .gz), or Parquet; a folder or a quoted pattern of such "
        "files; - for standard input; or a graph file (see --format). graph rank also takes a folder of shards."
    ),
]
# copied from apexrank.graph.formats, whose import would load scipy
_FORMATS = (
    *("text", "jsonl", "parquet", "adjacency", "graphml", "gexf"),
    *("gml", "pajek", "matrix-market", "npz"),
)


@dataclass(frozen=True)
class RankingOutput:
    """Output of a ranking of vertices."""

    top: int | None = written("Keep the best N vertices.", metavar="N", min=1)
    output: Path | None = written(TABLE_OUTPUT)


REPEATED = {"sum": " summed", "once": " kept once", "error": ""}


@dataclass(frozen=True)
class EdgeOptions(Strictness):
    """Format of a file of edges."""

    source: str | None = reading(
        "Column of link sources, by name or position from 0 (default: source, src, from or the first column)."
    )
    target: str | None = reading("Column of link targets (default: target, dst, to or the second column).")
    weight: str | None = reading(
        "Column of link weights (default: weight, rating or value, otherwise every link weighs 1)."
    )
    undirected: bool = reading("Count every edge in both directions.", default=False)
    repeated: str = reading(
        "Repeated edges: sum their weights, keep them once, or raise an error.",
        default="sum",
        choices=tuple(REPEATED),
    )
    no_self_loops: bool = reading("Leave out links from a vertex to itself.", default=False)
    format: str | None = reading(
        f"File format: {', '.join(_FORMATS)} (default: detected from name and content). An adjacency list ('a b c' "
        "links a to b and to c) is not detected.",
        choices=_FORMATS,
    )

    def columns(self) -> dict[str, str | int | None]:
        """Return columns by name, or by position if the option is a whole number, for files without a header."""
        given = {"source": self.source, "target": self.target, "weight": self.weight}
        return {role: int(name) if name and name.isdecimal() else name for role, name in given.items()}

    def rules(self) -> dict[str, Any]:
        """Return the columns and rules as the library takes them."""
        return {**self.columns(), "format": self.format, **self._links()}

    def _links(self) -> dict[str, Any]:
        loops = "drop" if self.no_self_loops else "keep"
        directed = False if self.undirected else None
        return {"directed": directed, "repeated": self.repeated, "self_loops": loops}

    def read_edges(self, path: Path) -> Edges:
        """Read edges as they are in the file, and print which columns were guessed."""
        from apexrank.graph.files import edges_of_file
        from apexrank.graph.shards import is_shards

        only_rank = "is a graph in shards, which only graph rank reads: give the edges it was made of"
        refuse(is_shards(path), f"{path} {only_rank}")
        with out.working(f"reading {path}"):
            edges = edges_of_file(path, **self.columns(), format=self.format)
        if edges.assumed is not None:
            self.note(edges.assumed)
        return edges

    def build(self, edges: Edges, *, signed: bool = False) -> Any:
        """Build a graph or a signed graph from edges."""
        return apexrank.graph.as_graph(edges, **self._links(), signed=signed)

    def read(self, path: Path, *, signed: bool = False) -> Any:
        """Read a graph or a signed graph; one in shards is opened."""
        from apexrank.graph.shards import is_shards

        if is_shards(path):
            return apexrank.graph.as_graph(path, **self.rules(), signed=signed)
        return self.build(self.read_edges(path), signed=signed)


def load_table_ranker(path: Path) -> io.TableRanker:
    """Load a model of a table; a bare estimator does not know which columns it takes."""
    model = apexrank.load(path)
    kind = type(model).__name__
    refuse(
        not isinstance(model, io.TableRanker),
        f"{str(path)!r} holds a {kind} without the columns of a table: use apexrank.load in Python, or save a "
        "TableRanker",
    )
    return model


def load_ranker(path: Path, groups: str | None) -> io.TableRanker:
    """Load a model of a table; a model without a group column uses that of ``--groups``."""
    ranker = load_table_ranker(path)
    other = ranker.groups is not None and groups not in (None, ranker.groups)
    refuse(other, f"the model already ranks within groups (column {ranker.groups!r}): leave out --groups")
    ranker.groups = ranker.groups or groups
    return ranker


@dataclass(frozen=True)
class Workers:
    """Processes of ``--engine dask``."""

    workers: int | None = large("Number of processes for --engine dask (default: one per core).")

    def check(self, on_dask: bool) -> None:
        """Raise InputError for ``--workers`` without Dask, or below 1."""
        wrong = self.workers is not None and not (on_dask and self.workers >= 1)
        refuse(wrong, "--workers must be at least 1 and needs --engine dask")

    @contextmanager
    def cluster(self) -> Iterator[None]:
        """Start the worker processes and register them with Dask."""
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise MissingExtraError('--engine dask needs Dask: pip install "apexrank[dask]"') from error
        with (
            LocalCluster(
                n_workers=self.workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,  # the command prints errors itself, in one line
            ) as cluster,
            Client(cluster),
        ):
            yield


def read_seeds(path: Path, graph: Graph, what: str) -> dict[Any, float]:
    """Read the weights of the vertices in a file; print on stderr which are not in the graph."""
    from apexrank.graph.vertex_files import seed_weights

    seeds, unknown = seed_weights(path, graph, what)
    if unknown is not None:
        out.note(unknown)
    return seeds


BallotPath = Annotated[
    Path,
    argument(
        "Table with a header, one row per voter and one column per item (--kind orders: per place, such as 1st,2nd): "
        "CSV, TSV (also .gz) or Parquet; or a PrefLib file (.soc, .soi, .toc or .toi)."
    ),
]


@dataclass(frozen=True)
class BallotOptions(CsvOptions):
    """Format of a file of ballots."""

    kind: str | None = reading(
        "Meaning of the cells: scores (default; larger is better), ranks (1 is best), or orders (a row lists items, "
        "best first, and may stop early).",
        choices=("scores", "ranks", "orders"),
    )
    items_in: str | None = reading(
        "Where the items are: columns (default), or rows, with one column per voter.",
        choices=("columns", "rows"),
    )
    long: str | None = reading(
        "Columns of voter, item and score (or rank) of a table with one row per voter and item, such as "
        "user,film,stars.",
        metavar="VOTER,ITEM,SCORE",
    )
    id: str | None = reading(
        "Column of the voters' names, with --items-in rows of the items'; by default the first if it is text or "
        "named id, voter or item, or none."
    )
    weights: str | None = reading(
        "Column with the number of times each ballot was cast; with --items-in rows, weights such as a=2,b=1."
    )
    drop: list[str] | None = reading("Columns to leave out, such as a,b.")

    def read(self, path: Path) -> BallotFile:
        """Read a file of ballots."""
        from apexrank.aggregation import ballot_files

        long = self._check()
        with out.working(f"reading {path}"):
            if ballot_files.is_preflib(path):
                options = [name for name in asdict(self) if name != "strict"]
                self._refuse(f"{path} is a PrefLib file, which describes itself", *options)
                return ballot_files.read_preflib_ballots(path)
            ballot_files.check_ballot_table(path)
            table = self.read_table(path, index="row")
            drop = split_names(self.drop, table.names)
            kind, items_in = self.kind or "scores", self.items_in or "columns"
            layout = ballot_files.BallotLayout(kind, items_in, self.id, self.weights, drop, long)
            return layout.read(table)

    def _check(self) -> tuple[str, str, str] | None:
        """Raise InputError for contradictory options; return the three columns of ``--long``."""
        of_orders, rows = "orders have their items in the cells: leave out", "one row per voter"
        refuse(self.kind == "orders" and self.items_in == "rows", f"{of_orders} --items-in, {rows}")
        if self.long is None:
            return None
        names, such_as = split_names([self.long]), "columns of voter, item and score such as user,film,stars"
        refuse(len(names) != 3 or len(set(names)) < 3, f"--long must name the {such_as}, got {self.long!r}")
        self._refuse("--long names the columns itself", "items_in", "id", "drop")
        refuse(self.kind == "orders", f"{of_orders} --long, {rows}")
        return names[0], names[1], names[2]

    def _refuse(self, reason: str, *names: str) -> None:
        for name in names:
            refuse(getattr(self, name), f"{reason}: leave out {flag(name)}")


@dataclass(frozen=True)
class PointOptions:
    """Values of the scores and places of a ballot."""

    normalize: str | None = worth(
        "Normalise the scores of each voter: minmax, sum, zscore, rank or borda (default: raw scores)."
    )
    points: str | None = worth(
        "Points for each place of ranks and orders: borda (default), linear, reciprocal, dcg, or a list such as 3,2,1."
    )
    missing: str | None = worth(
        "Missing scores: ignore (no opinion), or last (below all others; default for orders).",
        choices=("ignore", "last"),
    )

    def check(self, kind: str | None, path: Path) -> Any:
        """Check the options before a file is read; return the points by name, or as a list by place.

        Examples
        --------
        >>> PointOptions(points="dcg").check("ranks", Path("a.csv"))
        'dcg'
        >>> PointOptions(points="5,3,1").check("ranks", Path("a.csv"))
        [5.0, 3.0, 1.0]
        """
        from apexrank.aggregation.ballot_files import is_preflib

        if self.points is None:
            return None
        of_scores = (kind or "scores") == "scores" and not is_preflib(path)
        others = "for scores use --normalize, such as borda"
        refuse(of_scores, f"--points are for --kind ranks and orders: {others}")
        try:
            return [float(part) for part in self.points.split(",")]
        except ValueError:
            return self.points


@contextmanager
def errors_about(ballots: BallotFile) -> Iterator[None]:
    """Name the file in the library's errors about its ballots."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{ballots.source}: {error}") from None


def note_ballots(ballots: BallotFile, reading: BallotOptions, *, scales: bool) -> None:
    """Print guesses about a file and, if requested, a note that its voters use different scales."""
    uneven = ballots.uneven_scales() if scales else None
    reading.note(*(f"{ballots.source}: {each}" for each in (*ballots.notes, uneven) if each))


def note_gaps(ballots: BallotFile, missing: str) -> None:
    """Print a note about missing scores that the table does not show."""
    if gaps := ballots.gaps(missing):
        out.note(f"{ballots.source}: {gaps}")


def check_tables(ballots: Path, *outputs: Path | None) -> None:
    """Check the tables to write about a file of ballots, before any work."""
    given = [output for output in outputs if output is not None]
    for output in given:
        out.check_table(output, ballots)
    twice = len({output.resolve() for output in given}) < len(given)
    refuse(twice, f"two outputs have the same name {str(outputs[0])!r}: give them different names")
