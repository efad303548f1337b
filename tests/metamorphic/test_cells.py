"""Each cell of a relation and a subject, on generated cases."""

from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.metamorphic.engine import SEEDS
from tests.metamorphic.registry import CELLS, NO_CELLS, RELATIONS, STRATEGIES, SUBJECTS
from tests.metamorphic.table import summary

MOST, MILLISECONDS = 8, 60  # cases of a cell
QUICK = 20  # milliseconds of a case above which no cell is in the quick tier


def run_cases(cell, number):
    """Check a cell on this many generated cases; returns their number."""
    done = Counter()

    # cases are already small, and shrinking would take minutes per cell
    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(STRATEGIES[cell.subject.kind], SEEDS)
    def check(case, chosen):
        done["cases"] += 1
        cell.check(case, chosen)

    if settings.default.derandomize:  # the same cases in every run, but different ones for each cell
        check = seed(crc32(str(cell).encode()))(check)
    check()
    return done["cases"]


def every_cell():
    """All cells, of which the quick tier runs the first cheap one of every subject."""
    quick = {}
    for cell in CELLS:
        if cell.cost <= QUICK:
            quick.setdefault(cell.subject, cell)
    for cell in CELLS:
        yield pytest.param(cell, id=str(cell), marks=[] if cell in quick.values() else pytest.mark.slow)


@pytest.mark.parametrize("cell", [*every_cell()])
def test_cells(cell, counted):
    number = max(1, min(MOST, int(MILLISECONDS / cell.cost)))
    counted("metamorphic cases", run_cases(cell, number))


def test_the_registry():
    assert len({str(cell) for cell in CELLS}) == len(CELLS)
    assert all(why for _, why in NO_CELLS)
    names = Counter(cell.relation for cell in CELLS)
    assert {*names} == {*RELATIONS}, "a relation that holds for nothing"
    assert {cell.subject for cell in CELLS} == {*SUBJECTS}, "a subject without relations"
    traits = {trait for subject in SUBJECTS for trait in subject.traits}
    assert {trait for relation in RELATIONS for trait in relation.unless} <= traits


def test_the_table_of_the_docs():
    page = Path(__file__).parents[2] / "docs" / "reliability.md"
    assert summary() in page.read_text(), "print it with python -m tests.metamorphic"


def test_mutants_change_lines_that_are_there():
    from tests.metamorphic.mutants import MUTANTS, SOURCE

    for mutant in MUTANTS:
        text = (SOURCE / mutant.module).read_text()
        assert text.count(mutant.old) == 1, (
            f"{mutant.name}: follow the line of {mutant.module} in mutants.toml"
        )
        compile(text.replace(mutant.old, mutant.new), mutant.module, "exec")
        assert mutant.chosen(), f"{mutant.name}: no cell is called {mutant.cells}"
