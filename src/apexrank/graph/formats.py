"""Graph file formats of other programs, detected by content and name, and their readers.

GraphML, GEXF and GML are read by networkx, Matrix Market by scipy. Pajek has its own reader, because that of networkx
merges vertices with equal labels and reads the headings of later sections as edges; so has WebGraph, whose library
needs Java.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import io

from apexrank.datasets.networks import read_npz
from apexrank.errors import InputError, MissingExtraError, one_line
from apexrank.graph.edges import (
    Column,
    Edges,
    edges_of_arrays,
    edges_of_matrix,
    edges_of_networkx,
    object_array,
    refuse_columns,
)
from apexrank.kernels.edges import index_type
from apexrank.kernels.jit import kernel
from apexrank.textfile import (
    DAMAGED,
    HEAD,
    File,
    check_is_text,
    opened,
    read_text,
    reading,
    unpacked,
    unpacked_limit,
)

CODES = ("UNARY", "GAMMA", "DELTA", "ZETA")  # codes of a WebGraph file


def recognise(file: File) -> str:
    r"""Detect the format of a file by its first bytes, else by its name; files of no other format are text.

    Raises
    ------
    InputError
        For JSON, HTML and binary files of no supported format; see :func:`apexrank.textfile.check_is_text`.

    Examples
    --------
    >>> from apexrank.textfile import Stream
    >>> recognise(Stream("a", b"*Vertices 2\n")), recognise(Stream("a", b'{"from": 1, "to": 2}\n'))
    ('pajek', 'jsonl')
    >>> recognise(Stream("a.adjlist", b"1 2\n")), recognise(Stream("a", b"1 2\n"))
    ('adjacency', 'text')
    """
    try:
        with reading(file), opened(file, streamed=True, checked=False) as content:
            head = content.read(HEAD).removeprefix(BOM_UTF8)
    except InputError:  # the reader reports the error and its location
        head = b""
    for name, known in _FORMATS.items():
        if known.mark and re.match(known.mark, head):
            return name
    if re.match(rb"\s*\{", head) and _is_json_line(file):
        return "jsonl"
    suffix = re.sub(r"\.gz$", "", str(file).lower()).rpartition(".")[2]
    if suffix != "graph":
        check_is_text(file, head)
    if named := [name for name, known in _FORMATS.items() if suffix in known.suffixes]:
        return named[0]
    if suffix == "graph" and re.search(rb"[\0-\x08]", head):
        raise InputError(f"{file} is a WebGraph file: name it, with its .properties file beside it")
    return "text"


def _is_json_line(file: File) -> bool:
    """Return whether the first non-blank line is a JSON object, but not a whole graph."""
    try:
        with opened(file, streamed=True, checked=False) as content:
            first = next((line for line in content if line.strip()), b"")
            found = json.loads(first.removeprefix(BOM_UTF8))
    except (ValueError, RecursionError, OSError, *DAMAGED):
        return False
    return isinstance(found, dict) and not {"nodes", "vertices", "graph"} & found.keys()


def webgraph_base(path: str | Path, format: str | None = None) -> str | None:
    """Return the base name of the files of a WebGraph if a path is one of them or the base name, else None."""
    base = re.sub(r"\.(graph|properties|offsets)$", "", str(path))
    missing = [f"{base}{end}" for end in (".graph", ".properties") if not Path(f"{base}{end}").is_file()]
    if format == "webgraph" and missing:
        raise InputError(f"cannot read {str(path)!r} as WebGraph: there is no {missing[0]}")
    if missing or (format is None and base == str(path) and Path(path).exists()):
        return None
    return base if format in (None, "webgraph") else None


def read_foreign(file: File, format: str, source: Column, target: Column, weight: Column) -> Edges:
    """Read edges from a file in a format other than a table; ``weight`` may name an edge attribute."""
    name = _FORMATS[format].name
    try:
        refuse_columns(name, source=source, target=target)
        found = _FORMATS[format].read(file)
        if isinstance(found, Edges):
            refuse_columns(name, weight=weight or None)
            return replace(found, weights=None) if weight is False else found
        if hasattr(found, "is_directed"):
            return edges_of_networkx(found, weight)
        refuse_columns(name, weight=weight or None)
        _check_vertices(file, found.shape[0])
        edges = edges_of_matrix(found, use_weights=weight is not False)
        # Matrix Market files number vertices from 1
        return replace(edges, names=np.arange(1, edges.n + 1)) if format == "matrix-market" else edges
    except (MissingExtraError, MemoryError):
        raise
    except InputError as error:
        about = str(error)
        raise error if about.startswith(str(file)) else InputError(f"{file}: {about}") from None
    except Exception as error:  # the parsers of networkx and scipy fail in many ways
        about = one_line(str(error)) or type(error).__name__
        raise InputError(f"cannot read {file} as {name}: {about}") from None


def _check_vertices(file: File, n: int) -> None:
    """Raise InputError for a number of vertices that is implausible for the size of the file."""
    if not 0 < 16 * n <= unpacked_limit(file, "npz"):
        raise InputError(f"{file} claims {n} vertices, which does not fit its size: copy the file again")


def _networkx(file: File) -> tuple[Any, bytes]:
    """Return the networkx module and the bytes of the file to parse."""
    try:
        import networkx as nx
    except ImportError:
        raise MissingExtraError(
            'GraphML, GEXF and GML files need networkx: pip install "apexrank[graph]"'
        ) from None
    with reading(file):
        return nx, unpacked(file, checked=False)


def _by_networkx(function: str) -> Callable[[File], Any]:
    def reader(file: File) -> Any:
        nx, content = _networkx(file)
        return getattr(nx, function)(BytesIO(content))

    return reader


def _gml(file: File) -> Any:
    """Read GML with vertices by label, or by id without labels; repeated edges are allowed."""
    nx, content = _networkx(file)
    text = content.decode("utf-8-sig")
    text, several = re.subn(r"\bmultigraph\s+[01]\b", "multigraph 1", text, count=1)
    if not several:
        text = re.sub(r"(?i)\bgraph\s*\[", "graph [ multigraph 1", text, count=1)
    return nx.parse_gml(text, label="label" if re.search(r"\bnode\s*\[[^\]]*\blabel\s", text) else "id")


def _pajek(file: File) -> Edges:
    """Read the sections *Vertices, *Arcs, *Edges, *Arcslist and *Edgeslist; unique labels become names."""
    section, n, kinds = "", 0, set()
    labels: dict[int, str] = {}
    links: list[tuple[int, int, float, int]] = []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        fields = [field.strip('"') for field in re.findall(r'"[^"]*"|\S+', line)]
        try:
            if not fields or line.startswith("%"):
                continue
            if fields[0].startswith("*"):
                section = fields[0].lower().partition(":")[0]
                if section == "*vertices":
                    n = int(fields[1])
                    _check_vertices(file, n)
                elif section in ("*arcs", "*edges", "*arcslist", "*edgeslist"):
                    kinds.add(section[:5])
                elif section != "*network":
                    raise InputError(
                        f"{file} line {number}: sections {fields[0]} of Pajek files are not read"
                    )
            elif section == "*vertices":
                labels[int(fields[0])] = fields[1] if len(fields) > 1 else fields[0]
            elif section.endswith("list"):
                links += [(int(fields[0]), int(end), 1.0, number) for end in fields[1:]]
            elif section != "*network":
                links.append((int(fields[0]), int(fields[1]), float((*fields, 1, 1)[2]), number))
        except (ValueError, IndexError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{file} line {number}: {line.strip()[:40]!r} is not a line of {section}"
            ) from None
    if len(kinds) > 1:
        raise InputError(f"{file} has both *Arcs and *Edges: write each edge as two arcs")
    columns = np.array(links, dtype=float).reshape(-1, 4).T
    ends = columns[:2].astype(np.int64) - 1
    wrong = np.flatnonzero(((ends < 0) | (ends >= n)).any(0))
    if len(wrong) or not n or not all(0 < label <= n for label in labels):
        where = f" line {links[wrong[0]][3]}" if len(wrong) else ""
        raise InputError(f"{file}{where}: a vertex is beyond the {n} of *Vertices")
    names = [labels.get(i, str(i)) for i in range(1, n + 1)] if labels else []
    unique = object_array(names) if len(set(names)) == n else np.arange(1, n + 1)
    weights = None if (columns[2] == 1).all() else columns[2]
    sources, targets = ends.astype(index_type(n))
    is_directed = kinds != {"*edge"}

    def place(row: int) -> str:
        return f"{file} line {links[row][3]}"

    return Edges(sources, targets, weights, n, unique, place, directed=is_directed)


def _adjacency(file: File) -> Edges:
    """Read an adjacency list: each line has a vertex and the vertices it links to, possibly none."""
    rows = [(i, line.split()) for i, line in enumerate(read_text(file).split("\n"), 1) if line[:1] != "#"]
    rows = [(number, fields) for number, fields in rows if fields]
    links = [(fields[0], end, number) for number, fields in rows for end in fields[1:]]
    if not links:
        raise InputError(f"{file} has no links: write a vertex and those it links to, between blanks")
    # a vertex without links gets a temporary link to itself
    alone = [(fields[0], fields[0], number) for number, fields in rows if len(fields) == 1]
    ends: list[Any] = [[link[k] for link in links + alone] for k in (0, 1)]
    if all(re.fullmatch(r"-?(0|[1-9]\d{0,17})", end) for column in ends for end in column):
        ends = [np.array(list(map(int, column))) for column in ends]
    edges = edges_of_arrays(ends[0], ends[1], None, lambda row: f"{file} line {links[row][2]}")
    return edges.of_rows(np.arange(len(links)))


def _matrix_market(file: File) -> Any:
    with reading(file):
        content = unpacked(file)
    head, _, rest = content.partition(b"\n")
    sizes = next((line.split() for line in rest.split(b"\n", 1000) if line.strip() and line[:1] != b"%"), [])
    counts = sizes[:2] if b"array" in head.lower() else sizes[2:3]
    entries = np.prod([float(count) for count in counts])
    if not entries <= len(content):
        raise InputError(f"{file} claims {entries:.0f} entries, more than it has bytes: copy the file again")
    matrix = io.mmread(BytesIO(content))
    return matrix.astype(bool) if b"pattern" in head.lower() else matrix


def _webgraph(base: Any) -> Edges:
    """Read a BVGraph (Boldi and Vigna, "The WebGraph framework I", 2004); the vertices are 0 to n − 1."""
    text = read_text(f"{base}.properties")
    given = dict(re.findall(r"(?m)^\s*([a-z]+)\s*[=:]\s*(.*?)\s*$", text))
    graph = Path(f"{base}.graph")
    if not given.get("graphclass", "").endswith(".BVGraph") or given.get("endianness", "big") != "big":
        raise InputError(f"{base}.properties: only big-endian graphs of the class BVGraph are read")
    defaults = {"OUTDEGREES": "GAMMA", "REFERENCES": "UNARY", "BLOCK_COUNT": "GAMMA", "BLOCKS": "GAMMA"}
    codes = {**defaults, "RESIDUALS": "ZETA", "OFFSETS": "GAMMA"}
    for flag in filter(None, re.split(r"[\s|]+", given.get("compressionflags", ""))):
        part, _, code = flag.rpartition("_")
        if part not in codes or code not in CODES:
            raise InputError(f"{base}.properties: the compression flag {flag!r} is not known")
        codes[part] = code
    keys = ("nodes", "arcs", "windowsize", "minintervallength")
    try:
        n, m, window, shortest = (int(given[key]) for key in keys)
        zeta = int(given.get("zetak", 3))
    except (KeyError, ValueError):
        raise InputError(f"{base}.properties needs whole numbers for {', '.join(keys)} and zetak") from None
    data = np.fromfile(graph, np.uint8)
    # every vertex needs at least one bit
    if not (0 < n <= 8 * len(data) and 0 <= 4 * m <= unpacked_limit(graph, "webgraph") and 0 < zeta < 32):
        raise InputError(f"{base}.properties does not fit the {len(data)} bytes of {graph}: copy both again")
    indptr, indices = np.zeros(n + 1, np.int64), np.empty(m, index_type(n))
    numbers = np.array([CODES.index(codes[part]) for part in (*defaults, "RESIDUALS")])
    broken = decode(data, indptr, indices, window, shortest, zeta, numbers)
    if broken >= 0 or indptr[n] != m:
        raise InputError(f"{graph} is damaged at vertex {broken if broken >= 0 else n}: copy the file again")
    sources = np.repeat(np.arange(n, dtype=indices.dtype), np.diff(indptr))
    return Edges(sources, indices, None, n)


class _Format(NamedTuple):
    """File format: its name in messages, file name suffixes, a pattern at the start of a file, and a reader.

    Edge tables have no reader here.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    mark: bytes = b""
    read: Callable[[File], Any] = lambda file: None


# possessive quantifiers (*+) avoid catastrophic backtracking on comment lines
_GML = rb'(?i)(?:\s*#.*+|\s*(?:creator|version|comment|label)\s+(?:"[^"]*"|\S++))*+\s*graph\s*\['
_PAJEK = rb"(?i)(?:\s*%.*+)*+\s*\*(?:network|vertices|arcs|edges|matrix)"
_FORMATS = {
    "text": _Format("text"),
    "jsonl": _Format("JSON lines", ("jsonl", "ndjson")),
    "parquet": _Format("Parquet", ("parquet", "pq"), rb"PAR1"),
    "adjacency": _Format("adjacency list", ("adjlist",), read=_adjacency),
    "graphml": _Format(
        "GraphML", ("graphml",), rb"\s*<(?:(?s:.)*?<)?graphml\b", _by_networkx("read_graphml")
    ),
    "gexf": _Format("GEXF", ("gexf",), rb"\s*<(?:(?s:.)*?<)?gexf\b", _by_networkx("read_gexf")),
    "gml": _Format("GML", ("gml",), _GML, _gml),
    "pajek": _Format("Pajek", (), _PAJEK, _pajek),
    "matrix-market": _Format("Matrix Market", ("mtx",), rb"(?i)%%MatrixMarket\b", _matrix_market),
    "npz": _Format("NumPy", ("npz",), rb"PK\x03\x04", read_npz),
    "webgraph": _Format("WebGraph", read=_webgraph),
}
FORMATS = tuple(_FORMATS)


@kernel()
def _unary(data, at):
    """Count the 0 bits before the next 1 bit; return the count and the position after it."""
    begin, end = at, 8 * data.size
    while at < end and not (data[at >> 3] >> (7 - (at & 7))) & 1:
        at += 1
    return at - begin, at + 1


@kernel()
def _bits(data, at, count):
    value, end = 0, 8 * data.size
    for k in range(at, min(at + count, end)):
        value = (value << 1) | ((data[k >> 3] >> (7 - (k & 7))) & 1)
    return value, at + count


@kernel()
def read_code(data, at, code, zeta):
    """Read a non-negative number; return it and the position after it (beyond the end if the data are truncated)."""
    size, at = _unary(data, at)
    if code == 0:
        return size, at
    if code == 2:  # delta: the size is gamma-coded
        value, at = _bits(data, at, min(size, 62))
        size = (1 << min(size, 62) | value) - 1
    if code == 3:
        width = size * zeta
        if width + zeta > 62:
            return 0, 8 * data.size + 1
        value, at = _bits(data, at, width + zeta - 1)
        if value < 1 << width:
            return value + (1 << width) - 1, at
        last, at = _bits(data, at, 1)
        return 2 * value + last - 1, at
    if size > 62:
        return 0, 8 * data.size + 1
    value, at = _bits(data, at, size)
    return (1 << size | value) - 1, at


@kernel()
def _signed(value):
    return value >> 1 if value & 1 == 0 else -((value + 1) >> 1)


@kernel()
def decode(data, indptr, indices, window, shortest, zeta, codes):
    """Decode the links of each vertex into ``indptr`` and ``indices``; return the first damaged vertex, or -1.

    A file is one stream of bits, the most significant of each byte first. A vertex has its out-degree d and, if d > 0:
    the distance to the earlier list that it copies from (0: none; omitted if the window is 0); if it copies, the number
    of blocks and their lengths, of which the first, third, ... are copied and the others skipped (all lengths except
    the first are stored minus 1, and everything after an even number of blocks is copied); and if links are still
    missing, intervals of consecutive numbers (their number, then for each its start and its length minus the shortest)
    and the gaps of the residuals. The start of the first interval and the first residual are relative to the vertex,
    with the sign in the lowest bit; others are relative to the end of the previous one, minus 1.

    ``codes`` are those of out-degrees, references, numbers of blocks, blocks and residuals, by position in `CODES`.
    """
    at, n, end = 0, indptr.size - 1, 8 * data.size
    for x in range(n):
        begin = indptr[x]
        degree, at = read_code(data, at, codes[0], zeta)
        if at > end or degree > indices.size - begin:
            return x
        indptr[x + 1] = stop = begin + degree
        if degree == 0:
            continue
        k = begin  # position of the next link
        back = 0
        if window > 0:
            back, at = read_code(data, at, codes[1], zeta)
        if back > 0:
            if back > min(x, window):
                return x
            copied, last = indptr[x - back], indptr[x - back + 1]
            blocks, at = read_code(data, at, codes[2], zeta)
            if at > end or blocks > last - copied + 1:
                return x
            for block in range(blocks + 1):
                length = last - copied  # everything after the last block
                if block < blocks:
                    length, at = read_code(data, at, codes[3], zeta)
                    length += block > 0
                if at > end or length > last - copied or (block % 2 == 0 and length > stop - k):
                    return x
                if block % 2 == 0:
                    indices[k : k + length] = indices[copied : copied + length]
                    k += length
                copied += length
        if k < stop and shortest > 0:
            intervals, at = read_code(data, at, 1, zeta)
            if at > end or intervals > stop - k:
                return x
            value = x
            for interval in range(intervals):
                gap, at = read_code(data, at, 1, zeta)
                value += _signed(gap) if interval == 0 else gap + 1
                length, at = read_code(data, at, 1, zeta)
                length += shortest
                if at > end or length > stop - k or not 0 <= value <= n - length:
                    return x
                for _ in range(length):
                    indices[k] = value
                    value += 1
                    k += 1
        value = x
        first = True
        while k < stop:
            gap, at = read_code(data, at, codes[4], zeta)
            value += _signed(gap) if first else gap + 1
            first = False
            if at > end or not 0 <= value < n:
                return x
            indices[k] = value
            k += 1
        indices[begin:stop].sort()
        for j in range(begin + 1, stop):
            if indices[j] == indices[j - 1]:
                return x
    return -1
