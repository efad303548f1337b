"""Conversion of edge files of any size to shards with bounded memory, by an external sort by target and source.

1. The files are read in chunks. Each chunk is written to disk with a key for each end: the id itself if ids are whole
   numbers, its 64-bit hash if they are text; the distinct names of the chunk are written as a sorted run.
2. The sorted distinct ids get the numbers 0 to n − 1, as in :func:`apexrank.graph.as_graph`. Runs of names are merged
   one alphabetical range at a time. Hash collisions are detected here: everything is then repeated with another hash.
3. The chunks are numbered, and their links are divided into buckets of consecutive targets.
4. Each bucket is sorted in memory, repeated links are merged, and it becomes a shard.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from apexrank.errors import InputError
from apexrank.graph import files, shards
from apexrank.graph.edges import Column, as_weights, edges_of_arrays, plain_ids
from apexrank.graph.files import TABLES, EdgeTable
from apexrank.graph.formats import FORMATS, recognise
from apexrank.graph.graph import check_rules, check_weights, merge_links, repeated_link
from apexrank.graph.reading import as_graph
from apexrank.graph.shards import (
    ShardedGraph,
)
from apexrank.kernels import edges as kernels
from apexrank.kernels.edges import (
    Links,
    index_type,
)
from apexrank.validation import check_choice, check_polars_threads

Tell = Callable[[str], Any]
_RUN_ROWS = 1 << 16  # names per row group of a sorted run; row groups can be skipped
_BYTES_OF_LINK = {False: 24, True: 60}  # while sorting a bucket: as read, by source, and by target
_SAMPLES = 256  # names sampled from a run to choose alphabetical ranges


class _HashCollisionError(Exception):
    """Raised when two names have the same hash."""


def pack_graph(
    paths: str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    directed: bool | None = None,
    source: Column = None,
    target: Column = None,
    weight: Column = None,
    repeated: str = "sum",
    self_loops: str = "keep",
    format: str | None = None,
    memory: float = 2e9,
    links: int = shards.LINKS,
    progress: Tell | None = None,
) -> ShardedGraph:
    r"""Convert edge files of any size to a sharded graph with bounded memory.

    The result is the graph that :func:`as_graph` reads, with the same vertex numbers.

    Parameters
    ----------
    paths : path or list of paths
        Files of edges, folders or patterns of them, or ``-`` for standard input: CSV, TSV, lists with white space,
        JSON lines (all also gzip) or Parquet. A single file of another format is read into memory as a whole.
    folder : str or Path
        Output folder, written atomically; an existing folder is replaced only if it is empty or a sharded graph.
        During conversion a hidden folder beside it needs about 16 bytes per link, 32 with weights, and up to the size
        of the files if ids are text.
    directed, source, target, weight, repeated, self_loops, format
        As in :func:`as_graph`.
    memory : float
        Bytes for edges and names. In addition it needs about 40 bytes per vertex, and all links of a vertex are sorted
        at once.
    links : int
        Approximate maximum number of links per shard; fewer if memory is small.
    progress : callable, optional
        Called with a description of each step.

    Returns
    -------
    ShardedGraph
        The graph in the folder.

    Raises
    ------
    InputError
        With the edge and its line, as in :func:`as_graph`; also for a full disk. No files are left behind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "edges.txt").write_text("b a\na c\nb c\n")
    ...     graph = pack_graph(f"{folder}/edges.txt", f"{folder}/edges.shards")
    ...     graph, graph.names.tolist()
    (ShardedGraph(3 vertices, 3 links in 1 shards), ['a', 'b', 'c'])
    """
    check_rules(repeated, self_loops)
    if format is not None:
        check_choice("format", format, FORMATS)
    if not memory > 0 or links < 1:
        raise InputError("`memory` and `links` must be positive")
    check_polars_threads("edges are packed")
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    rules: dict[str, Any] = {"repeated": repeated, "self_loops": self_loops, "format": format}
    if len(listed) == 1 and _is_foreign(listed[0], format):
        graph = as_graph(listed[0], directed=directed, weight=weight, **rules)
        shards.save_shards(graph, folder, links=links)
        return shards.open_shards(folder)
    with shards.writing_shards(folder) as temporary, tempfile.TemporaryDirectory(dir=temporary) as scratch:
        tables = [files.files_of_edges(path, Path(scratch, f"stream{i}")) for i, path in enumerate(listed)]
        packing = _Packing(
            [file for several in tables for file in several],
            (source, target, weight),
            directed is not False,
            **rules,
            memory=int(memory),
            links=links,
            tell=progress or (lambda message: None),
        )
        while not packing.write(temporary):
            pass
    return shards.open_shards(folder)


def _is_foreign(path: str | Path, format: str | None) -> bool:
    """Return whether a path is a graph in a format other than an edge table."""
    if format is not None or str(path) == "-":
        return format is not None and format not in TABLES
    return Path(path).is_file() and recognise(Path(path)) not in TABLES


@dataclass
class _Packing:
    """Packing of edge files; each attempt uses its own scratch folder."""

    paths: list[Any]
    columns: tuple[Column, Column, Column]
    directed: bool
    repeated: str
    self_loops: str
    format: str | None
    memory: int
    links: int
    tell: Tell
    # files with text ids, unlike those of their first edge
    as_text: set[str] = field(default_factory=set)
    seed: int = 0
    weighted: bool = False
    scratch: Path = Path()

    def write(self, folder: Path) -> bool:
        """Write the shards; return False if another attempt is needed."""
        try:
            with tempfile.TemporaryDirectory(dir=folder, prefix="scratch") as scratch:
                self.scratch = Path(scratch)
                self._write(folder)
            return True
        except files.MostlyTextError as error:
            self.as_text.add(str(error.file))
        except _HashCollisionError:
            self.seed += 1
        return False

    def _tables(self) -> Iterator[EdgeTable]:
        # parsing needs about ten times the memory of the text
        size = max(16, self.memory // 20)
        return files.edge_tables(self.paths, *self.columns, self.format, size, self.as_text)

    def _write(self, folder: Path) -> None:
        vertices, chunks = self._read()
        self.tell("numbering the vertices")
        names = vertices.number()
        counts = np.zeros(vertices.n)
        for i, chunk in enumerate(chunks, 1):
            self.tell(f"numbering the edges: part {i} of {len(chunks)}")
            self._number(chunk, vertices, counts)
        vertices.lookup = None
        bounds = self._divide(chunks, counts)
        del counts
        writer = shards.ShardWriter(folder, vertices.n)
        total = 0.0
        for k, (first, last) in enumerate(pairwise(bounds)):
            self.tell(f"sorting: shard {k + 1} of {len(bounds) - 1}")
            links = self._sorted(k, last - first, vertices.n)
            if self.repeated == "error" and (found := kernels.first_repeated(links)):
                self._refuse_repeated(vertices.label(found[1]), vertices.label(first + found[0]))
            links, total = merge_links(links, self.repeated, total)
            writer.add(links)
        writer.finish(names)

    def _read(self) -> tuple[Any, list[Path]]:
        """Read all edges once and write them to the scratch folder by key."""
        chunks: list[Path] = []
        vertices: Any = None
        headers: dict[str, EdgeTable] = {}  # tables without their edges
        n = 0
        for table, sources, targets in self._ends():
            if vertices is None:
                vertices = _WholeIds(self.memory)
                if not isinstance(sources, np.ndarray):
                    vertices = _TextIds(self.scratch, self.memory, self.seed)
                if note := files.assumed(table, self.columns):
                    warnings.warn(note, stacklevel=5)
            if str(table.file) not in headers:
                headers[str(table.file)] = replace(table, columns=(None, None, None), place=str)
            weights = table.columns[2]
            self.weighted = weights is not None
            if weights is not None:
                weights = as_weights(weights, len(sources), table.place)
                if not (np.isfinite(weights).all() and (weights >= 0).all()):
                    check_weights(edges_of_arrays(sources, targets, weights, table.place))
            chunks.append(self.scratch / f"chunk{len(chunks)}")
            _dump(chunks[-1], *vertices.keys(sources, targets), weights)
            n += len(sources)
            self.tell(f"reading {table.file}: {n:,} edges")
        for table in headers.values():
            files.refuse_lost_edge(table, vertices.has)
        return vertices, chunks

    def _ends(self) -> Iterator[tuple[EdgeTable, Any, Any]]:
        """Iterate over tables with their source and target ids, both whole numbers or both text."""
        import polars as pl

        first: list[Any] = []
        for table in self._tables():
            columns = zip(table.columns[:2], ("source", "target"), strict=True)
            ends = [plain_ids(ids, role, table.place) for ids, role in columns]
            first = first or [table.file, *map(type, ends)]
            for known, ids in zip(first[1:], ends, strict=True):
                files.refuse_other_ids(first[0], known, table.file, ids)
                if isinstance(ids, list):
                    raise InputError(f"{table.place(0)}: ids must be text or whole numbers below 2**63")
            if not all(isinstance(ids, np.ndarray) for ids in ends):
                ends = [pl.Series(ids).cast(pl.String) for ids in ends]
            yield table, ends[0], ends[1]

    def _number(self, chunk: Path, vertices: Any, counts: np.ndarray) -> None:
        """Replace ids in a chunk by vertex numbers, and count the links into each vertex."""
        *ends, weights = _load(chunk)
        sources, targets = map(vertices.lookup, ends)
        kept = np.ones(len(sources), bool) if weights is None else weights != 0
        if self.self_loops == "drop":
            kept &= sources != targets
        if not kept.all():
            sources, targets = sources[kept], targets[kept]
            weights = None if weights is None else weights[kept]
        if not self.directed:
            # keep each edge next to its reverse, so that repeated links are summed in file order
            kept = np.repeat(sources != targets, 2)
            kept[::2] = True
            turned = np.column_stack([targets, sources]).ravel()[kept]
            sources, targets = np.column_stack([sources, targets]).ravel()[kept], turned
            weights = None if weights is None else np.repeat(weights, 2)[kept]
        np.add.at(counts, targets, 1)
        _dump(chunk, sources, targets, weights)

    def _divide(self, chunks: list[Path], counts: np.ndarray) -> list[int]:
        """Divide the links into buckets of consecutive vertices; return the bounds of the buckets."""
        links = max(1, min(self.links, self.memory // _BYTES_OF_LINK[self.weighted]))
        spans = shards.shard_rows(np.concatenate([[0], np.cumsum(counts)]), links)
        bounds = [0, *(last for _, last in spans)]
        for i, chunk in enumerate(chunks, 1):
            self.tell(f"dividing the edges: part {i} of {len(chunks)}")
            sources, targets, weights = _load(chunk)
            chunk.unlink()
            starts, order = kernels.bucket_rows(targets, np.array(bounds))
            for k in np.flatnonzero(np.diff(starts)).tolist():
                rows = order[starts[k] : starts[k + 1]]
                parts = sources[rows], targets[rows] - targets.dtype.type(bounds[k])
                for path, values in zip(self._bucket(k), (*parts, weights), strict=True):
                    if values is not None:
                        with path.open("ab") as file:
                            file.write((values[rows] if values is weights else values).data)
        return bounds

    def _bucket(self, k: int) -> list[Path]:
        return [self.scratch / f"bucket{k}.{part}" for part in ("sources", "targets", "weights")]

    def _sorted(self, k: int, rows: int, n: int) -> Links:
        """Sort the links of a bucket by target and source, keeping repeated ones."""
        kinds: list[Any] = [index_type(n), index_type(n), np.float64]
        paths = [path for path in self._bucket(k) if path.exists()]
        found: list[Any] = [np.fromfile(path, kind) for path, kind in zip(paths, kinds, strict=False)]
        for path in paths:
            path.unlink()
        if not found:
            return Links(np.zeros(rows + 1, np.int64), np.empty(0, index_type(n)), None)
        weights = found[2] if self.weighted else None
        return kernels.in_links(found[0], found[1], weights, n, n_targets=rows)

    def _refuse_repeated(self, source: Any, target: Any) -> None:
        """Read the files again to report the locations of the two edges of a repeated link."""
        places: list[str] = []
        for table, sources, targets in self._ends():
            same = np.asarray((sources == source) & (targets == target))
            if not self.directed:
                same |= np.asarray((sources == target) & (targets == source))
            if table.columns[2] is not None:
                same &= as_weights(table.columns[2], len(sources), table.place) != 0
            for row in np.flatnonzero(same).tolist():
                places.append(table.place(row))
                if len(places) == 2:
                    if sources[row] != source:
                        source, target = target, source
                    raise repeated_link(places[1], source, target, places[0])


class _WholeIds:
    """Vertices with whole numbers as ids: a table of all possible ids, or a sorted list if that is too long.

    ``lookup`` maps keys to vertex numbers.
    """

    def __init__(self, memory: int) -> None:
        self._most = memory // 4
        self._seen: np.ndarray | None = np.zeros(0, bool)
        self._known: list[np.ndarray] = []  # each sorted and unique
        self._names = np.empty(0, np.int64)
        self.lookup: Any = None
        self.n = 0

    def keys(self, sources: np.ndarray, targets: np.ndarray) -> list[np.ndarray]:
        lowest = int(min(sources.min(), targets.min()))
        highest = int(max(sources.max(), targets.max()))
        if self._seen is not None and not (lowest >= 0 and highest < self._most):
            self._known, self._seen = [np.flatnonzero(self._seen)], None
        if self._seen is None:
            self._known.append(np.unique(np.concatenate([sources, targets])))
            if sum(map(len, self._known[1:])) > len(self._known[0]):
                self._known = [np.unique(np.concatenate(self._known))]
        else:
            seen = kernels.seen_ids(sources, targets, highest + 1)
            if len(seen) > len(self._seen):
                seen, self._seen = self._seen, seen
            self._seen[: len(seen)] |= seen
        kind = index_type(highest + 1) if lowest >= 0 else np.int64
        return [ids.astype(kind, copy=False) for ids in (sources, targets)]

    def number(self) -> np.ndarray | None:
        if self._seen is None:
            self._names = np.unique(np.concatenate(self._known))
            table: Any = kernels.number_table(self._names)
            self.lookup = partial(kernels.numbers_of, table=table)
            self._known = []
        else:
            self._names = np.flatnonzero(self._seen)
            numbers = np.cumsum(self._seen, dtype=index_type(len(self._names)))
            numbers -= 1
            self.lookup = partial(kernels.looked_up, numbers=numbers)
            self._seen = None
        self.n = len(self._names)
        return None if self._names[0] == 0 and self._names[-1] == self.n - 1 else self._names

    def label(self, vertex: int) -> int:
        return int(self._names[vertex])

    def has(self, name: str) -> bool:
        return False


class _TextIds:
    """Vertices with text ids: keys are hashes, and the names of each chunk are a sorted run on disk."""

    def __init__(self, scratch: Path, memory: int, seed: int) -> None:
        self._scratch, self._memory, self._seed = scratch, memory, seed
        self._runs: list[Path] = []
        self._samples: list[str] = []
        self._bytes = 0
        self._names: Any = None
        self.lookup: Any = None
        self.n = 0

    def keys(self, sources: Any, targets: Any) -> list[np.ndarray]:
        import polars as pl

        names = pl.concat([sources.unique(), targets.unique()]).unique().sort().alias("name")
        run = pl.DataFrame({"name": names, "key": self._hash(names)})
        self._runs.append(self._scratch / f"names{len(self._runs)}.parquet")
        run.write_parquet(self._runs[-1], row_group_size=_RUN_ROWS)
        self._bytes += int(run.estimated_size())
        # as a list, because a slice of a series keeps all of its text in memory
        self._samples += names.gather_every(-(-len(names) // _SAMPLES)).to_list()
        return [self._hash(ids) for ids in (sources, targets)]

    def _hash(self, names: Any) -> np.ndarray:
        return names.hash(self._seed).to_numpy().view(np.int64)

    def number(self) -> Any:
        import polars as pl

        # a range is in memory as read, joined and sorted
        ranges = -(-4 * self._bytes // self._memory)
        samples = sorted(set(self._samples))
        bounds = samples[:: -(-len(samples) // ranges)][1:]
        runs, name = pl.scan_parquet(self._runs, glob=False), pl.col("name")
        parts: list[Path] = []
        keys = []
        for low, high in pairwise([None, *bounds, None]):
            part = runs
            part = part if low is None else part.filter(name >= low)
            part = part if high is None else part.filter(name < high)
            found = part.unique("name").sort("name").collect()
            parts.append(self._scratch / f"part{len(parts)}.parquet")
            found.select("name").write_parquet(parts[-1])
            keys.append(found["key"].to_numpy())
        for run in self._runs:
            run.unlink()
        self._names = pl.scan_parquet(parts, glob=False)
        self.n = sum(map(len, keys))
        table = kernels.number_table(np.concatenate(keys))
        if table is None:
            raise _HashCollisionError
        self.lookup = partial(kernels.numbers_of, table=table)
        return self._names

    def label(self, vertex: int) -> str:
        return self._names.slice(vertex, 1).collect().item()

    def has(self, name: str) -> bool:
        import polars as pl

        runs = pl.scan_parquet(self._runs, glob=False)
        return not runs.filter(pl.col("name") == name).head(1).collect().is_empty()


def _dump(path: Path, *arrays: np.ndarray | None) -> None:
    """Write arrays to a file in sequence; None is written as an empty array."""
    with path.open("wb") as file:
        for values in arrays:
            shards.write_array(file, np.empty(0) if values is None else values)


def _load(path: Path) -> list[Any]:
    """Read the sources, targets and weights of a chunk."""
    with path.open("rb") as file:
        sources, targets, weights = (np.load(file, allow_pickle=False) for _ in range(3))
    return [sources, targets, weights if len(weights) else None]
