"""Subjects, relations and the cells they form."""

from __future__ import annotations

import atexit
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from typer.main import get_command

from apexrank.cli.app import app

# Sums of a few hundred terms in another order differ by a relative 1e-14; divided by a deviation of a thousandth of the
# mean, and by a strong convexity of 0.1, by 1e-10.
ROUNDING = 1e-9
SEEDS = st.integers(0, 2**32 - 1)
_COMMAND, FOLDER = get_command(app), Path(mkdtemp(prefix="metamorphic"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


@dataclass(frozen=True)
class Found:
    """Results of a run, under names that both runs share.

    ``slack`` is the error of the numbers that the run's certificate allows. ``facts`` must be equal, except for those
    that a relation names. ``vague`` are names that the certificate does not determine, such as the order of scores that
    are closer to each other than their errors.
    """

    numbers: Mapping[str, float]
    slack: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)
    vague: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Subject:
    """A verb with its options, or an estimator; ``traits`` are its properties that matter to relations.

    ``cost`` is the approximate time of a case in milliseconds, which determines the number of cases.
    """

    name: str
    kind: str
    run: Callable[[Any], Found]
    traits: frozenset[str] = frozenset()
    cost: float = 10.0


@dataclass(frozen=True, eq=False)
class Relation:
    """A change of a case that must not change the result.

    ``change`` returns the changed case, or two cases to compare if not every case can be changed. ``unless`` maps the
    traits of subjects for which the relation does not hold to the reasons. ``differs`` are names of facts and numbers
    that may differ (a final ``*`` matches any ending). ``cost`` is added to that of a subject.
    """

    name: str
    kind: str
    says: str
    change: Callable[[Any, np.random.Generator], Any]
    unless: Mapping[str, str] = field(default_factory=dict)
    differs: tuple[str, ...] = ()
    cost: float = 0.0

    def reason_against(self, subject: Subject) -> str | None:
        return next((why for trait, why in self.unless.items() if trait in subject.traits), None)


class Cell(NamedTuple):
    """A relation applied to a subject: one test."""

    relation: Relation
    subject: Subject

    def __str__(self) -> str:
        return f"{self.subject.name}-{self.relation.name}".replace(" ", "_")

    @property
    def cost(self) -> float:
        return self.subject.cost + self.relation.cost

    def check(self, case: Any, seed: int) -> None:
        """Compare a case with the changed one."""
        made = self.relation.change(case, np.random.default_rng(seed))
        pair = made if isinstance(made, tuple) else (case, made)
        wrong = differences(*map(self.subject.run, pair), self.relation.differs)
        assert not wrong, f"{self.subject.name}, {self.relation.name}: {'; '.join(wrong[:6])}"


def differences(one: Found, other: Found, differs: tuple[str, ...] = ()) -> list[str]:
    """Numbers and facts that differ by more than the two certificates and rounding allow."""
    differs = (*differs, *one.vague, *other.vague)

    def may(name: str) -> bool:
        return any(name.startswith(each[:-1]) if each.endswith("*") else name == each for each in differs)

    wrong = [f"{name} in one run only" for name in {*one.numbers} ^ {*other.numbers} if not may(name)]
    slack = one.slack + other.slack
    for name in [name for name in one.numbers if name in other.numbers and not may(name)]:
        a, b = float(one.numbers[name]), float(other.numbers[name])
        if a != b and not abs(a - b) <= slack + ROUNDING * max(1.0, abs(a)) and not (a != a and b != b):
            wrong.append(f"{name} {a!r} against {b!r} (allowed {slack:.1e})")
    facts = {*one.facts, *other.facts}
    pairs = [(name, one.facts.get(name), other.facts.get(name)) for name in sorted(facts) if not may(name)]
    return wrong + [f"{name} {a!r} against {b!r}" for name, a, b in pairs if a != b]


def apexrank(*words: Any) -> Any:
    """Run a command line in this process; return its JSON, or its text."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            _COMMAND.main([str(word) for word in words], prog_name="apexrank")
        except SystemExit as end:
            code = end.code
    assert code == 0, f"{' '.join(map(str, words))}: {err.getvalue()}"
    return json.loads(out.getvalue()) if "--json" in words else out.getvalue()


def make_cells(
    subjects: list[Subject], relations: list[Relation]
) -> tuple[list[Cell], list[tuple[Cell, str]]]:
    """All cells of subjects and relations of the same kind, and the excluded ones with the reasons."""
    pairs = [Cell(r, s) for s in subjects for r in relations if r.kind == s.kind]
    reasons = [(cell, cell.relation.reason_against(cell.subject)) for cell in pairs]
    return [cell for cell, why in reasons if why is None], [(cell, why) for cell, why in reasons if why]


def named(values: Mapping[Any, float], prefix: str) -> dict[str, float]:
    return {f"{prefix} {name}": value for name, value in values.items()}


def renamed(names: list[str], rng: np.random.Generator) -> dict[str, str]:
    """New names whose order is unrelated to that of the old ones."""
    fresh = [f"n{number}" for number in rng.permutation(10 * len(names))[: len(names)]]
    return dict(zip(names, fresh, strict=True))


def numbers_in(found: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All values of nested JSON, by the path to each."""
    items = (
        found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else None
    )
    if items is None:
        yield prefix.strip(), found
        return
    for name, value in items:
        yield from numbers_in(value, f"{prefix} {name}")
