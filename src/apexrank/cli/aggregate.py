"""``apexrank aggregate``: one ranking of items from the scores, ranks or orders of many voters."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli.ballots import (
    BallotFile,
    Ballots,
    Drop,
    Id,
    ItemsIn,
    Kind,
    Missing,
    Normalize,
    Points,
    Profile,
    Weights,
    about,
    check_missing,
    check_outputs,
    read_points,
)
from apexrank.cli.edge_options import Json
from apexrank.cli.output import is_terminal, print_frame, print_json, print_table, split_names, working
from apexrank.cli.pictures import check_picture, save_figure
from apexrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from apexrank.aggregation.result import Aggregation

METHODS = ("lovasz-bregman", "borda", "copeland", "kemeny", "median", "combsum", "combmnz", "rrf")
_METHOD, _FILES = "Method", "Output"
_ROWS_SHOWN, _TIES_SHOWN, _TOP_DRAWN = 10, 5, 20
_CHEAP = 2**23  # scores up to which agreement and the Condorcet winner are looked up unasked
_CHEAP_GAPS = 20_000  # voters up to which agreement is, where each has items of its own


def _option(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_METHOD, **more)


def _file(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_FILES)


def aggregate(
    ballots: BallotFile,
    method: Annotated[
        str | None,
        _option(f"One of {', '.join(METHODS)}; lovasz-bregman, the order of the mean score, by default."),
    ] = None,
    compare: Annotated[
        list[str] | None,
        _option(
            "Show the ranks by several methods side by side, such as borda,kemeny, or all.", metavar="METHODS"
        ),
    ] = None,
    k: Annotated[float | None, _option("Of rrf, which adds 1/(k + place); 60 by default.", "--k")] = None,
    time_limit: Annotated[float, _option("Seconds that kemeny may take for a proof.")] = 60.0,
    max_exact: Annotated[
        int, _option("Most items that beat each other in a circle for which kemeny looks for a proof.", min=0)
    ] = 40,
    bootstrap: Annotated[
        int | None,
        _option(
            "Draw the voters anew N times: 95% intervals of ranks, chance to be first.", metavar="N", min=2
        ),
    ] = None,
    seed: Annotated[int, _option("For the draws.", min=0)] = 0,
    normalize: Normalize = None,
    points: Points = None,
    missing: Missing = None,
    kind: Kind = None,
    items_in: ItemsIn = None,
    id: Id = None,
    weights: Weights = None,
    drop: Drop = None,
    top: Annotated[
        int | None, typer.Option(help="Keep the best N items.", metavar="N", min=1, rich_help_panel=_FILES)
    ] = None,
    pairwise: Annotated[
        Path | None,
        _file("CSV or Parquet file to write: how many voters prefer the row's item to the column's."),
    ] = None,
    figure: Annotated[Path | None, _file("Picture of the ranking to write: .png, .svg or .pdf.")] = None,
    output: Annotated[
        Path | None, _file("CSV or Parquet file to write; default: the screen.", "--output", "-o")
    ] = None,
    json: Json = False,
) -> None:
    """Merge the scores, ranks or orders of many voters into one ranking, best first."""
    from apexrank.io import write_table

    check_outputs(ballots, output, pairwise)
    if figure is not None:
        check_picture(figure)
    methods = _methods(method, compare, bootstrap=bootstrap, pairwise=pairwise, figure=figure)
    if k is not None and "rrf" not in methods:
        raise InputError("--k is for --method rrf: leave it out")
    check_missing(missing)
    options = {"normalize": normalize, "points": read_points(points, kind, ballots)}
    options |= {"k": 60.0 if k is None else k, "max_exact": max_exact, "time_limit": time_limit}
    _check_rules(methods, options)
    began = time.perf_counter()
    profile = Ballots(kind, items_in, id, weights, drop).read(ballots)
    read = time.perf_counter()
    results = _merge(profile, methods, missing, options)
    seconds = {"reading": round(read - began, 3), "merging": round(time.perf_counter() - read, 3)}
    scales = normalize is None and any(result.rule.takes_scores for result in results)
    if compare is not None:
        profile.tell(scales=scales)
        _show_comparison(profile, results, seconds, top, output, json)
        return
    ranked = _ranked(profile, results[0], bootstrap, seed)
    if pairwise is not None:
        _write_pairwise(profile, results[0], pairwise)
    profile.tell(scales=scales)
    if output is not None:
        write_table(ranked[:top], output)
    if figure is not None:
        _draw(results[0], figure, top=top or _TOP_DRAWN, bootstrap=bootstrap or 0, random_state=seed)
    if output is None and not json:
        print_frame(ranked[:top])
        if not is_terminal():
            return
    files = [str(path) for path in (output, pairwise, figure) if path is not None]
    report = _report(profile, results[0], missing) | {"bootstrap": bootstrap, "seconds": seconds}
    report |= {"rows": len(ranked[:top]), "files": files}
    if json:
        print_json(report | ({"ranking": ranked[:top].to_dicts()} if output is None else {}))
    else:
        _print(report, profile, ranked[:top], output)


def _methods(method: str | None, compare: list[str] | None, **single: Any) -> list[str]:
    """Names of the methods to use, checked."""
    if compare is None:
        return [method or METHODS[0]]
    given = [name for name, value in {"method": method, **single}.items() if value is not None]
    if given:
        raise InputError(f"--{given[0]} is for one method: leave it out, or leave out --compare")
    names = list(dict.fromkeys(split_names(compare)))
    return list(METHODS) if names == ["all"] else names


def _check_rules(methods: list[str], options: dict[str, Any]) -> None:
    from apexrank.aggregation.points import read_rule

    if not methods:
        raise InputError(f"--compare names no method: use some of {', '.join(METHODS)}, or all")
    for name in methods:
        read_rule(name, **options)


def _merge(
    profile: Profile, methods: list[str], missing: str | None, options: dict[str, Any]
) -> list[Aggregation]:
    from apexrank.aggregation.merging import aggregate as merge

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
                    **options,
                )
            )
    return results


def _ranked(profile: Profile, result: Aggregation, bootstrap: int | None, seed: int) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    ranked = result.to_frame()
    if bootstrap is None:
        return ranked
    if len(profile.values) == 1:
        raise InputError(
            f"{profile.source} holds one ballot, of which nothing can be drawn: leave out --bootstrap"
        )
    with working(f"drawing the voters {bootstrap} times"), about(profile):
        drawn = result.bootstrap(bootstrap, random_state=seed)
    order = np.argsort(result.ranks, kind="stable")  # as in the table
    ends = {"low": drawn.low, "high": drawn.high, "first": drawn.first}
    return ranked.with_columns(pl.Series(name, values[order]) for name, values in ends.items())


def _report(profile: Profile, result: Aggregation, missing: str | None) -> dict[str, Any]:
    rule = profile.missing(missing, result.method)
    report: dict[str, Any] = {
        "ballots_file": profile.source,
        **({"title": profile.title} if profile.title else {}),
        "ballots": len(profile.values),
        "voters": profile.total,
        "items": len(profile.items),
        "missing": {"number": profile.n_missing, "rule": rule},
        "method": result.method,
        "confidence": result.confidence,
        "agreement": _agreement(result),
        "ties": [list(group) for group in result.ties],
    }
    if profile.values.size <= _CHEAP:
        report["condorcet_winner"] = result.condorcet_winner
    if result.proof is not None:
        report |= {"cost": result.cost, "bound": result.bound, "optimal": result.optimal}
    return report


def _agreement(result: Aggregation) -> float | None:
    """Mean of the voters' Kendall tau with the result, of those that say anything; None where it takes long."""
    import numpy as np

    ballots = result.ballots
    gaps = ballots.missing == "ignore" and np.isnan(ballots.scores).any()
    if ballots.scores.size > _CHEAP or (gaps and ballots.n_voters > _CHEAP_GAPS):
        return None
    tau, weight = result.agreement, result.ballots.weight(slice(None))
    known = ~np.isnan(tau) & (weight > 0)
    return float(np.average(tau[known], weights=weight[known])) if known.any() else None


def _write_pairwise(profile: Profile, result: Aggregation, path: Path) -> None:
    import polars as pl

    from apexrank.io import write_table

    with about(profile):
        frame = pl.DataFrame(result.pairwise, schema=profile.items, orient="row")
    head = "item" if "item" not in profile.items else "preferred item"
    write_table(frame.insert_column(0, pl.Series(head, profile.items)), path)


def _draw(result: Aggregation, path: Path, **options: Any) -> None:
    from matplotlib import pyplot as plt

    with working(f"drawing {path}"):
        figure = result.plot(**options).figure_
        save_figure(figure, path)
        plt.close(figure)


def _print(report: dict[str, Any], profile: Profile, kept: pl.DataFrame, output: Path | None) -> None:
    if output is not None:
        shown = kept.head(_ROWS_SHOWN)
        print_table(shown.columns, shown.rows())
    for line in _lines(report, profile):
        typer.echo(line)
    if report["files"]:
        rest = "" if output is None else f"; {len(kept)} of {report['items']} items, best first"
        typer.echo(f"written: {', '.join(report['files'])}{rest}")


def _lines(report: dict[str, Any], profile: Profile) -> list[str]:
    """What is known of a result, in words."""
    facts = [f"confidence {report['confidence']:.2f}"]
    if report["agreement"] is not None:
        facts.append(f"voters agree with it by {report['agreement']:.2f} (mean Kendall tau)")
    if "condorcet_winner" in report:
        winner = report["condorcet_winner"]
        facts.append("no Condorcet winner" if winner is None else f"Condorcet winner {winner}")
    seconds = report["seconds"]
    lines = [
        f"{profile.sentence(report['missing']['rule'])}; {report['method']}: {', '.join(facts)}; "
        f"read in {seconds['reading']:.1f} s, merged in {seconds['merging']:.1f} s"
    ]
    if "optimal" in report:
        cost, bound = f"{report['cost']:,.6g}", f"{report['bound']:,.6g}"
        proof = "no order has fewer" if report["optimal"] else f"every order at least {bound} (--max-exact)"
        lines.append(f"the order contradicts {cost} preferences of voters between two items; {proof}")
    if report["ties"]:
        groups = [" = ".join(group) for group in report["ties"][:_TIES_SHOWN]]
        more = len(report["ties"]) - len(groups)
        lines.append(f"tied: {'; '.join(groups)}" + (f"; and {more} more groups" if more else ""))
    if report["bootstrap"]:
        lines.append(
            f"low, high and first: 95% interval of the rank, and share of first ranks, in {report['bootstrap']} draws "
            "of the voters"
        )
    return lines


def _show_comparison(
    profile: Profile,
    results: list[Aggregation],
    seconds: dict[str, float],
    top: int | None,
    output: Path | None,
    json: bool,
) -> None:
    """Ranks by all methods, in the order of the first one."""
    import polars as pl

    ranks = {result.method: result.ranks for result in results}
    frame = pl.DataFrame({"item": profile.items, **ranks}).sort(results[0].method, maintain_order=True)[:top]
    if output is not None:
        from apexrank.io import write_table

        write_table(frame, output)
    elif not json:
        print_frame(frame)
        if not is_terminal():
            return
    rows = [_compared(result, results[0]) for result in results]
    if json:
        found: dict[str, Any] = {
            "ballots_file": profile.source,
            "voters": profile.total,
            "items": len(profile.items),
        }
        found |= {"methods": rows, "seconds": seconds, "files": [str(output)] if output else []}
        print_json(found | ({"ranks": frame.to_dicts()} if output is None else {}))
        return
    if output is not None:
        print_table(frame.columns, frame.head(_ROWS_SHOWN).rows())
    table = []
    for row in rows:
        name = f"{row['method']}, missing: {row['missing']}" if profile.n_missing else row["method"]
        table.append([name, " = ".join(row["first"]), row["confidence"], row["agreement"]])
    print_table(["method", "first", "confidence", "mean Kendall tau with the voters"], table)
    typer.echo(f"{profile.sentence(rows[0]['missing'])}; merged in {seconds['merging']:.1f} s")
    if output is not None:
        typer.echo(
            f"written: {output}; {len(frame)} of {len(profile.items)} items, their ranks by each method"
        )


def _compared(result: Aggregation, first: Aggregation) -> dict[str, Any]:
    """What is known of one method; agreement is with the same ballots for all."""
    known = {
        "method": result.method,
        "missing": result.ballots.missing,
        "first": result.order[: int((result.ranks == 1).sum())],
        "confidence": result.confidence,
        "agreement": _agreement(replace(result, ballots=first.ballots)),
    }
    proof = {"cost": result.cost, "bound": result.bound, "optimal": result.optimal}
    return known if result.proof is None else known | proof
