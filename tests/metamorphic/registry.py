"""All subjects and relations, and the cells they form."""

from __future__ import annotations

from tests.metamorphic import arrays, ballots, graphs, letor, tables
from tests.metamorphic.engine import make_cells

MODULES = (tables, letor, arrays, graphs, ballots)
SUBJECTS = [subject for module in MODULES for subject in module.SUBJECTS]
RELATIONS = [relation for module in MODULES for relation in module.RELATIONS]
STRATEGIES = {kind: cases for module in MODULES for kind, cases in module.STRATEGIES.items()}
CELLS, NO_CELLS = make_cells(SUBJECTS, RELATIONS)
