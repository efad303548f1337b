"""``apexrank aggregate``: one ranking of items from the scores, ranks or orders of many voters."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from apexrank.aggregation.ballot_files import BallotFile
    from apexrank.aggregation.bootstrap import RankBootstrap
    from apexrank.aggregation.rank_aggregation import Aggregation

METHODS = ("lovasz-bregman", "borda", "copeland", "kemeny", "median", "combsum", "combmnz", "rrf")
_SCORE_METHODS = ("lovasz-bregman", "combsum", "combmnz")
_METHODS_OF = {  # options that other methods ignore
    "k": ("rrf",),
    "max_exact": ("kemeny",),
    "time_limit": ("kemeny",),
    "normalize": _SCORE_METHODS,
    "points": _SCORE_METHODS,
}
_TIES_SHOWN = 5
_TOP_DRAWN, _TOP_OF_PAGE, _DRAWS_OF_PAGE = 20, 30, 500  # unless --top and --bootstrap say otherwise
_CHEAP = 2**23  # scores up to which agreement and the Condorcet winner are computed unasked
_CHEAP_GAPS = 20_000  # voters up to which agreement is, where each has items of its own
_MOST_PROVEN = 200  # items of a cycle, whose proof is a programme of more than a million rows


@dataclass(frozen=True)
class RuleOptions:
    """Parameters of single methods."""

    k: float | None = opt.method("Of rrf, which adds 1/(k + place); 60 by default.", "--k")
    time_limit: float | None = opt.method("Seconds that kemeny may take for a proof; 60 by default.")
    max_exact: int | None = opt.method(
        "Most items that beat each other in a circle for which kemeny looks for a proof; 40 by default.",
        min=0,
    )


@dataclass(frozen=True)
class MergeOptions:
    """Methods, and the bootstrap of the voters."""

    method: str | None = opt.method(
        f"One of {', '.join(METHODS)}; lovasz-bregman, the order of the mean score, by default."
    )
    compare: list[str] | None = opt.method(
        "Show the ranks by several methods side by side, such as borda,kemeny, or all.", metavar="METHODS"
    )
    min_support: float = opt.method(
        "Rank items that fewer voters scored behind all others.", min=0, default=0.0
    )
    bootstrap: int | None = opt.method(
        "Draw the voters anew N times: 95% intervals of ranks, chance to be first.", metavar="N", min=2
    )
    seed: int = opt.method("For the draws.", min=0, default=0)


@dataclass(frozen=True)
class MergeOutputs:
    """Files to write."""

    top: int | None = opt.written("Keep the best N items.", metavar="N", min=1)
    pairwise: Path | None = opt.written(
        "CSV or Parquet file to write: how many voters prefer the row's item to the column's."
    )
    figure: Path | None = opt.written("Picture of the ranking to write: .png, .svg or .pdf.")
    report: Path | None = opt.written(
        "Page to write, .html: intervals, other methods, majorities and voters on one page."
    )
    output: Path | None = opt.written(opt.TABLE_OUTPUT, "--output", "-o")


@opt.option_groups
def aggregate(
    ballots: opt.BallotPath,
    *,
    options: MergeOptions,
    rule: RuleOptions,
    worth: opt.PointOptions,
    reading: opt.BallotOptions,
    files: MergeOutputs,
    json: opt.Json = False,
) -> None:
    """Merge the scores, ranks or orders of many voters into one ranking, best first."""
    opt.check_tables(ballots, files.output, files.pairwise)
    out.check_picture(files.figure)
    out.check_report(files.report, ballots)
    methods = _methods(options, files)
    given = {"normalize": worth.normalize, "points": worth.check(reading.kind, ballots)}
    given = {name: value for name, value in given.items() if value is not None} | opt.given_options(rule)
    _check_rules(methods, given, options.min_support)
    began = time.perf_counter()
    profile = reading.read(ballots)
    read = time.perf_counter()
    given["min_support"] = options.min_support
    results = [_merge(profile, name, worth.missing, given) for name in methods]
    seconds = {"reading": round(read - began, 3), "merging": round(time.perf_counter() - read, 3)}
    result = results[0]
    drawn = _draw_voters(profile, result, options)
    if files.pairwise is not None:
        _write_pairwise(profile, result, files.pairwise)
    scales = worth.normalize is None and any(each.rule.takes_scores for each in results)
    opt.note_ballots(profile, scales=scales)
    if options.compare is not None:
        _show_comparison(profile, results, seconds, files, json)
        return
    ranked = _ranked(result, drawn)[: files.top]
    out.write_frame(ranked, files.output)
    if files.figure is not None:
        with out.working(f"drawing {files.figure}"):
            display = result.plot(top=files.top or _TOP_DRAWN, bootstrap=drawn or 0)
            out.save_figure(display.figure_, files.figure)
    if files.report is not None:
        _write_page(profile, result, drawn, files.report, files.top, options.seed)
    paths = (files.output, files.pairwise, files.figure, files.report)
    written = [str(path) for path in paths if path is not None]
    if not json and not out.show_frame(ranked, files.output):
        _note_doubts(profile, result, ranked["item"].to_list())
        if written:
            typer.echo(f"written: {', '.join(written)}", err=True)  # stdout is the table
        return
    told = _report(profile, result) | {"bootstrap": options.bootstrap, "seconds": seconds}
    told |= {"rows": len(ranked), "files": written}
    if json:
        out.print_json(told | ({"ranking": ranked.to_dicts()} if files.output is None else {}))
    else:
        _print(told, profile, result, files.output)


def _methods(options: MergeOptions, files: MergeOutputs) -> list[str]:
    """Return the names of the methods to use."""
    if options.compare is None:
        return [options.method or METHODS[0]]
    for group, names in ((options, ("method", "bootstrap")), (files, ("pairwise", "figure", "report"))):
        for name in names:
            if getattr(group, name) is not None:
                raise InputError(f"--{name} is for one method: leave it out, or leave out --compare")
    chosen = list(dict.fromkeys(opt.split_names(options.compare)))
    return list(METHODS) if chosen == ["all"] else chosen


def _check_rules(methods: list[str], given: dict[str, Any], min_support: float) -> None:
    """Refuse unknown methods, bad options, and options that none of the methods uses."""
    if not methods:
        raise InputError(f"--compare names no method: use some of {', '.join(METHODS)}, or all")
    for name in methods:
        opt.read_rule(name, min_support=min_support, **given)
    for option in given:
        users = _METHODS_OF[option]
        if not set(users) & set(methods):
            raise InputError(
                f"--{option.replace('_', '-')} is for --method {' or '.join(users)}: leave it out"
            )
    if "points" in given and given.get("normalize") in ("rank", "borda"):
        raise InputError(
            f"--normalize {given['normalize']} gives places points of its own: leave out --points"
        )


def _merge(profile: BallotFile, name: str, missing: str | None, rules: dict[str, Any]) -> Aggregation:
    from apexrank.aggregation.rank_aggregation import aggregate as merge

    with out.working(f"merging {len(profile.values)} ballots by {name}"), opt.errors_about(profile):
        return merge(
            profile.values,
            profile.weights,
            method=name,  # type: ignore[arg-type]
            kind=profile.kind,  # type: ignore[arg-type]
            missing=profile.missing_rule(missing, name),
            items=profile.items,
            **rules,
        )


def _draw_voters(profile: BallotFile, result: Aggregation, options: MergeOptions) -> RankBootstrap | None:
    n = options.bootstrap
    if n is None:
        return None
    if len(profile.values) == 1:
        raise InputError(
            f"{profile.source} holds one ballot, of which nothing can be drawn: leave out --bootstrap"
        )
    with out.working(f"drawing the voters {n} times"), opt.errors_about(profile):
        return result.bootstrap(n, random_state=options.seed)


def _write_pairwise(profile: BallotFile, result: Aggregation, path: Path) -> None:
    import polars as pl

    from apexrank.io import write_table

    with opt.errors_about(profile):
        frame = pl.DataFrame(result.pairwise, schema=profile.items, orient="row")
    head = "item" if "item" not in profile.items else "preferred item"
    write_table(frame.insert_column(0, pl.Series(head, profile.items)), path)


def _ranked(result: Aggregation, drawn: RankBootstrap | None) -> pl.DataFrame:
    """Return the items, best first, with the intervals of their ranks where voters were drawn."""
    import numpy as np
    import polars as pl

    ranked = result.to_frame()
    if drawn is None:
        return ranked
    order = np.argsort(result.ranks, kind="stable")  # as in the table
    ends = {"low": drawn.low, "high": drawn.high, "first": drawn.first}
    return ranked.with_columns(pl.Series(name, values[order]) for name, values in ends.items())


def _write_page(
    profile: BallotFile,
    result: Aggregation,
    drawn: RankBootstrap | None,
    path: Path,
    top: int | None,
    seed: int,
) -> None:
    """Write the report, with the intervals of the table where voters were drawn for it."""
    from apexrank.report import build, summarise_votes

    column = profile.voters.to_series(0)
    numbered = f"{column.name} " if column.dtype.is_integer() else ""
    voters = [f"{numbered}{voter}" for voter in column.to_list()]
    with out.working(f"making {path}") as status, opt.errors_about(profile):
        summary = summarise_votes(
            replace(result, ballots=replace(result.ballots, voters=voters)),
            bootstrap=_DRAWS_OF_PAGE if drawn is None else drawn,
            top=top or _TOP_OF_PAGE,
            random_state=seed,
            progress=None if status is None else lambda stage: status.update(f"making {path}: {stage}"),
        )
        notes = [opt.in_options(text) for text in profile.notes]
        guesses = [f"{text[:1].upper()}{text[1:]}." for text in notes]
        title = profile.title or f"Votes of {Path(profile.source).name}"
        build(replace(summary, notes=[*guesses, *summary.notes]), path, title=title)


def _report(profile: BallotFile, result: Aggregation) -> dict[str, Any]:
    """Return what is known of the ballots and of their ranking."""
    report = profile.to_dict(result.ballots.missing) | {
        "method": result.method,
        "confidence": _confidence(profile, result),
        "agreement": _mean_agreement(result),
        "ties": [list(group) for group in result.ties],
    }
    if profile.values.size <= _CHEAP:
        report["condorcet_winner"] = result.condorcet_winner
    return report | _certificate(result)


def _confidence(profile: BallotFile, result: Aggregation) -> float | None:
    """Return the confidence; None where voters ignore items, as the means are then not of the same voters."""
    return None if profile.n_missing and result.ballots.missing == "ignore" else result.confidence


def _certificate(result: Aggregation) -> dict[str, Any]:
    """Return what ``kemeny`` proves about its order; empty for other methods."""
    if result.proof is None:
        return {}
    return {"cost": result.cost, "bound": result.bound, "optimal": result.optimal}


def _mean_agreement(result: Aggregation) -> float | None:
    """Average the voters' Kendall tau with the result where it is defined; None where that takes long."""
    import numpy as np

    ballots = result.ballots
    gaps = ballots.missing == "ignore" and np.isnan(ballots.scores).any()
    if ballots.scores.size > _CHEAP or (gaps and ballots.n_voters > _CHEAP_GAPS):
        return None
    tau, weight = result.agreement, ballots.weight(slice(None))
    known = ~np.isnan(tau) & (weight > 0)
    return float(np.average(tau[known], weights=weight[known])) if known.any() else None


def _print(report: dict[str, Any], profile: BallotFile, result: Aggregation, output: Path | None) -> None:
    """Print what is known in words, below the table."""
    facts = [] if report["confidence"] is None else [f"confidence {report['confidence']:.2f}"]
    if report["agreement"] is not None:
        facts.append(f"voters agree with it by {report['agreement']:.2f} (mean Kendall tau)")
    if "condorcet_winner" in report:
        winner = report["condorcet_winner"]
        facts.append("no Condorcet winner" if winner is None else f"Condorcet winner {winner}")
    seconds = report["seconds"]
    method = f"{report['method']}: {', '.join(facts)}" if facts else report["method"]
    typer.echo(
        f"{profile.sentence(report['missing']['rule'])}; {method}; "
        f"read in {seconds['reading']:.1f} s, merged in {seconds['merging']:.1f} s"
    )
    if result.proof is not None:
        typer.echo(_proof(result))
    if report["ties"]:
        typer.echo(_tied(report["ties"]))
    if report["bootstrap"]:
        typer.echo(
            f"low, high and first: 95% interval of the rank, and share of first ranks, in {report['bootstrap']} draws "
            "of the voters"
        )
    if report["files"]:
        rest = "" if output is None else f"; {report['rows']} of {report['items']} items, best first"
        typer.echo(f"written: {', '.join(report['files'])}{rest}")


def _note_doubts(profile: BallotFile, result: Aggregation, shown: list[str]) -> None:
    """Print on stderr what qualifies a table of the items ``shown`` that goes to a program."""
    opt.note_gaps(profile, result.ballots.missing)
    _note_proof(profile, result)
    kept = set(shown)
    ties = [list(group) for group in result.ties if not kept.isdisjoint(group)]
    if ties:
        out.note(f"{profile.source}: {_tied(ties)}")


def _note_proof(profile: BallotFile, result: Aggregation) -> None:
    if result.proof is not None and not result.optimal:
        out.note(f"{profile.source}: not proven best: {_proof(result)}")


def _tied(ties: list[list[str]]) -> str:
    """Describe groups of tied items.

    Examples
    --------
    >>> _tied([["tea", "milk"], ["gin", "rum", "ale"]])
    'tied: tea = milk; gin = rum = ale'
    """
    groups = [" = ".join(group) for group in ties[:_TIES_SHOWN]]
    more = len(ties) - len(groups)
    return f"tied: {'; '.join(groups)}" + (f"; and {more} more groups" if more else "")


def _proof(result: Aggregation) -> str:
    rest = "no order has fewer"
    if not result.optimal:
        rest = f"every order at least {result.bound:,.6g} ({_what_proves(result)})"
    return f"the order contradicts {result.cost:,.6g} preferences of voters between two items; {rest}"


def _what_proves(result: Aggregation) -> str:
    """Return the option that would let ``kemeny`` prove its order, or why none would."""
    assert result.proof is not None
    size = result.proof.circle
    if size > max(_MOST_PROVEN, result.rule.max_exact):
        return f"no proof: {size:,} items beat each other in a circle"
    if size > result.rule.max_exact:
        return f"a proof takes --max-exact {size}"
    if not result.proof.late:
        return "weights too far apart for a proof"
    return f"a proof takes more than --time-limit {result.rule.time_limit:g}"


def _show_comparison(
    profile: BallotFile,
    results: list[Aggregation],
    seconds: dict[str, float],
    files: MergeOutputs,
    json: bool,
) -> None:
    """Write or print the ranks by all methods, in the order of the first one."""
    import polars as pl

    output, first = files.output, results[0]
    ranks = {result.method: result.ranks for result in results}
    frame = pl.DataFrame({"item": profile.items, **ranks}).sort(first.method, maintain_order=True)[
        : files.top
    ]
    out.write_frame(frame, output)
    if not json and not out.show_frame(frame, output):
        for rule in dict.fromkeys(result.ballots.missing for result in results):
            opt.note_gaps(profile, rule)
        for result in results:
            _note_proof(profile, result)
        return
    rows = [_compared(profile, result, first) for result in results]
    if json:
        report: dict[str, Any] = {
            "ballots_file": profile.source,
            "voters": profile.total,
            "items": len(profile.items),
            "methods": rows,
            "seconds": seconds,
            "files": [output] if output else [],
        }
        out.print_json(report | ({"ranks": frame.to_dicts()} if output is None else {}))
        return
    table = []
    for row in rows:
        name = f"{row['method']}, missing: {row['missing']}" if profile.n_missing else row["method"]
        table.append([name, " = ".join(row["first"]), row["confidence"], row["agreement"]])
    out.print_table(["method", "first", "confidence", "mean Kendall tau with the voters"], table)
    typer.echo(f"{profile.sentence(rows[0]['missing'])}; merged in {seconds['merging']:.1f} s")
    if output is not None:
        typer.echo(
            f"written: {output}; {len(frame)} of {len(profile.items)} items, their ranks by each method"
        )


def _compared(profile: BallotFile, result: Aggregation, first: Aggregation) -> dict[str, Any]:
    """Return what is known of one method; agreement is with the same ballots for all."""
    return {
        "method": result.method,
        "missing": result.ballots.missing,
        "first": result.order[: int((result.ranks == 1).sum())],
        "confidence": _confidence(profile, result),
        "agreement": _mean_agreement(replace(result, ballots=first.ballots)),
        **_certificate(result),
    }
