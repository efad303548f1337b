"""The ballots of a file: voters × items, and what is told of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from apexrank.cli.output import note
from apexrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

_SUMS = ("combsum", "combmnz", "rrf")  # to which an item that a list leaves out is worth nothing
_UNEVEN = 10.0  # so many times wider is another scale


class Profile(NamedTuple):
    """Ballots of a file: ``values`` are scores or ranks of voters × items, NaN where they are missing."""

    source: str
    values: np.ndarray
    kind: str
    items: list[str]
    voters: pl.DataFrame  # columns that tell the voters, and their weights
    weights: np.ndarray | None
    where: Callable[[int, int], str]  # place of a voter's score of an item, in words
    lists: bool = False  # whether the voters listed items, and may have stopped early
    title: str = ""
    notes: tuple[str, ...] = ()  # what was guessed
    cure: str = (
        "fill it in, put it last (--missing last), or leave out the column (--drop)"  # of a missing score
    )
    without: str = "leave it out (--drop {})"  # how to do without an item

    @property
    def n_missing(self) -> int:
        import numpy as np

        return int(np.isnan(self.values).sum())

    @property
    def total(self) -> int | float:
        """Number of voters, or their weight where not all weights are whole numbers."""
        if self.weights is None:
            return len(self.values)
        total = float(self.weights.sum())
        return int(total) if (self.weights % 1 == 0).all() else total

    @property
    def repeated(self) -> bool:
        """Whether some ballots were cast more than once."""
        return isinstance(self.total, int) and self.total != len(self.values)

    def missing(self, asked: str | None, method: str = "lovasz-bregman") -> Any:
        """What a missing score means to a method, unless it was said."""
        return asked or ("last" if self.lists and method not in _SUMS else "ignore")

    def facts(self, missing: str) -> dict[str, Any]:
        """What JSON says of the file."""
        return {
            "ballots_file": self.source,
            **({"title": self.title} if self.title else {}),
            "ballots": len(self.values),
            "voters": self.total,
            "items": len(self.items),
            "missing": {"number": self.n_missing, "rule": missing},
        }

    def sentence(self, missing: str) -> str:
        """The file, how many voters and items it has, and what is done about gaps."""
        n, total = len(self.values), self.total
        voters = f"{n} voters" if n > 1 else "1 voter"
        if isinstance(total, float):
            voters += f" of weight {total:.6g} in all"
        elif self.repeated:
            voters = f"{total} voters in {n} {'orders' if self.lists else 'ballots'}"
        title = f" ({self.title})" if self.title else ""
        about = f"{self.source}{title}: {voters}, {len(self.items)} items"
        gaps = self.gaps(missing)
        return f"{about}, {gaps}" if gaps else about

    def gaps(self, missing: str) -> str:
        """How many scores are missing, and what is done about them; empty where none is."""
        if not self.n_missing:
            return ""
        what = "places" if self.kind == "ranks" else "scores"
        rule = {"ignore": "no opinion", "last": "taken as last"}[missing]
        once = f", each {'order' if self.lists else 'ballot'} counted once" if self.repeated else ""
        return f"{self.n_missing} of {self.values.size} {what} missing{once} ({rule})"

    def tell(self, *, scales: bool) -> None:
        """Say what was guessed, and where voters score on scales of their own, of which the widest would decide."""
        for sentence in self.notes:
            note(f"{self.source}: {sentence}")
        if self.kind == "scores" and scales:
            self._tell_scales()

    def tell_gaps(self, missing: str) -> None:
        """Say what is missing beside a table that does not."""
        gaps = self.gaps(missing)
        if gaps:
            note(f"{self.source}: {gaps}")

    def _tell_scales(self) -> None:
        import numpy as np

        ranges = np.nanmax(self.values, axis=1) - np.nanmin(self.values, axis=1)
        if not (ranges > 0).any():
            return
        low, high = np.quantile(ranges[ranges > 0], [0.1, 0.9], method="inverted_cdf")
        if high > _UNEVEN * low:
            note(
                f"{self.source}: some voters' scores span {low:.3g}, others' {high:.3g}, and the widest weigh most "
                "(--normalize minmax puts all on one scale)"
            )


@contextmanager
def about(profile: Profile) -> Iterator[None]:
    """Name the file in what the library says of its ballots, with its advice in the words of the command line."""
    try:
        yield
    except InputError as error:
        message = re.sub(
            r"missing='(\w+)'", r"--missing \1", str(error).replace("min_support", "--min-support")
        )
        message = re.sub(
            r"(['\"])(.*)\1: drop it\b", lambda found: _without(profile, found[0], found[2]), message
        )
        raise InputError(f"{profile.source}: {message}") from None


def _without(profile: Profile, text: str, item: str) -> str:
    """The advice ``'item': drop it`` in words that fit the file."""
    return text.removesuffix("drop it") + profile.without.replace("{}", item)
