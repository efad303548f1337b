"""What ``apexrank aggregate --compare`` shows: the ranks by several methods side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from apexrank.cli.aggregate_report import ROWS_SHOWN, confidence_of, mean_agreement, proof_of, tell_proof
from apexrank.cli.output import is_terminal, print_frame, print_json, print_table
from apexrank.cli.profile import Profile

if TYPE_CHECKING:
    import polars as pl

    from apexrank.aggregation.rank_aggregation import Aggregation


def show_comparison(
    profile: Profile,
    results: list[Aggregation],
    seconds: dict[str, float],
    top: int | None,
    output: Path | None,
    json: bool,
) -> None:
    """Write or print the ranks by all methods, in the order of the first one."""
    import polars as pl

    ranks = {result.method: result.ranks for result in results}
    frame = pl.DataFrame({"item": profile.items, **ranks}).sort(results[0].method, maintain_order=True)[:top]
    if output is not None:
        from apexrank.io import write_table

        write_table(frame, output)
    elif not json:
        print_frame(frame)
        if not is_terminal():
            _tell_doubts(profile, results)
            return
    rows = [_compared(profile, result, results[0]) for result in results]
    if json:
        report: dict[str, Any] = {
            "ballots_file": profile.source,
            "voters": profile.total,
            "items": len(profile.items),
            "methods": rows,
            "seconds": seconds,
            "files": [str(output)] if output else [],
        }
        print_json(report | ({"ranks": frame.to_dicts()} if output is None else {}))
    else:
        _print(profile, rows, seconds, frame, output)


def _tell_doubts(profile: Profile, results: list[Aggregation]) -> None:
    """Say on stderr what qualifies a table that goes to a program without a report."""
    for rule in dict.fromkeys(result.ballots.missing for result in results):
        profile.tell_gaps(rule)
    for result in results:
        tell_proof(profile, result)


def _compared(profile: Profile, result: Aggregation, first: Aggregation) -> dict[str, Any]:
    """What is known of one method; agreement is with the same ballots for all."""
    return {
        "method": result.method,
        "missing": result.ballots.missing,
        "first": result.order[: int((result.ranks == 1).sum())],
        "confidence": confidence_of(profile, result),
        "agreement": mean_agreement(replace(result, ballots=first.ballots)),
        **proof_of(result),
    }


def _print(
    profile: Profile,
    rows: list[dict[str, Any]],
    seconds: dict[str, float],
    frame: pl.DataFrame,
    output: Path | None,
) -> None:
    if output is not None:
        print_table(frame.columns, frame.head(ROWS_SHOWN).rows())
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
