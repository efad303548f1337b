"""``apexrank aggregate --report``: the page of merged ballots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apexrank.cli.output import working
from apexrank.cli.profile import Profile, about

if TYPE_CHECKING:
    from apexrank.aggregation.bootstrap import RankBootstrap
    from apexrank.aggregation.rank_aggregation import Aggregation

_TOP, _DRAWS = 30, 500  # unless --top and --bootstrap say otherwise


def write_page(
    profile: Profile, result: Aggregation, drawn: RankBootstrap | None, path: Path, top: int | None, seed: int
) -> None:
    """Write the page, with the intervals of the table where voters were drawn for it."""
    from apexrank.report import build, summarise_votes

    named = replace(result, ballots=replace(result.ballots, voters=_voter_names(profile)))
    with working(f"making {path}") as status, about(profile):
        summary = summarise_votes(
            named,
            bootstrap=_DRAWS if drawn is None else drawn,
            top=top or _TOP,
            random_state=seed,
            progress=None if status is None else lambda stage: status.update(f"making {path}: {stage}"),
        )
        guesses = [f"{text[:1].upper()}{text[1:]}." for text in profile.notes]
        build(replace(summary, notes=[*guesses, *summary.notes]), path, title=_title(profile))


def _title(profile: Profile) -> str:
    return profile.title or f"Votes of {Path(profile.source).name}"


def _voter_names(profile: Profile) -> list[Any]:
    """What the file calls its voters; numbers with the name of their column."""
    column = profile.voters.to_series(0)
    if column.dtype.is_integer():
        return [f"{column.name} {number}" for number in column.to_list()]
    return [str(name) for name in column.to_list()]
