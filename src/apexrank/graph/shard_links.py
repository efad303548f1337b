"""Sums over the in-links of graphs larger than memory: shard after shard from disk, or on the workers of Dask.

Every shard runs the kernels of a graph in memory on whole rows, so that results are the same to the last bit.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from apexrank.kernels.csr import InLinks, LinkSums
from apexrank.kernels.edges import Links

if TYPE_CHECKING:
    from apexrank.graph.shards import Shard


class ShardLinks(LinkSums):
    """The in-links of a graph in shards, one shard in memory while the next one is read ahead.

    Parameters
    ----------
    shards : sequence of Shard
        All shards of a graph.
    unit : float, optional
        What weights are divided by; None makes them shares of the out-weight of their source.
    """

    def __init__(self, shards: Sequence[Shard], unit: float | None) -> None:
        self.shards, self.unit = shards, unit
        self.n, self.weighted = shards[-1].n, shards[-1].weighted
        self._checked: set[str] = set()

    @cached_property
    def _maps(self) -> list[Links]:
        """All links, mapped once: a folder that is replaced meanwhile cannot be mixed with this one."""
        return [shard.map() for shard in self.shards]

    @cached_property
    def most_links(self) -> int:  # type: ignore[override]
        return max(int(np.diff(links.indptr).max(initial=0)) for links in self._maps)

    @cached_property
    def weight_range(self) -> tuple[float, float]:  # type: ignore[override]
        if not self.weighted:
            return 1.0, 1.0
        lows, highs = zip(*self._map(_weight_range), strict=True)
        return min(lows), max(highs)

    def touched(self, found: np.ndarray) -> np.ndarray:
        """Mask of the rows with a link from a mask of vertices."""
        return self._joined(np.empty(self.n, dtype=bool), _touched, found)

    def mapped_sums(self, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return self._joined(np.empty(self.n), _mapped_sums, x, function)

    def _each(
        self, name: str, x: np.ndarray, power: float = 1.0, *args: Any, own: np.ndarray | None = None
    ) -> np.ndarray:
        return self._joined(np.empty((self.n, *x.shape[1:])), _rows_of, x, own, name, power, *args)

    def _joined(self, out: np.ndarray, function: Callable[..., np.ndarray], *args: Any) -> np.ndarray:
        for shard, rows in zip(self.shards, self._map(function, *args), strict=True):
            out[shard.first : shard.last] = rows
        return out

    def _map(self, function: Callable[..., Any], *args: Any) -> Iterable[Any]:
        """``function(links, shard, *args)`` of every shard, in their order."""
        return (function(links, shard, *args) for shard, links in self._loaded())

    def _loaded(self) -> Iterator[tuple[Shard, InLinks]]:
        for number, (shard, arrays) in enumerate(zip(self.shards, self._maps, strict=True), start=1):
            for following in self._maps[number : number + 1]:
                _advise(following, "MADV_WILLNEED")
            if shard.name not in self._checked:
                shard.check(arrays)
                self._checked.add(shard.name)
            with InLinks(arrays.indptr, arrays.indices, arrays.weights) as links:
                yield shard, _in_unit(links, shard, self.unit)
            _advise(arrays, "MADV_DONTNEED")


class DaskLinks(ShardLinks):
    """The in-links of a graph whose shards the workers of Dask keep in memory.

    A pass sends the vector to all workers and gathers the rows of every shard. Shards that die with their worker are
    read again, from a folder that all workers must see.
    """

    def __init__(self, shards: Sequence[Shard], unit: float | None) -> None:
        super().__init__(shards, unit)
        from apexrank.problem.dask import Caught, DaskBlocks, dask_module

        read = dask_module().delayed(Caught(_read), pure=False, traverse=False)
        self._blocks = DaskBlocks([read(shard, unit) for shard in shards])

    def _map(self, function: Callable[..., Any], *args: Any) -> Iterable[Any]:
        client = self._blocks.client
        if client is None:
            return self._blocks.map_with(function, self.shards, *args)
        from dask import config

        # A vector is the result of a task, which runs again if its workers die; `Client.scatter` would wait for them.
        with config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
            sent = [
                client.submit(_itself, each, pure=False) if isinstance(each, np.ndarray) else each
                for each in args
            ]
        return self._blocks.map_with(function, self.shards, *sent)


def _itself(x: np.ndarray) -> np.ndarray:
    return x


def _in_unit(links: InLinks, shard: Shard, unit: float | None) -> InLinks:
    if unit == 1 or not links.weighted:
        return links
    return links.divided(shard.out_weight() if unit is None else unit)


def _read(shard: Shard, unit: float | None) -> InLinks:
    """The links of a shard as a worker keeps them."""
    indptr, indices, weights = shard.load()
    kept = None if weights is None else np.array(weights)
    return _in_unit(InLinks(np.array(indptr), np.array(indices), kept, threads=1), shard, unit)


def _advise(arrays: Links, advice: str) -> None:
    """Tell the system what becomes of memory maps, where it can be told."""
    for array in arrays:
        base = array
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, mmap.mmap) and hasattr(mmap, advice):
            base.madvise(getattr(mmap, advice))


def _rows_of(
    links: InLinks, shard: Shard, x: np.ndarray, own: np.ndarray | None, name: str, power: float, *args: Any
) -> np.ndarray:
    return links._each(name, x, power, *args, own=None if own is None else own[shard.first : shard.last])


def _mapped_sums(links: InLinks, _: Shard, x: np.ndarray, function: Any) -> np.ndarray:
    return links.mapped_sums(x, function)


def _touched(links: InLinks, _: Shard, found: np.ndarray) -> np.ndarray:
    return links.touched(found)


def _weight_range(links: InLinks, _: Shard) -> tuple[float, float]:
    return links.weight_range
