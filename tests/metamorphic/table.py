"""The table of relations and verbs that docs/reliability.md shows."""

from __future__ import annotations

from collections import Counter

from tests.metamorphic.registry import CELLS, RELATIONS

VERBS = (
    *("fit", "rank", "evaluate", "compare", "export", "aggregate", "cluster"),
    *("graph rank", "graph consensus", "graph", "estimators"),
)


def verb_of(subject: str) -> str:
    """The column of a subject.

    >>> verb_of("graph rank lpq"), verb_of("graph inspect"), verb_of("IRPush")
    ('graph rank', 'graph', 'estimators')
    """
    return next((verb for verb in VERBS if subject == verb or subject.startswith(f"{verb} ")), "estimators")


def row_of(relation: str, kind: str) -> str:
    """The row of a relation: those of formats and containers are one each.

    >>> row_of("as gzip", "table"), row_of("from ONNX", "table"), row_of("ids renamed", "table")
    ('in other file formats', 'exported to ONNX and SQL', 'ids renamed')
    """
    if relation in ("from ONNX", "from SQL"):
        return "exported to ONNX and SQL"
    if relation.startswith("from ") and kind == "arrays":
        return "in other containers (pandas, polars, Arrow, sparse, float32, …)"
    if relation == "in Python" or (relation.startswith("from ") and relation != "from earlier ranks"):
        return "in Python instead of the command line"
    if relation in ("as ranks", "as orders", "as a long table", "items in rows", "layers in one table"):
        return "in other layouts (ranks, orders, long, one table of layers)"
    if relation.startswith("as "):
        return "in other file formats"
    blocks = ("in blocks", "in small blocks", "on Dask", "in shards")
    return "in blocks, in shards, on Dask" if relation in blocks else relation


def summary() -> str:
    """Number of cells of each relation and verb, as Markdown."""
    counts = Counter((row_of(c.relation.name, c.relation.kind), verb_of(c.subject.name)) for c in CELLS)
    rows = list(dict.fromkeys(row_of(relation.name, relation.kind) for relation in RELATIONS))
    lines = [f"| relation | {' | '.join(VERBS)} |", "|---" * (len(VERBS) + 1) + "|"]
    lines += [f"| {row} | {' | '.join(str(counts[row, verb] or '') for verb in VERBS)} |" for row in rows]
    totals = Counter(verb_of(cell.subject.name) for cell in CELLS)
    return "\n".join([*lines, f"| **cells** | {' | '.join(str(totals[verb]) for verb in VERBS)} |"])
