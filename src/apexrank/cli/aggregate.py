"""``apexrank aggregate``: one ranking of items from the scores, ranks or orders of many voters."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli import ballot_options as options
from apexrank.cli.aggregate_page import write_page
from apexrank.cli.aggregate_report import print_report, report_of, tell_doubts
from apexrank.cli.ballot_options import method_option, output_option
from apexrank.cli.ballots import Ballots
from apexrank.cli.comparison import show_comparison
from apexrank.cli.edge_options import Json
from apexrank.cli.output import is_terminal, print_frame, print_json, split_names, working
from apexrank.cli.pages import check_report
from apexrank.cli.pictures import check_picture, save_figure
from apexrank.cli.profile import Profile, about
from apexrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from apexrank.aggregation.bootstrap import RankBootstrap
    from apexrank.aggregation.rank_aggregation import Aggregation

METHODS = ("lovasz-bregman", "borda", "copeland", "kemeny", "median", "combsum", "combmnz", "rrf")
_SCORE_METHODS = ("lovasz-bregman", "combsum", "combmnz")
_METHODS_OF = {  # an option that other methods would not look at
    "k": ("rrf",),
    "max_exact": ("kemeny",),
    "time_limit": ("kemeny",),
    "normalize": _SCORE_METHODS,
    "points": _SCORE_METHODS,
}
_DEFAULTS = {"k": 60.0, "max_exact": 40, "time_limit": 60.0}
_TOP_DRAWN = 20


def aggregate(
    ballots: options.BallotFile,
    method: Annotated[
        str | None,
        method_option(
            f"One of {', '.join(METHODS)}; lovasz-bregman, the order of the mean score, by default."
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        method_option(
            "Show the ranks by several methods side by side, such as borda,kemeny, or all.", metavar="METHODS"
        ),
    ] = None,
    k: Annotated[
        float | None, method_option("Of rrf, which adds 1/(k + place); 60 by default.", "--k")
    ] = None,
    time_limit: Annotated[
        float | None, method_option("Seconds that kemeny may take for a proof; 60 by default.")
    ] = None,
    max_exact: Annotated[
        int | None,
        method_option(
            "Most items that beat each other in a circle for which kemeny looks for a proof; 40 by default.",
            min=0,
        ),
    ] = None,
    min_support: Annotated[
        float, method_option("Rank items that fewer voters scored behind all others.", min=0)
    ] = 0.0,
    bootstrap: Annotated[
        int | None,
        method_option(
            "Draw the voters anew N times: 95% intervals of ranks, chance to be first.", metavar="N", min=2
        ),
    ] = None,
    seed: Annotated[int, method_option("For the draws.", min=0)] = 0,
    normalize: options.Normalize = None,
    points: options.Points = None,
    missing: options.Missing = None,
    kind: options.Kind = None,
    items_in: options.ItemsIn = None,
    long: options.Long = None,
    id: options.Id = None,
    weights: options.Weights = None,
    drop: options.Drop = None,
    top: Annotated[int | None, output_option("Keep the best N items.", metavar="N", min=1)] = None,
    pairwise: Annotated[
        Path | None,
        output_option("CSV or Parquet file to write: how many voters prefer the row's item to the column's."),
    ] = None,
    figure: Annotated[
        Path | None, output_option("Picture of the ranking to write: .png, .svg or .pdf.")
    ] = None,
    report: Annotated[
        Path | None,
        output_option("Page to write, .html: intervals, other methods, majorities and voters on one page."),
    ] = None,
    output: Annotated[
        Path | None, output_option("CSV or Parquet file to write; default: the screen.", "--output", "-o")
    ] = None,
    json: Json = False,
) -> None:
    """Merge the scores, ranks or orders of many voters into one ranking, best first."""
    options.check_outputs(ballots, output, pairwise)
    if figure is not None:
        check_picture(figure)
    if report is not None:
        check_report(report, ballots)
    methods = _methods(method, compare, bootstrap=bootstrap, pairwise=pairwise, figure=figure, report=report)
    options.check_missing(missing)
    given = {"normalize": normalize, "points": options.read_points(points, kind, ballots)}
    given |= {"k": k, "max_exact": max_exact, "time_limit": time_limit}
    rules = {name: _DEFAULTS.get(name) if value is None else value for name, value in given.items()}
    rules["min_support"] = min_support
    _check_rules(methods, rules, [name for name, value in given.items() if value is not None])
    began = time.perf_counter()
    profile = Ballots(kind, items_in, id, weights, drop, long).read(ballots)
    read = time.perf_counter()
    results = _merge(profile, methods, missing, rules)
    seconds = {"reading": round(read - began, 3), "merging": round(time.perf_counter() - read, 3)}
    result = results[0]
    drawn = None if bootstrap is None else _draw_voters(profile, result, bootstrap, seed)
    if pairwise is not None:
        _write_pairwise(profile, result, pairwise)
    profile.tell(scales=normalize is None and any(each.rule.takes_scores for each in results))
    if compare is not None:
        show_comparison(profile, results, seconds, top, output, json)
        return
    ranked = _ranked(result, drawn)[:top]
    if output is not None:
        from apexrank.io import write_table

        write_table(ranked, output)
    if figure is not None:
        _draw(result, drawn, figure, top or _TOP_DRAWN)
    if report is not None:
        write_page(profile, result, drawn, report, top, seed)
    files = [str(path) for path in (output, pairwise, figure, report) if path is not None]
    if output is None and not json:
        print_frame(ranked)
        if not is_terminal():
            tell_doubts(profile, result, ranked["item"].to_list())
            if files:
                typer.echo(f"written: {', '.join(files)}", err=True)  # stdout is the table
            return
    told = report_of(profile, result) | {"bootstrap": bootstrap, "seconds": seconds}
    told |= {"rows": len(ranked), "files": files}
    if json:
        print_json(told | ({"ranking": ranked.to_dicts()} if output is None else {}))
    else:
        print_report(told, profile, result, None if output is None else ranked)


def _methods(method: str | None, compare: list[str] | None, **single: Any) -> list[str]:
    """Names of the methods to use; ``single`` are the options that go with one method only."""
    if compare is None:
        return [method or METHODS[0]]
    given = [name for name, value in {"method": method, **single}.items() if value is not None]
    if given:
        raise InputError(f"--{given[0]} is for one method: leave it out, or leave out --compare")
    names = list(dict.fromkeys(split_names(compare)))
    return list(METHODS) if names == ["all"] else names


def _check_rules(methods: list[str], rules: dict[str, Any], given: list[str]) -> None:
    """Refuse unknown methods, bad options, and options ``given`` that none of the methods looks at."""
    if not methods:
        raise InputError(f"--compare names no method: use some of {', '.join(METHODS)}, or all")
    for name in methods:
        options.read_options(name, **rules)
    for option in given:
        users = _METHODS_OF[option]
        if not set(users) & set(methods):
            raise InputError(
                f"--{option.replace('_', '-')} is for --method {' or '.join(users)}: leave it out"
            )
    if rules["points"] is not None and rules["normalize"] in ("rank", "borda"):
        raise InputError(
            f"--normalize {rules['normalize']} gives places points of its own: leave out --points"
        )


def _merge(
    profile: Profile, methods: list[str], missing: str | None, rules: dict[str, Any]
) -> list[Aggregation]:
    from apexrank.aggregation.rank_aggregation import aggregate as merge

    results = []
    for name in methods:
        with working(f"merging {len(profile.values)} ballots by {name}"), about(profile):
            results.append(
                merge(
                    profile.values,
                    profile.weights,
                    method=name,  # type: ignore[arg-type]
                    kind=profile.kind,  # type: ignore[arg-type]
                    missing=profile.missing(missing, name),
                    items=profile.items,
                    **rules,
                )
            )
    return results


def _draw_voters(profile: Profile, result: Aggregation, n: int, seed: int) -> RankBootstrap:
    if len(profile.values) == 1:
        raise InputError(
            f"{profile.source} holds one ballot, of which nothing can be drawn: leave out --bootstrap"
        )
    with working(f"drawing the voters {n} times"), about(profile):
        return result.bootstrap(n, random_state=seed)


def _write_pairwise(profile: Profile, result: Aggregation, path: Path) -> None:
    import polars as pl

    from apexrank.io import write_table

    with about(profile):
        frame = pl.DataFrame(result.pairwise, schema=profile.items, orient="row")
    head = "item" if "item" not in profile.items else "preferred item"
    write_table(frame.insert_column(0, pl.Series(head, profile.items)), path)


def _ranked(result: Aggregation, drawn: RankBootstrap | None) -> pl.DataFrame:
    """Items best first, with the intervals of their ranks where voters were drawn."""
    import numpy as np
    import polars as pl

    ranked = result.to_frame()
    if drawn is None:
        return ranked
    order = np.argsort(result.ranks, kind="stable")  # as in the table
    ends = {"low": drawn.low, "high": drawn.high, "first": drawn.first}
    return ranked.with_columns(pl.Series(name, values[order]) for name, values in ends.items())


def _draw(result: Aggregation, drawn: RankBootstrap | None, path: Path, top: int) -> None:
    """Write the picture, with the intervals of the table."""
    from apexrank.plot.style import pyplot

    with working(f"drawing {path}"):
        display = result.plot(top=top, bootstrap=drawn or 0)
        save_figure(display.figure_, path)
        pyplot().close(display.figure_)
