"""Reading a LETOR file of MSLR's shape (136 features): time beside scikit-learn's reader, peak memory beside the size.

``APEXRANK_LETOR_MB=100 python -m benchmarks letor_reading`` takes a smaller file than 1 GB.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from apexrank.datasets import read_letor
from benchmarks.timing import report, status

MEGABYTES = int(os.environ.get("APEXRANK_LETOR_MB", "1000"))
FEATURES, BLOCK_ROWS = 136, 2000
MOST_TIMES, MOST_MEMORY = 2.0, 1.3


def block(seed: int) -> bytes:
    """Lines with whole numbers, numbers of six decimals and zeros, as MSLR has them."""
    rng = np.random.default_rng(seed)
    values = rng.random((BLOCK_ROWS, FEATURES)) * 30
    kinds = rng.integers(0, 3, size=FEATURES)
    texts = [lambda v: f"{v:.0f}", lambda v: f"{v:.6f}", lambda v: f"{-v:.6f}" if v > 20 else "0"]
    lines = (
        f"{i % 5} qid:{seed}{i // 100} "
        + " ".join(f"{j + 1}:{texts[kinds[j]](v)}" for j, v in enumerate(row.tolist()))
        for i, row in enumerate(values)
    )
    return "".join(f"{line} \n" for line in lines).encode()


def write(path: Path) -> None:
    blocks = [block(seed) for seed in range(4)]
    with path.open("wb") as file:
        while file.tell() < MEGABYTES << 20:
            for lines in blocks:
                file.write(lines)


def _measure(reader: str, path: str, small: str, pipe: Any) -> None:
    """In a process of its own: the peak counts from the start of a process."""
    read = {
        "apexrank": lambda p: read_letor(p).data,
        "scikit-learn": lambda p: load_svmlight_file(p, query_id=True)[0],
    }
    read[reader](small)  # compiles the parser
    before, start = status("VmRSS"), time.perf_counter()
    data = read[reader](path)
    seconds, peak = time.perf_counter() - start, status("VmHWM") - before
    size = data.nbytes if isinstance(data, np.ndarray) else data.data.nbytes + data.indices.nbytes
    pipe.send((seconds, peak / size))


def measured(reader: str, path: Path, small: Path) -> tuple[float, float]:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(
        target=_measure, args=(reader, str(path), str(small), theirs)
    )
    process.start()
    found = ours.recv()
    process.join()
    return found


def main() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "train.txt", Path(folder) / "small.txt"
        write(path)
        small.write_bytes(block(0))
        what = f"{path.stat().st_size >> 20} MB, {FEATURES} features"
        found = {reader: measured(reader, path, small) for reader in ("apexrank", "scikit-learn")}
    seconds, peaks = zip(*found.values(), strict=True)
    rows = [
        {
            "reading": f"{what}: seconds, beside load_svmlight_file",
            "apexrank": seconds[0],
            "scikit-learn": seconds[1],
            "ratio": seconds[0] / seconds[1],
            "limit": MOST_TIMES,
        },
        {
            "reading": f"{what}: peak memory, times the matrix that is returned",
            "apexrank": peaks[0],
            "scikit-learn": peaks[1],
            "ratio": peaks[0],
            "limit": MOST_MEMORY,
        },
    ]
    return report("letor_reading", "LETOR files", rows)


if __name__ == "__main__":
    main()
