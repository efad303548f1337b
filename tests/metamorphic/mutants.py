"""Mutants that the cells must detect: ``python -m tests.metamorphic.mutants [NAME ...]``.

Each mutant changes the meaning of one line, such as dropped weights, swapped classes or an unchecked order. Its cells
run until one fails. Code objects are replaced in this process, so a mutant costs no import.
"""

from __future__ import annotations

import gc
import signal
import sys
import tomllib
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apexrank
import tests.conftest  # noqa: F401  # which sets the profile of hypothesis
from tests.metamorphic.engine import Cell
from tests.metamorphic.registry import CELLS
from tests.metamorphic.test_cells import run_cases

SOURCE = Path(apexrank.__file__).parent
CASES, SECONDS = 8, 120  # for each cell, and for all cells of a mutant


@dataclass(frozen=True)
class Mutant:
    """A line of a module and its replacement; ``cells`` are parts of the names of the cells that cover it."""

    name: str
    module: str
    old: str
    new: str
    cells: tuple[str, ...]

    @property
    def room(self) -> str:
        return self.module.split("/")[0]

    def chosen(self) -> list[Cell]:
        found = [cell for part in self.cells for cell in CELLS if part in str(cell)]
        return list(dict.fromkeys(found))


def read_mutants() -> list[Mutant]:
    found = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["mutant"]
    return [Mutant(**(fields | {"cells": tuple(fields["cells"])})) for fields in found]


MUTANTS = read_mutants()


# ---------------------------------------------------------------- running


@contextmanager
def applied(mutant: Mutant) -> Iterator[int]:
    """Replace the code of the functions that the mutant changes, wherever they were imported; yields their number."""
    path = SOURCE / mutant.module
    text = path.read_text()
    if text.count(mutant.old) != 1 or mutant.old.count("\n") != mutant.new.count("\n"):
        raise ValueError(
            f"{mutant.name}: the line is there {text.count(mutant.old)} times in {mutant.module}"
        )
    before, after = (
        _codes(compile(t, str(path), "exec", dont_inherit=True))
        for t in (text, text.replace(mutant.old, mutant.new))
    )
    changed = [key for key in before if _differ(before[key], after[key])]
    found = [
        f
        for f in gc.get_objects()
        if isinstance(f, types.FunctionType) and f.__code__.co_filename == str(path)
    ]
    swapped = [
        (f, f.__code__) for f in found if (f.__code__.co_qualname, f.__code__.co_firstlineno) in changed
    ]
    for function, code in swapped:
        function.__code__ = after[code.co_qualname, code.co_firstlineno]
    try:
        yield len(swapped)
    finally:
        for function, code in swapped:
            function.__code__ = code


def _codes(code: types.CodeType) -> dict[tuple[str, int], types.CodeType]:
    found = {}
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found[inner.co_qualname, inner.co_firstlineno] = inner
            found |= _codes(inner)
    return found


def _differ(one: types.CodeType, other: types.CodeType) -> bool:
    parts = ("co_code", "co_names", "co_varnames", "co_freevars")
    plain = [[c for c in code.co_consts if not isinstance(c, types.CodeType)] for code in (one, other)]
    inner = [_codes(code) for code in (one, other)]
    return (
        any(getattr(one, part) != getattr(other, part) for part in parts)
        or repr(plain[0]) != repr(plain[1])
        or any(_differ(inner[0][key], inner[1][key]) for key in inner[0] if key in inner[1])
    )


class TooLongError(BaseException):
    """Stop a mutant that runs forever."""


def _stop(*_: object) -> None:
    raise TooLongError


def try_mutant(mutant: Mutant) -> str:
    """Name of the first cell that failed, or an empty string if the mutant survived."""
    cells = mutant.chosen()
    if not cells:
        raise ValueError(f"{mutant.name}: no cell is called {mutant.cells}")
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(SECONDS)
    with applied(mutant) as swapped:
        if not swapped:
            raise ValueError(f"{mutant.name}: no function in use has this line")
        for cell in cells:
            try:
                run_cases(cell, CASES if cell.cost <= 100 else 2)
            except (Exception, TooLongError):  # a new error also counts as detected
                return str(cell)
            finally:
                signal.alarm(SECONDS)
    signal.alarm(0)
    return ""


def main(names: list[str]) -> None:
    chosen = [mutant for mutant in MUTANTS if not names or any(name in mutant.name for name in names)]
    for cell in {
        cell: None for mutant in chosen for cell in mutant.chosen()
    }:  # imports every module that may be changed
        run_cases(cell, 1)
    rooms: Counter[str] = Counter()
    survivors = []
    for mutant in chosen:
        killer = try_mutant(mutant)
        rooms[mutant.room] += 1
        survivors += [] if killer else [mutant.name]
        print(f"{'killed  ' if killer else 'SURVIVED'} {mutant.module}: {mutant.name}  {killer}", flush=True)
    killed = len(chosen) - len(survivors)
    print(f"{len(chosen)} mutants ({', '.join(f'{room} {n}' for room, n in rooms.items())})")
    print(f"killed {killed} ({killed / len(chosen):.1%}); survivors: {', '.join(survivors) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1:])
