"""Graph file formats of other programs, detected by content and name, and their readers.

GraphML, GEXF and GML are read by networkx, Matrix Market by scipy. Pajek has its own reader, because that of networkx
merges vertices with equal labels and reads the headings of later sections as edges.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from scipy import io
from scipy.sparse import csr_array, load_npz

from apexrank.errors import InputError, MissingExtraError, one_line
from apexrank.files import (
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


def recognise(file: File) -> str:
    r"""Detect the format of a file by its first bytes, else by its name; files of no other format are text.

    Raises
    ------
    InputError
        For JSON, HTML and binary files of no supported format; see :func:`apexrank.files.check_is_text`.

    Examples
    --------
    >>> from apexrank.files import Stream
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
    check_is_text(file, head)
    if named := [name for name, known in _FORMATS.items() if suffix in known.suffixes]:
        return named[0]
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


def read_npz(file: File) -> Any:
    """Read a matrix written by scipy.sparse.save_npz, or the arrays indptr, indices, shape and maybe data of a CSR."""
    with reading(file):
        content = unpacked(file, checked=False)
    try:
        with np.load(BytesIO(content), allow_pickle=False) as arrays:
            if sum(entry.file_size for entry in arrays.zip.infolist()) > unpacked_limit(file, "npz"):
                raise InputError("it unpacks to far more than its size suggests")
            if "format" in arrays:
                return load_npz(BytesIO(content))
            indices, indptr, shape = (arrays[key] for key in ("indices", "indptr", "shape"))
            data = arrays["data"] if "data" in arrays else np.ones(len(indices), dtype=bool)
        matrix = csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
    except Exception as error:  # damaged files raise many kinds of errors
        raise InputError(
            f"{file} is not a graph: it needs the arrays indptr, indices and shape of a CSR matrix "
            f"({one_line(str(error))})"
        ) from None
    return matrix


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
}
FORMATS = tuple(_FORMATS)
