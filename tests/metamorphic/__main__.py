"""Print the table of cells, and the reasons for empty ones: ``python -m tests.metamorphic``."""

from collections import defaultdict

from tests.metamorphic.registry import CELLS, NO_CELLS, RELATIONS, SUBJECTS
from tests.metamorphic.table import summary

if __name__ == "__main__":
    print(summary())
    print(
        f"\n{len(SUBJECTS)} subjects, {len(RELATIONS)} relations, {len(CELLS)} cells; {len(NO_CELLS)} pairs are none:"
    )
    reasons = defaultdict(list)
    for cell, why in NO_CELLS:
        reasons[cell.relation.name, why].append(cell.subject.name)
    for (relation, why), subjects in reasons.items():
        print(f"- {relation}: {why} ({', '.join(subjects)})")
