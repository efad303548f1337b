"""Monotone retargeting on one and two Dask workers: 10 million documents in 100,000 queries.

``python -m benchmarks dask_retarget`` needs 4 GB of memory, and a machine whose cores have nothing else to do;
``python -m benchmarks.dask_retarget 10000`` takes so many queries.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial

import numpy as np

from apexrank.distributed import DaskBlocks
from apexrank.problem.blocks import ArrayBlocks, Block
from apexrank.rankers import MonotoneRetargeting
from benchmarks.blocks import KillOne, worker_memory
from benchmarks.timing import report

QUERIES, DOCUMENTS, COLUMNS, BLOCKS = 100_000, 100, 10, 16
MODEL = {"alpha": 1e-3, "tol": 1e-9}


def queries_of(k: int, queries: int, *, cut: bool = False) -> Block:
    """Whole queries of block k, the same wherever they are made; ``cut`` leaves half of the first to block k − 1."""
    rng = np.random.default_rng(k)
    X = rng.normal(size=(queries * DOCUMENTS, COLUMNS))
    X[:, 1:] += 0.8 * X[:, :1]  # columns that resemble each other take more passes
    y = np.digitize(X[:, :3].sum(axis=1) + 3 * rng.normal(size=len(X)), [1.0, 4.0, 7.0]).astype(float)
    groups = k * queries + (np.arange(len(X)) + cut * DOCUMENTS // 2) // DOCUMENTS
    return Block(X, y, None, groups)


def processor_time() -> float:
    return time.process_time()


def on_dask(queries: int) -> list[dict]:
    import dask
    from distributed import Client, LocalCluster, wait

    own = queries // BLOCKS
    whole = [queries_of(k, own) for k in range(BLOCKS)]
    X, y, groups = (np.concatenate([block[j] for block in whole]) for j in (0, 1, 3))
    del whole
    start = time.perf_counter()
    memory = MonotoneRetargeting(**MODEL, solver="lbfgs").fit(ArrayBlocks(X, y, None, groups), None)
    found = [_row("blocks in memory", memory, time.perf_counter() - start, memory)]
    del X, y, groups
    base = 0.0
    for workers, kill, cut in ((1, False, False), (2, False, False), (2, True, False), (2, False, True)):
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0
            ) as cluster,
            Client(cluster) as client,
        ):
            small = [dask.delayed(queries_of)(k, 50) for k in range(4)]
            MonotoneRetargeting(**MODEL).fit(DaskBlocks(small), None)  # every worker imports and compiles
            before = max(client.run(worker_memory).values())
            make = dask.delayed(partial(queries_of, cut=cut))
            blocks = DaskBlocks([make(k, own) for k in range(BLOCKS)])
            wait(blocks.parts)
            if kill:
                KillOne.victims.append(next(iter(client.run(os.getpid).values())))
            start, own_start, starts = time.perf_counter(), processor_time(), client.run(processor_time)
            ranker = MonotoneRetargeting(**MODEL, solver=KillOne(tol=MODEL["tol"])).fit(blocks, None)
            seconds, own_seconds = time.perf_counter() - start, processor_time() - own_start
            held = max(client.run(worker_memory).values()) - before
            spent = max(now - starts.get(worker, 0.0) for worker, now in client.run(processor_time).items())
        base = base or seconds
        what = f"{workers} worker{'s' * (workers > 1)}{', one killed' * kill}{', queries cut: scores gathered' * cut}"
        row = _row(what, ranker, seconds, None if cut else memory)
        row |= {"of one worker": seconds / base, "MB of a worker": held / 1e6}
        found.append(row | {"processor s of a worker": spent, "of the caller": own_seconds})
    return [{"documents": BLOCKS * own * DOCUMENTS, "queries": BLOCKS * own, **row} for row in found]


def _row(what: str, ranker: MonotoneRetargeting, seconds: float, memory: MonotoneRetargeting | None) -> dict:
    empty = dict.fromkeys(("of one worker", "MB of a worker", "processor s of a worker", "of the caller"), "")
    far = "" if memory is None else np.abs(ranker.coef_ - memory.coef_).max() / np.abs(memory.coef_).max()
    row = {"where": what, "iterations": ranker.n_iter_, "seconds": seconds, **empty}
    return row | {"largest relative difference": far, "duality gap": ranker.dual_gap_}


def main() -> None:
    queries = int(sys.argv[1]) if len(sys.argv) > 1 else QUERIES
    report("dask_retarget", "Monotone retargeting on Dask workers of one thread", on_dask(queries))


if __name__ == "__main__":
    main()
