"""Graphs larger than memory: a folder of in-links in shards by target, read in sequence or by Dask workers.

``graph.json`` is written last, and the folder is renamed when it is complete. Arrays are NumPy ``.npy`` files, so that
shards are memory-mapped.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from apexrank.errors import InputError
from apexrank.files import reading, replacing
from apexrank.graph.edges import object_array
from apexrank.graph.graph import Graph, Vertices
from apexrank.kernels.csr import InLinks, LinkSums
from apexrank.kernels.edges import Links, add_column_weights, index_type
from apexrank.validation import check_choice

FORMAT, VERSION = "apexrank graph", 1
LINKS = 1 << 25  # per shard, by default
_KEYS: dict[str, Any] = {"n": int, "n_edges": int, "weighted": bool, "names": str | None, "shards": list}
_SHARD_KEYS: dict[str, Any] = {"name": str, "first": int, "last": int, "n_edges": int, "bytes": int}
_NAME_FILES = (None, "names.npy", "names.parquet")
# attributes of a Graph that the ranks below do not need
_IN_MEMORY = ("_links", "indptr", "indices", "weights", "reversed", "to_scipy", "summary", "nbytes")
RANKS_OF_SHARDS = (
    "PageRank, GuardedPageRank, LpqRank, TopMeanRank, ConcaveConvexRank, TrustRank, SpamMassRank and InDegree"
)
Engine = Literal["blocks", "dask"]
_COPY = "copy the folder again, or pack the edges again"


@dataclass(frozen=True)
class Shard:
    """In-links of the vertices ``first`` to ``last`` − 1 of a graph of n vertices, in files.

    Parameters
    ----------
    folder : Path
        Folder of the graph.
    name : str
        Its files are ``NAME.indptr.npy``, ``NAME.indices.npy`` and, with weights, ``NAME.weights.npy``.
    n : int
        Number of vertices of the graph, all possible sources.
    first, last : int
        Range of target vertices; ``last`` is excluded.
    n_edges : int
        Number of links.
    weighted : bool
        Whether links have weights.
    """

    folder: Path
    name: str
    n: int
    first: int
    last: int
    n_edges: int
    weighted: bool

    def load(self) -> Links:
        """Memory-map the links and check them; row i is vertex ``first + i``."""
        links = self.map()
        self.check(links)
        return links

    def check(self, links: Links) -> None:
        """Raise InputError for invalid links, with which kernels would access memory out of bounds."""
        if links.indptr[0] != 0 or links.indptr[-1] != self.n_edges or (np.diff(links.indptr) < 0).any():
            raise InputError(f"{self._file('indptr')} is damaged: its rows do not add up; {_COPY}")
        # viewed as unsigned, negative numbers become the largest ones
        if links.indices.view(f"u{links.indices.itemsize}").max(initial=0) >= self.n:
            raise InputError(f"{self._file('indices')} is damaged: it has links from no vertex; {_COPY}")
        w = links.weights
        if w is not None and not (w.min(initial=1.0) > 0 and w.max(initial=1.0) < np.inf):
            raise InputError(f"{self._file('weights')} is damaged: some weights are not positive; {_COPY}")

    def map(self) -> Links:
        """Memory-map the links like :meth:`load` without reading them; only file sizes are checked."""
        indptr = _mapped(self._file("indptr"), np.int64, self.last - self.first + 1)
        indices = _mapped(self._file("indices"), index_type(self.n), self.n_edges)
        weights = _mapped(self._file("weights"), np.float64, self.n_edges) if self.weighted else None
        return Links(indptr, indices, weights)

    def in_links(self, arrays: Links, unit: float | None, threads: int | None = None) -> InLinks:
        """Prepare links from `map` or `load` for sums, with weights in a unit as in :meth:`Graph.in_links`."""
        of_source = unit is None and self.weighted
        out_weight = _mapped(self.folder / "out_weight.npy", np.float64, self.n) if of_source else unit
        return InLinks(*arrays, threads).divided(out_weight)

    def _file(self, part: str) -> Path:
        return self.folder / f"{self.name}.{part}.npy"


@dataclass(frozen=True, eq=False, repr=False)
class ShardedGraph(Vertices):
    """Directed graph in a folder, opened by :func:`open_shards`; its links stay on disk.

    Parameters
    ----------
    folder : Path
        Folder of the graph.
    out_weight : ndarray of float64, n
        Sum of the weights of a vertex's out-links; 0 for a dangling one. Memory-mapped.
    n_edges : int
        Number of links.
    weighted : bool
        Whether links have weights; without them every weight is 1.
    shards : tuple of Shard
        In-links of consecutive vertices, in order.
    names_file : str, optional
        File of the vertices' names; None if they are 0 to n − 1.
    engine : {"blocks", "dask"}
        Executor of sums over links: this process, one shard after the other, or Dask workers, which keep the shards in
        memory as long as the graph is in use.
    """

    folder: Path
    out_weight: np.ndarray
    n_edges: int
    weighted: bool
    shards: tuple[Shard, ...]
    names_file: str | None = None
    engine: Engine = "blocks"

    def __post_init__(self) -> None:
        check_choice("engine", self.engine, Engine)

    def __repr__(self) -> str:
        weighted = ", weighted" if self.weighted else ""
        return f"ShardedGraph({self.n} vertices, {self.n_edges} links in {len(self.shards)} shards{weighted})"

    @cached_property
    def names(self) -> np.ndarray | None:
        """Names of the vertices, read on first access; None if they are 0 to n − 1."""
        if self.names_file is None:
            return None
        if self.text_names is not None:
            return object_array(self.text_names)
        return _mapped(self.folder / self.names_file, np.int64, self.n)

    @cached_property
    def text_names(self) -> Any:
        """Text names as a polars Series, which takes a third of the memory of Python strings."""
        if self.names_file != "names.parquet":
            return None
        return _text_names(self.folder / self.names_file, self.n).collect().to_series()

    def labels(self, vertices: Any = None) -> np.ndarray:
        """Names of the given vertex numbers; of all vertices by default."""
        if vertices is None or self.text_names is None:
            return super().labels(vertices)
        return object_array(self.text_names.gather(np.asarray(vertices, dtype=np.int64)))

    def find(self, array: np.ndarray) -> np.ndarray:
        """Return the vertex numbers of names, −1 for unknown names."""
        if self.text_names is None:
            return super().find(array)
        import polars as pl

        names = [name if isinstance(name, str) else None for name in array.tolist()]
        known = self.text_names.alias("name").to_frame().with_row_index("number")
        asked = pl.DataFrame({"name": pl.Series(names, dtype=pl.String)})
        numbers = asked.join(known, on="name", how="left", maintain_order="left")["number"]
        return numbers.cast(pl.Int64).fill_null(-1).to_numpy()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling: the folder, but neither links nor names."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def _kept(self) -> dict[float | None, ShardLinks]:
        return {}

    def in_links(self, unit: float | None = 1.0) -> ShardLinks:
        """Return the links for sums over the in-links of each vertex, as in :meth:`Graph.in_links`."""
        unit = unit if self.weighted else 1.0
        if unit not in self._kept:
            self._kept[unit] = (DaskLinks if self.engine == "dask" else ShardLinks)(self.shards, unit)
        return self._kept[unit]

    def links_into(self, vertex: int) -> tuple[np.ndarray, np.ndarray]:
        """Sources and weights of the links into a vertex."""
        shard = next(shard for shard in self.shards if vertex < shard.last)
        indptr, indices, weights = shard.load()
        row = vertex - shard.first
        inside = slice(indptr[row], indptr[row + 1])
        sources = np.array(indices[inside])
        return sources, np.ones(len(sources)) if weights is None else np.array(weights[inside])

    def in_degrees(self) -> np.ndarray:
        """Number of links into each vertex."""
        return np.concatenate([np.diff(shard.map().indptr) for shard in self.shards])

    def largest_out_weights(self) -> np.ndarray:
        """Largest out-link weight of each vertex, 0 for dangling vertices."""
        if not self.weighted:
            return (self.out_weight > 0).astype(float)
        largest = np.zeros(self.n)
        for shard in self.shards:
            links = shard.load()
            np.maximum.at(largest, links.indices, links.weights)  # type: ignore[arg-type]
        return largest

    def reached(self, seeds: np.ndarray) -> np.ndarray:
        """Return a mask of the vertices reachable from the seeds (a mask), inclusive.

        The number of passes is the largest distance from the seeds.
        """
        # workers already hold shares; links on disk need no division of their weights
        links = self.in_links(None if self.engine == "dask" else 1.0)
        found, before = np.array(seeds, dtype=bool), -1
        while (count := int(np.count_nonzero(found))) > before:
            found, before = found | (links.largest(found.astype(float)) > 0), count
        return found

    def __getattr__(self, name: str) -> Any:
        if name in _IN_MEMORY:
            raise InputError(
                f"{self.folder} is a graph in shards, which lists links by their targets on disk; this takes a graph "
                f"in memory. Shards can be ranked by {RANKS_OF_SHARDS}, with distrust along the links only"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def save_shards(graph: Graph, folder: str | Path, *, links: int = LINKS) -> None:
    """Write a graph as a folder of shards, for ranks that read them in sequence.

    Parameters
    ----------
    graph : Graph
        A graph from :func:`as_graph`; its names must be text or whole numbers.
    folder : str or Path
        Output folder, written atomically; an existing folder is replaced only if it is empty or a sharded graph.
    links : int
        Approximate number of links per shard; all links of a vertex are in the same shard.

    Examples
    --------
    >>> import tempfile
    >>> graph = Graph.from_edges([0, 0, 1], [1, 2, 2], names=["a", "b", "c"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_shards(graph, f"{folder}/edges.shards", links=1)
    ...     sharded = open_shards(f"{folder}/edges.shards")
    ...     sharded, sharded.names.tolist(), sharded.shards[1].load().indices.tolist()
    (ShardedGraph(3 vertices, 3 links in 2 shards), ['a', 'b', 'c'], [0, 1])
    """
    with writing_shards(folder) as temporary:
        writer = ShardWriter(temporary, graph.n)
        for first, last in shard_rows(graph.indptr, links):
            start, end = graph.indptr[first], graph.indptr[last]
            weights = None if graph.weights is None else graph.weights[start:end]
            writer.add(Links(graph.indptr[first : last + 1] - start, graph.indices[start:end], weights))
        writer.finish(graph.names)


def shard_rows(indptr: np.ndarray, links: int) -> Iterator[tuple[int, int]]:
    """Divide rows into consecutive parts of at most ``links`` links, or of a single row.

    Examples
    --------
    >>> list(shard_rows(np.array([0, 1, 2, 9, 9, 10]), 3))
    [(0, 2), (2, 3), (3, 5)]
    """
    first, n = 0, len(indptr) - 1
    while first < n:
        last = int(np.searchsorted(indptr, indptr[first] + links, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last


def writing_shards(folder: str | Path) -> AbstractContextManager[Path]:
    """Yield a temporary folder for a `ShardWriter`, which becomes ``folder`` when the block succeeds."""
    return replacing(folder, is_shards)


def is_shards(folder: str | Path) -> bool:
    """Return whether a path is a folder with a graph in shards."""
    return (Path(folder) / "graph.json").is_file()


class ShardWriter:
    """Writer of the shards of a graph, in sequence, into an empty folder.

    Parameters
    ----------
    folder : Path
        Folder from `writing_shards`.
    n : int
        Number of vertices.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = ShardWriter(Path(folder), 2)
    ...     writer.add(Links(np.array([0, 0, 1]), np.array([0]), None))
    ...     writer.finish()
    ...     open_shards(folder).out_weight.tolist()
    [1.0, 0.0]
    """

    def __init__(self, folder: Path, n: int) -> None:
        self._folder, self._n = folder, n
        self._out_weight, self._lost = np.zeros((2, n))
        self._shards: list[dict[str, Any]] = []
        self._with_weights: set[str] = set()
        self._row = 0

    def add(self, links: Links) -> None:
        """Write the in-links of the next vertices; the sources of a row are ascending and unique."""
        name, rows = f"{len(self._shards):05d}", len(links.indptr) - 1
        links = links._replace(indices=links.indices.astype(index_type(self._n), copy=False))
        add_column_weights(links, self._out_weight, self._lost)
        self._save(f"{name}.indptr", links.indptr.astype(np.int64, copy=False))
        self._save(f"{name}.indices", links.indices)
        if links.weights is not None:
            self._save(f"{name}.weights", links.weights)
            self._with_weights.add(name)
        shard = {"name": name, "first": self._row, "last": self._row + rows, "n_edges": len(links.indices)}
        self._shards.append(shard)
        self._row += rows

    def finish(self, names: Any = None) -> None:
        """Write the data shared by all shards.

        ``names`` are text or whole numbers, or a polars LazyFrame with a text column; None if they are 0 to n − 1.
        """
        if self._row != self._n:
            raise ValueError(f"{self._row} of {self._n} vertices have been written")
        for shard in self._shards:
            name = shard["name"]
            # only after the last link is it known whether the graph has weights
            if self._with_weights and name not in self._with_weights:
                self._save(f"{name}.weights", np.ones(shard["n_edges"]))
            shard["bytes"] = sum(path.stat().st_size for path in self._folder.glob(f"{name}.*.npy"))
        self._save("out_weight", self._out_weight + self._lost)
        about = {
            "format": FORMAT,
            "version": VERSION,
            "n": self._n,
            "n_edges": sum(shard["n_edges"] for shard in self._shards),
            "weighted": bool(self._with_weights),
            "names": self._save_names(names),
            "shards": self._shards,
        }
        (self._folder / "graph.json").write_text(json.dumps(about, indent=1) + "\n")

    def _save(self, name: str, values: np.ndarray) -> None:
        with (self._folder / f"{name}.npy").open("wb") as file:
            write_array(file, values)

    def _save_names(self, names: Any) -> str | None:
        if names is None:
            return None
        if isinstance(names, np.ndarray) and names.dtype.kind in "iu":
            self._save("names", names.astype(np.int64, copy=False))
            return "names.npy"
        import polars as pl

        if not isinstance(names, pl.LazyFrame):
            odd = next((name for name in names if not isinstance(name, str)), None)
            if odd is not None:
                raise InputError(f"the name {odd!r} is neither text nor a whole number: rename the vertices")
            names = pl.LazyFrame({"name": pl.Series(names, dtype=pl.String)})
        names.sink_parquet(self._folder / "names.parquet")
        return "names.parquet"


def write_array(file: BinaryIO, values: np.ndarray) -> None:
    """Write an array like ``np.save``, but raise a clear error for a full disk."""
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(values))
    file.write(np.ascontiguousarray(values).data)


def open_shards(folder: str | Path, engine: Engine = "blocks") -> ShardedGraph:
    """Open a graph written by `save_shards` or ``apexrank graph pack``, without reading its links.

    Parameters
    ----------
    folder : str or Path
        Folder of the graph.
    engine : {"blocks", "dask"}
        Executor of sums over links: this process, one shard after the other, or the workers of the current Dask client,
        which keep the shards in memory and must have access to the folder under the same path.

    Raises
    ------
    InputError
        When the folder is not a sharded graph, has a later version, or one of its files is missing or does not have the
        size given in ``graph.json``.
    """
    folder = Path(folder)
    path = folder / "graph.json"
    with reading(path):
        if folder.is_dir() and not path.exists():
            raise InputError(
                f"{folder} is not a graph in shards: it has no graph.json; write one by graph pack"
            )
        content = path.read_bytes()
    try:
        about = json.loads(content)
    except (ValueError, RecursionError):
        raise InputError(f"{path} is damaged: it is not JSON; {_COPY}") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(f"{path} is not of a graph in shards: its format is not {FORMAT!r}")
    if about.get("version") != VERSION:
        raise InputError(
            f"{folder} is of version {about.get('version')!r} of the format, this apexrank reads {VERSION}: "
            "update apexrank, or pack the edges again"
        )
    _check_keys(path, about)
    n, weighted = about["n"], about["weighted"]
    given = [{key: each[key] for key in ("name", "first", "last", "n_edges")} for each in about["shards"]]
    shards = tuple(Shard(folder=folder, n=n, weighted=weighted, **each) for each in given)
    for shard in shards:
        shard.map()
    out_weight = _mapped(folder / "out_weight.npy", np.float64, n)
    if about["names"] == "names.npy":
        _mapped(folder / "names.npy", np.int64, n)
    elif about["names"] is not None:
        _text_names(folder / "names.parquet", n)
    return ShardedGraph(folder, out_weight, about["n_edges"], weighted, shards, about["names"], engine)


def _check_keys(path: Path, about: dict[str, Any]) -> None:
    """Raise InputError unless graph.json has all keys and consistent counts."""
    for entry, keys in [(about, _KEYS), *((shard, _SHARD_KEYS) for shard in about.get("shards") or [])]:
        for key, kind in keys.items():
            value = entry.get(key) if isinstance(entry, dict) else None
            is_number = not isinstance(value, bool) and isinstance(value, int) and value >= 0
            if not (is_number if kind is int else isinstance(value, kind)):
                raise InputError(f"{path} is damaged: {key!r} is missing or wrong; {_COPY}")
    shards, row = about["shards"], 0
    for shard in shards:
        if shard["first"] != row or shard["last"] < row or not re.fullmatch(r"\d{5,}", shard["name"]):
            raise InputError(f"{path} is damaged: its shards do not follow each other; {_COPY}")
        row = shard["last"]
    total = sum(shard["n_edges"] for shard in shards)
    if row != about["n"] or total != about["n_edges"] or about["names"] not in _NAME_FILES:
        raise InputError(f"{path} is damaged: its counts do not add up; {_COPY}")


def _text_names(path: Path, n: int) -> Any:
    """Scan a Parquet file of n names."""
    import polars as pl

    with reading(path):
        path.stat()
    try:
        scanned = pl.scan_parquet(path, glob=False)
        kinds = list(scanned.collect_schema().values())
        rows = int(scanned.select(pl.len()).collect().item())
    except pl.exceptions.PolarsError:
        raise InputError(f"{path} is damaged or truncated; {_COPY}") from None
    if kinds != [pl.String] or rows != n:
        raise InputError(f"{path} does not have one column of {n} names; {_COPY}")
    return scanned


def _mapped(path: Path, dtype: Any, size: int) -> np.ndarray:
    """Memory-map an array of a given type and size; raise InputError for other content."""
    with reading(path):
        found: Any = None
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError):  # an invalid header, or truncated data
            raise InputError(f"{path} is damaged or truncated; {_COPY}") from None
        if not isinstance(found, np.memmap) or found.shape != (size,) or found.dtype != dtype:
            raise InputError(f"{path} does not hold {size} numbers of type {np.dtype(dtype)}; {_COPY}")
        if path.stat().st_size != found.offset + found.nbytes:
            raise InputError(f"{path} is damaged: it is longer than it should be; {_COPY}")
    return found.view(np.ndarray)


class ShardLinks(LinkSums):
    """In-links of a sharded graph; one shard is in memory while the next one is prefetched.

    Every shard uses the kernels of in-memory graphs on whole rows, so that results are bit-identical.

    Parameters
    ----------
    shards : sequence of Shard
        All shards of a graph.
    unit : float, optional
        Divisor of the weights; None divides by the out-weight of the source.
    """

    def __init__(self, shards: Sequence[Shard], unit: float | None) -> None:
        self.shards, self.unit = shards, unit
        self.n, self.weighted = shards[-1].n, shards[-1].weighted
        self._checked: set[str] = set()

    @cached_property
    def _maps(self) -> list[Links]:
        """All links, mapped once, so that a folder replaced in the meantime cannot be mixed with this one."""
        return [shard.map() for shard in self.shards]

    @cached_property
    def most_links(self) -> int:  # type: ignore[override]
        return max(int(np.diff(links.indptr).max(initial=0)) for links in self._maps)

    @cached_property
    def weight_range(self) -> tuple[float, float]:  # type: ignore[override]
        if not self.weighted:
            return 1.0, 1.0
        lows, highs = zip(*self._map(attrgetter("weight_range")), strict=True)
        return min(lows), max(highs)

    def mapped_sums(self, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return np.concatenate([*self._map(InLinks.mapped_sums, x, function)])

    def _each(self, name: str, x: Any, power: float = 1.0, *args: Any, own: Any = None) -> Any:
        return np.concatenate([*self._map(InLinks._each, name, x, power, *args, own=own)])

    def _map(self, function: Callable[..., Any], *args: Any, own: Any = None) -> Iterable[Any]:
        """Apply ``function(links, *args)`` to every shard, in order, with its rows of ``own`` if given."""
        parts = zip(self.shards, self._maps, self._rows(own), strict=True)
        for number, (shard, arrays, rows) in enumerate(parts, start=1):
            for following in self._maps[number : number + 1]:
                _advise(following, "MADV_WILLNEED")
            if shard.name not in self._checked:
                shard.check(arrays)
                self._checked.add(shard.name)
            with shard.in_links(arrays, self.unit) as links:
                yield _call(links, rows, function, *args)
            _advise(arrays, "MADV_DONTNEED")

    def _rows(self, own: Any) -> list[Any]:
        return [None if own is None else own[shard.first : shard.last] for shard in self.shards]


class DaskLinks(ShardLinks):
    """In-links of a sharded graph held in memory by Dask workers.

    A pass sends the vector to all workers and gathers the rows of every shard. Shards lost with a worker are read
    again, from a folder that all workers must be able to access.
    """

    def __init__(self, shards: Sequence[Shard], unit: float | None) -> None:
        super().__init__(shards, unit)
        from apexrank.problem.dask import Caught, DaskBlocks, dask_module

        read = dask_module().delayed(Caught(_read), pure=False, traverse=False)
        self._blocks = DaskBlocks([read(shard, unit) for shard in shards])

    def _map(self, function: Callable[..., Any], *args: Any, own: Any = None) -> Iterable[Any]:
        client, sent = self._blocks.client, [*args]
        if client is not None:
            from dask import config

            # A vector is the result of a task, which runs again if its workers die; `Client.scatter` would wait for
            # them.
            with config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
                for k, each in enumerate(args):
                    if isinstance(each, np.ndarray):
                        sent[k] = client.submit(_itself, each, pure=False)
        return self._blocks.map_with(_call, self._rows(own), function, *sent)


def _itself(x: np.ndarray) -> np.ndarray:
    return x


def _call(links: InLinks, own: np.ndarray | None, function: Callable[..., Any], *args: Any) -> Any:
    return function(links, *args) if own is None else function(links, *args, own=own)


def _read(shard: Shard, unit: float | None) -> InLinks:
    """Load the links of a shard in a worker."""
    indptr, indices, weights = shard.load()
    kept = Links(np.array(indptr), np.array(indices), None if weights is None else np.array(weights))
    return shard.in_links(kept, unit, threads=1)


def _advise(arrays: Links, advice: str) -> None:
    """Advise the system on the use of memory maps, if supported."""
    for array in arrays:
        base = array
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, mmap.mmap) and hasattr(mmap, advice):
            base.madvise(getattr(mmap, advice))
