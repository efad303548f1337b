"""Valid documents in every text format, as lines of fields, so that an injected fault is the only one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

WORDS = ["a", "b", "tea", "rum", "café", "x-y", "007", "名", "q1", "D7", "-", "A.b", "node 3", "true", "no"]


class Document(NamedTuple):
    """Fields of each line, and the separators between them."""

    lines: list[list[str]]
    separator: str = " "


def _number(rng: Random) -> str:
    return rng.choice((str(rng.randrange(10)), f"{rng.uniform(-5, 5):.3g}", "0", "1"))


def _table(rng: Random, names: list[str], columns: list[Callable[[], str]]) -> Document:
    rows = [[column() for column in columns] for _ in range(rng.randrange(1, 8))]
    return Document([names, *rows], rng.choice(",,,;\t"))


def letor(rng: Random) -> Document:
    lines = []
    for row in range(rng.randrange(1, 7)):
        features = [f"{j}:{_number(rng)}" for j in range(1, 5) if rng.random() < 0.8]
        comment = ["#", "docid", "=", f"D{row}"] if rng.random() < 0.5 else []
        lines.append([str(rng.randrange(3)), f"qid:{rng.randrange(3)}", *features, *comment])
    return Document(lines)


def table(rng: Random) -> Document:
    names = ["id", "x", "y", "city", "weight", "fraud"][: rng.randrange(1, 7)]
    kinds = [lambda: rng.choice(WORDS), lambda: _number(rng), lambda: rng.choice(("0", "1", "NA", ""))]
    return _table(rng, names, [rng.choice(kinds) for _ in names])


def edges(rng: Random) -> Document:
    ids = [str(i) for i in range(6)] if rng.random() < 0.6 else WORDS
    header = [["source", "target", "weight", "day"], ["from", "to", "rating", "day"], ["u", "v", "w", "d"]]
    width = rng.randrange(2, 5)
    rows = [
        [rng.choice(ids), rng.choice(ids), _number(rng), rng.choice(("mon", "tue"))][:width]
        for _ in range(rng.randrange(1, 8))
    ]
    top = [rng.choice(header)[:width]] if rng.random() < 0.5 else []
    comment = [["# FromNodeId ToNodeId"]] if rng.random() < 0.2 else []
    return Document([*comment, *top, *rows], rng.choice(" ,;\t\t"))


def preflib(rng: Random) -> Document:
    n = rng.randrange(1, 6)
    orders = [_order(rng, n) for _ in range(rng.randrange(1, 5))]
    counts = [rng.randrange(1, 9) for _ in orders]
    votes = zip(counts, orders, strict=True)
    if rng.random() < 0.4:
        names = [[str(i), rng.choice(WORDS)] for i in range(1, n + 1)]
        totals = [str(sum(counts)), str(sum(counts)), str(len(set(map(tuple, orders))))]
        return Document([[str(n)], *names, totals, *([str(count), *order] for count, order in votes)], ",")
    head = [[f"# NUMBER ALTERNATIVES: {n}"], [f"# NUMBER VOTERS: {sum(counts)}"], ["# TITLE: Drinks"]]
    head = [line for line in head if rng.random() < 0.6] or [["# TITLE: Drinks"]]
    names = [[f"# ALTERNATIVE NAME {i}: {rng.choice(WORDS)}"] for i in range(1, n + 1)]
    return Document([*head, *names, *([f"{count}: {order[0]}", *order[1:]] for count, order in votes)], ",")


def _order(rng: Random, n: int) -> list[str]:
    """Numbers of all alternatives, some of them tied or left out."""
    items = [str(i) for i in rng.sample(range(1, n + 1), n)]
    if rng.random() < 0.3:
        items = items[: rng.randrange(1, n + 1)]
    if len(items) > 1 and rng.random() < 0.4:
        items[0], items[1] = "{" + items[0], items[1] + "}"
    return items


def trec_run(rng: Random) -> Document:
    lines = [
        [f"q{q}", "Q0", f"d{d}", str(d), _number(rng), "tag"]
        for q in range(rng.randrange(1, 4))
        for d in range(3)
    ]
    return Document(lines, rng.choice(" \t"))


def trec_qrels(rng: Random) -> Document:
    lines = [
        [f"q{q}", "0", f"d{d}", str(rng.randrange(-2, 4))]
        for q in range(rng.randrange(1, 4))
        for d in range(3)
    ]
    return Document(lines, rng.choice(" \t"))


def ballots(rng: Random) -> Document:
    if rng.random() < 0.4:
        people, films = iter(range(1000)), WORDS[:3]
        kinds = [lambda: f"u{next(people) // 3}", lambda: rng.choice(films), lambda: _number(rng)]
        return _table(rng, ["user", "film", "stars"], kinds)
    names = ["voter", *WORDS[: rng.randrange(1, 5)], "weight"][rng.randrange(2) :]
    places = rng.random() < 0.3
    cells = [lambda: rng.choice(WORDS[:4]) if places else _number(rng) for _ in names]
    return _table(rng, names, cells)


def seeds(rng: Random) -> Document:
    rows = [[rng.choice("abc"), rng.choice("012")] for _ in range(rng.randrange(1, 5))]
    kind = rng.randrange(3)
    if kind == 0:
        return Document([row[:1] for row in rows])
    return Document([["vertex", "weight" if kind == 1 else "score"], *rows], ",")


def host_graph(rng: Random) -> Document:
    n = rng.randrange(1, 6)
    links = [[f"{rng.randrange(n)}:{rng.randrange(1, 5)}" for _ in range(rng.randrange(4))] for _ in range(n)]
    if rng.random() < 0.5:
        return Document([[str(n)], *links])
    return Document([[str(i), "->", *line] for i, line in enumerate(links)])


def host_labels(rng: Random) -> Document:
    labels = ("spam", "nonspam", "undecided", "borderline")
    return Document([[str(host), rng.choice(labels), "0.5", "j1:S"] for host in rng.sample(range(4), 3)])


def ratings(rng: Random) -> Document:
    pairs = [(str(i), str(j)) for i in range(4) for j in range(4) if i != j]
    lines = [[*pair, str(rng.choice((-10, 1, 3, 10))), "1289241911.7"] for pair in rng.sample(pairs, 4)]
    return Document(lines, ",")
