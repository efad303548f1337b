"""What ``apexrank aggregate`` tells of one ranking: how sure it is, who agrees with it, what is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from apexrank.cli.output import note, print_table
from apexrank.cli.profile import Profile

if TYPE_CHECKING:
    import polars as pl

    from apexrank.aggregation.rank_aggregation import Aggregation

ROWS_SHOWN = 10
_TIES_SHOWN = 5
_CHEAP = 2**23  # scores up to which agreement and the Condorcet winner are looked up unasked
_CHEAP_GAPS = 20_000  # voters up to which agreement is, where each has items of its own
_MOST_PROVEN = 200  # items of a circle, whose proof is a programme of more than a million rows


def report_of(profile: Profile, result: Aggregation) -> dict[str, Any]:
    """What is known of the ballots and of their ranking."""
    report = profile.facts(result.ballots.missing) | {
        "method": result.method,
        "confidence": confidence_of(profile, result),
        "agreement": mean_agreement(result),
        "ties": [list(group) for group in result.ties],
    }
    if profile.values.size <= _CHEAP:
        report["condorcet_winner"] = result.condorcet_winner
    return report | proof_of(result)


def confidence_of(profile: Profile, result: Aggregation) -> float | None:
    """Confidence in the order; None where voters ignore items, as their means are not of the same voters then."""
    return None if profile.n_missing and result.ballots.missing == "ignore" else result.confidence


def proof_of(result: Aggregation) -> dict[str, Any]:
    """What ``kemeny`` knows of its order; of other methods nothing."""
    if result.proof is None:
        return {}
    return {"cost": result.cost, "bound": result.bound, "optimal": result.optimal}


def mean_agreement(result: Aggregation) -> float | None:
    """Mean of the voters' Kendall tau with the result, of those that say anything; None where it takes long."""
    import numpy as np

    ballots = result.ballots
    gaps = ballots.missing == "ignore" and np.isnan(ballots.scores).any()
    if ballots.scores.size > _CHEAP or (gaps and ballots.n_voters > _CHEAP_GAPS):
        return None
    tau, weight = result.agreement, ballots.weight(slice(None))
    known = ~np.isnan(tau) & (weight > 0)
    return float(np.average(tau[known], weights=weight[known])) if known.any() else None


def print_report(
    report: dict[str, Any], profile: Profile, result: Aggregation, written: pl.DataFrame | None
) -> None:
    """Print what is known in words, below the first rows of a table that went to a file."""
    if written is not None:
        shown = written.head(ROWS_SHOWN)
        print_table(shown.columns, shown.rows())
    typer.echo(_summary(report, profile))
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
        rest = "" if written is None else f"; {len(written)} of {report['items']} items, best first"
        typer.echo(f"written: {', '.join(report['files'])}{rest}")


def tell_doubts(profile: Profile, result: Aggregation, shown: list[str]) -> None:
    """Say on stderr what qualifies a table of the items ``shown`` that goes to a program without a report."""
    profile.tell_gaps(result.ballots.missing)
    tell_proof(profile, result)
    kept = set(shown)
    ties = [list(group) for group in result.ties if not kept.isdisjoint(group)]
    if ties:
        note(f"{profile.source}: {_tied(ties)}")


def tell_proof(profile: Profile, result: Aggregation) -> None:
    """Say that an order of ``kemeny`` may not be the best."""
    if result.proof is not None and not result.optimal:
        note(f"{profile.source}: not proven best: {_proof(result)}")


def _summary(report: dict[str, Any], profile: Profile) -> str:
    facts = [] if report["confidence"] is None else [f"confidence {report['confidence']:.2f}"]
    if report["agreement"] is not None:
        facts.append(f"voters agree with it by {report['agreement']:.2f} (mean Kendall tau)")
    if "condorcet_winner" in report:
        winner = report["condorcet_winner"]
        facts.append("no Condorcet winner" if winner is None else f"Condorcet winner {winner}")
    seconds = report["seconds"]
    method = f"{report['method']}: {', '.join(facts)}" if facts else report["method"]
    return (
        f"{profile.sentence(report['missing']['rule'])}; {method}; "
        f"read in {seconds['reading']:.1f} s, merged in {seconds['merging']:.1f} s"
    )


def _tied(ties: list[list[str]]) -> str:
    """Groups of tied items.

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
    """The option that a proof takes: circles of items were too large for it, or time was short; or that none does."""
    assert result.proof is not None
    size = result.proof.circle
    if size > max(_MOST_PROVEN, result.rule.max_exact):
        return f"no proof: {size:,} items beat each other in a circle"
    if size > result.rule.max_exact:
        return f"a proof takes --max-exact {size}"
    if not result.proof.late:
        return "weights too far apart for a proof"
    return f"a proof takes more than --time-limit {result.rule.time_limit:g}"
