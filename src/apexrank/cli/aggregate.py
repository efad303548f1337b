"""``apexrank aggregate``: one ranking of items from the scores, ranks or orders of many voters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import apexrank
from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.aggregation import Aggregation, RankBootstrap
    from apexrank.aggregation.ballot_files import BallotFile

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
_TOP_DRAWN, _TOP_OF_PAGE, _DRAWS_OF_PAGE = 20, 30, 500  # unless --top and --bootstrap are given
_CHEAP = 2**23  # scores up to which agreement and the Condorcet winner are computed by default
_CHEAP_GAPS = 20_000  # the same limit for agreement in voters, if each voter has their own items
_MOST_PROVEN = 200  # items in a cycle: a proof needs a programme of more than a million rows


@dataclass(frozen=True)
class RuleOptions:
    """Parameters of single methods."""

    k: float | None = opt.method("For rrf: k in 1/(k + place) (default: 60).")
    time_limit: float | None = opt.method(
        "For kemeny: seconds to spend on a proof of optimality (default: 60)."
    )
    max_exact: int | None = opt.method(
        "For kemeny: largest cycle to look for a proof in (default: 40).", min=0
    )


@dataclass(frozen=True)
class MergeOptions:
    """Methods, and the bootstrap of the voters."""

    method: str | None = opt.method(f"One of {', '.join(METHODS)} (default: lovasz-bregman, the mean score).")
    compare: list[str] | None = opt.method(
        "Show the ranks of several methods side by side, such as borda,kemeny or all.", metavar="METHODS"
    )
    min_support: float = opt.method("Rank items scored by fewer voters than this last.", min=0, default=0.0)
    bootstrap: int | None = opt.method(
        "Resample the voters N times for 95% intervals of the ranks and the probability of being first.",
        metavar="N",
        min=2,
    )
    seed: int = opt.method("Random seed of the bootstrap.", min=0, default=0)
    judged: Path | None = opt.method(
        "LETOR file of judged lists whose features are the scores or ranks (--kind) of each ranker, NULL if a ranker "
        "does not list a document. The rankers' weights are learnt from it and applied to BALLOTS, also a LETOR file."
    )


@dataclass(frozen=True)
class MergeOutputs:
    """Files to write."""

    top: int | None = opt.written("Keep the best N items.", metavar="N", min=1)
    pairwise: Path | None = opt.written(
        "CSV or Parquet file to write: number of voters who prefer the item of the row to that of the column."
    )
    figure: Path | None = opt.written("Picture of the ranking to write (.png, .svg or .pdf).")
    report: Path | None = opt.written(
        "HTML report to write: intervals, other methods, majorities and voters."
    )
    output: Path | None = opt.written(opt.TABLE_OUTPUT)


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
    """Merge the scores, ranks or orders of many voters into one ranking."""
    if options.judged is not None:
        _refuse_beside_judged(options, rule, worth, reading, files)
        _merge_judged(ballots, options.judged, reading.kind or "scores", files, json)
        return
    opt.check_tables(ballots, files.output, files.pairwise)
    out.check_picture(files.figure)
    out.check_report(files.report, ballots)
    out.check_inputs(ballots)
    import polars as pl

    methods = _methods(options, files)
    given = opt.given_options(rule)
    for name, value in (("normalize", worth.normalize), ("points", worth.check(reading.kind, ballots))):
        given |= {} if value is None else {name: value}
    _check_rules(methods, given, options.min_support)
    watch = out.Stopwatch()
    profile = reading.read(ballots)
    watch.end("reading")
    given["min_support"] = options.min_support
    results = [_merge(profile, name, worth.missing, given) for name in methods]
    watch.end("merging")
    result = results[0]
    by_scores = any(each.rule.takes_scores for each in results)
    opt.note_ballots(profile, reading, scales=worth.normalize is None and by_scores)
    drawn = _draw_voters(profile, result, options)
    if options.compare is None:
        frame, shown = result.to_frame(), "best first"
        if drawn is not None:
            ends = {"item": profile.items, "low": drawn.low, "high": drawn.high, "first": drawn.first}
            frame = frame.join(pl.DataFrame(ends), on="item", maintain_order="left")
    else:
        ranks = {each.method: each.ranks for each in results}
        frame, shown = pl.DataFrame({"item": profile.items, **ranks}), "their ranks by each method"
        frame = frame.sort(result.method, maintain_order=True)
    frame = frame[: files.top]
    out.write_frame(frame, files.output)
    _write_others(profile, result, drawn, files, options.seed)
    paths = (files.output, files.pairwise, files.figure, files.report)
    written = [str(path) for path in paths if path is not None]
    if not json and not out.show_frame(frame, files.output):
        _note_doubts(profile, results, [] if options.compare else frame["item"].to_list())
        if written:
            typer.echo(f"written: {', '.join(written)}", err=True)  # stdout is the table
        return
    told = profile.to_dict(result.ballots.missing) | {"seconds": watch, "rows": len(frame), "files": written}
    if options.compare is not None:
        told["methods"] = [_compared(profile, each, result) for each in results]
    else:
        told |= _known(profile, result) | {"bootstrap": options.bootstrap}
    if json:
        out.print_json(told, files.output, **{"ranking" if options.compare is None else "ranks": frame})
        return
    if options.compare is not None:
        _print_methods(told, profile)
    else:
        _print(told, profile, result)
    rest = "" if files.output is None else f"; {len(frame)} of {len(profile.items)} items, {shown}"
    if written:
        typer.echo(f"written: {', '.join(written)}{rest}")


def _refuse_beside_judged(*groups: Any) -> None:
    for group in groups:
        for name, value in vars(group).items():
            if name not in ("judged", "kind", "output", "top") and value != getattr(type(group)(), name):
                raise InputError(
                    f"{opt.flag(name)} cannot be combined with --judged, which learns the weights: leave it out"
                )


def _merge_judged(lists: Path, judged: Path, kind: str, files: MergeOutputs, json: bool) -> None:
    """Learn weights of the rankers from judged lists, and merge the lists of another file with them."""
    out.check_inputs(lists, judged)
    out.check_table(files.output, lists, judged)
    import polars as pl

    from apexrank.aggregation.learn import LovaszAggregator
    from apexrank.datasets.letor import read_letor

    watch = out.Stopwatch()
    train = read_letor(judged, null="nan")
    rows = read_letor(lists, null="nan", n_features=train.data.shape[1])
    watch.end("reading")
    model = LovaszAggregator("top", normalize="reciprocal", missing="indicator", kind=kind)  # type: ignore[arg-type]
    scores = model.fit(train.data, train.target, groups=train.groups).predict(rows.data, groups=rows.groups)
    watch.end("merging")
    frame = pl.DataFrame({"qid": rows.groups, "docid": rows.docids.astype(str), "score": scores})
    first = pl.col("row").min().over("qid")  # queries stay in the order of the file
    rank = pl.col("score").rank("min", descending=True).over("qid").cast(pl.Int64).alias("rank")
    frame = frame.with_row_index("row").with_columns(rank, first)
    frame = frame.sort("row", "score", descending=[False, True], maintain_order=True).drop("row")
    frame = frame if files.top is None else frame.filter(pl.col("rank") <= files.top)
    out.write_frame(frame, files.output)
    if json:
        weights = {"weights": model.weights_.tolist(), "listed_weights": model.listed_weights_.tolist()}
        out.print_json({"lists": model.n_lists_, **weights, "seconds": watch}, files.output, ranking=frame)
    elif out.show_frame(frame, files.output):
        typer.echo(
            f"weights of {train.data.shape[1]} rankers from {out.plural(model.n_lists_, 'list')}; {watch}"
        )


def _methods(options: MergeOptions, files: MergeOutputs) -> list[str]:
    """Return the names of the methods to use."""
    if options.compare is None:
        return [options.method or METHODS[0]]
    of_one = ("method", "bootstrap", "pairwise", "figure", "report")
    for name in of_one:
        given = opt.given_options(options) | opt.given_options(files)
        opt.refuse(name in given, f"--{name} is for one method: leave it out, or leave out --compare")
    chosen = list(dict.fromkeys(opt.split_names(options.compare)))
    return list(METHODS) if chosen == ["all"] else chosen


def _check_rules(methods: list[str], given: dict[str, Any], min_support: float) -> None:
    """Raise InputError for unknown methods, bad options, and options that none of the methods uses."""
    from apexrank.aggregation.fusion import Rule

    opt.refuse(not methods, f"--compare names no method: use some of {', '.join(METHODS)}, or all")
    for name in methods:
        Rule(name, **given, min_support=min_support)  # type: ignore[arg-type]  # checks it
    for option in given:
        users = _METHODS_OF[option]
        told = f"{opt.flag(option)} is for --method {' or '.join(users)}: leave it out"
        opt.refuse(not set(users) & set(methods), told)
    own = given.get("normalize")
    twice = "points" in given and own in ("rank", "borda")
    opt.refuse(twice, f"--normalize {own} has its own points for places: leave out --points")


def _merge(profile: BallotFile, name: str, missing: str | None, rules: dict[str, Any]) -> Aggregation:
    with out.working(f"merging the ballots by {name}"), opt.errors_about(profile):
        how: Any = {"method": name, "missing": profile.missing_rule(missing, name)}
        how |= {"kind": profile.kind, "items": profile.items} | rules
        return apexrank.aggregate(profile.values, profile.weights, **how)


def _draw_voters(profile: BallotFile, result: Aggregation, options: MergeOptions) -> RankBootstrap | None:
    n = options.bootstrap
    if n is None:
        return None
    one = f"{profile.source} holds one ballot, of which nothing can be drawn: leave out --bootstrap"
    opt.refuse(profile.n_voters == 1, one)
    with out.working(f"drawing the voters {n} times"), opt.errors_about(profile):
        return result.bootstrap(n, random_state=options.seed)


def _write_others(
    profile: BallotFile, result: Aggregation, drawn: RankBootstrap | None, files: MergeOutputs, seed: int
) -> None:
    """Write the requested files: majorities, picture, report."""
    import polars as pl

    if files.pairwise is not None:
        with opt.errors_about(profile):
            frame = pl.DataFrame(result.pairwise, schema=profile.items, orient="row")
        head = "item" if "item" not in profile.items else "preferred item"
        out.write_frame(frame.insert_column(0, pl.Series(head, profile.items)), files.pairwise)
    if files.figure is not None:
        with out.working(f"drawing {files.figure}"):
            display = result.plot(top=files.top or _TOP_DRAWN, bootstrap=drawn or 0)
            out.save_figure(display.figure_, files.figure)
    if files.report is None:
        return

    column = profile.voters.to_series(0)
    numbered = f"{column.name} " if column.dtype.is_integer() else ""
    named = replace(result.ballots, voters=[f"{numbered}{voter}" for voter in column.to_list()])
    what = f"making {files.report}"
    with out.working(what) as status, opt.errors_about(profile):
        summary = apexrank.report.summarise_votes(
            replace(result, ballots=named),
            bootstrap=_DRAWS_OF_PAGE if drawn is None else drawn,  # the intervals of the table
            top=files.top or _TOP_OF_PAGE,
            random_state=seed,
            progress=None if status is None else lambda stage: status.update(f"{what}: {stage}"),
        )
        notes = [out.in_options(text) for text in profile.notes]
        guesses = [f"{text[:1].upper()}{text[1:]}." for text in notes]
        title = profile.title or f"Votes of {Path(profile.source).name}"
        apexrank.report.build(replace(summary, notes=[*guesses, *summary.notes]), files.report, title=title)


def _known(profile: BallotFile, result: Aggregation, voters: Aggregation | None = None) -> dict[str, Any]:
    """Return statistics of a ranking, None where they would take long; agreement may be with other ballots.

    If voters leave out items there is no confidence, because the means are then over different voters.
    """
    import numpy as np

    seen = replace(result, ballots=(voters or result).ballots)
    lacking = bool(
        (result.support < result.ballots.total).any()
    )  # missing scores on ballots of weight 0 do not count
    gaps, seen_gaps = (lacking and each.ballots.missing == "ignore" for each in (result, seen))
    cheap, agreement = profile.values.size <= _CHEAP, None
    if cheap and not (seen_gaps and seen.ballots.n_voters > _CHEAP_GAPS):
        tau, weight = seen.agreement, seen.ballots.weight(slice(None))
        counted = ~np.isnan(tau) & (weight > 0)
        agreement = float(np.average(tau[counted], weights=weight[counted])) if counted.any() else None
    known: dict[str, Any] = {"method": result.method, "confidence": None if gaps else result.confidence}
    known |= {"agreement": agreement, "ties": [list(group) for group in result.ties]}
    if cheap and voters is None:
        known["condorcet_winner"] = result.condorcet_winner
    proof = {"cost": result.cost, "bound": result.bound, "optimal": result.optimal}
    return known if result.proof is None else known | proof


def _compared(profile: BallotFile, result: Aggregation, first: Aggregation) -> dict[str, Any]:
    """Return the statistics of one method; agreement is measured on the same ballots for all methods."""
    best = result.order[: int((result.ranks == 1).sum())]
    return _known(profile, result, first) | {"missing": result.ballots.missing, "first": best}


def _print(told: dict[str, Any], profile: BallotFile, result: Aggregation) -> None:
    """Print the statistics of a ranking as text below the table."""
    facts = [] if told["confidence"] is None else [f"confidence {told['confidence']:.2f}"]
    if told["agreement"] is not None:
        facts.append(f"voters agree with it by {told['agreement']:.2f} (mean Kendall tau)")
    if "condorcet_winner" in told:
        winner = told["condorcet_winner"]
        facts.append("no Condorcet winner" if winner is None else f"Condorcet winner {winner}")
    method = f"{result.method}: {', '.join(facts)}" if facts else result.method
    typer.echo(f"{profile.sentence(result.ballots.missing, result.method)}; {method}; {told['seconds']}")
    if result.proof is not None:
        typer.echo(_proof(result))
    if told["ties"]:
        typer.echo(_tied(told["ties"]))
    if told["bootstrap"]:
        typer.echo(
            f"low, high and first: 95% interval of the rank, and share of first ranks, in {told['bootstrap']} draws "
            "of the voters"
        )


def _print_methods(told: dict[str, Any], profile: BallotFile) -> None:
    """Print the statistics of several rankings as a table."""
    rows = [
        [
            f"{row['method']}, missing: {row['missing']}" if profile.n_missing else row["method"],
            *(" = ".join(row["first"]), row["confidence"], row["agreement"]),
        ]
        for row in told["methods"]
    ]
    out.print_table(["method", "first", "confidence", "mean Kendall tau with the voters"], rows)
    typer.echo(f"{profile.sentence(told['missing']['rule'])}; {told['seconds']}")


def _note_doubts(profile: BallotFile, results: list[Aggregation], shown: list[str]) -> None:
    """Print caveats about a table in a pipe on stderr, with the ties among the items ``shown``."""
    gaps = dict.fromkeys(profile.gaps(result.ballots.missing, result.method) for result in results)
    out.note(*(f"{profile.source}: {each}" for each in gaps if each))
    for result in results:
        if result.proof is not None and not result.optimal:
            out.note(f"{profile.source}: not proven best: {_proof(result)}")
    ties = [list(group) for group in results[0].ties if not set(shown).isdisjoint(group)]
    if ties:
        out.note(f"{profile.source}: {_tied(ties)}")


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
    """Return the option that would let ``kemeny`` prove its order, or the reason why there is none."""
    assert result.proof is not None
    size = result.proof.circle
    if size > max(_MOST_PROVEN, result.rule.max_exact):
        return f"no proof: {size:,} items beat each other in a circle"
    if size > result.rule.max_exact:
        return f"a proof takes --max-exact {size}"
    if not result.proof.late:
        return "weights too far apart for a proof"
    return f"a proof takes more than --time-limit {result.rule.time_limit:g}"
