"""Cells of a study (one ranker on one part of one data set), run in parallel and stored as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config

from apexrank.errors import InputError
from apexrank.progress import steps

Key = tuple[str, int, str]
Cell = dict[str, Any]


def run_cells(
    run: Callable[..., Cell],
    wanted: Sequence[Key],
    found: dict[Key, Cell],
    names: Sequence[str],
    data: str,
    path: str,
    n_jobs: int | None,
) -> tuple[dict[Key, Cell], list[str]]:
    """Run the cells missing from ``found``, append them to the file at ``path``, and describe each failure.

    ``run`` takes the key of a cell and ``data``; ``names`` are the entries of a cell that form its key.
    """
    todo, failed = [key for key in wanted if key not in found], []
    with ExitStack() as stack:
        stack.enter_context(parallel_config(backend="loky", inner_max_num_threads=1))
        file = stack.enter_context(open(path, "a", encoding="utf-8")) if path else None
        running = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            delayed(run)(*key, data) for key in todo
        )
        for _, cell in zip(steps(todo), running, strict=True):
            key = tuple(cell[name] for name in names)
            if "error" in cell:
                failed.append(f"{' '.join(map(str, key))} failed: {cell['error']}")
                continue
            found[key] = cell
            if file is not None:
                file.write(json.dumps(cell) + "\n")
                file.flush()
    return found, failed


def kept_cells(path: str, names: Sequence[str], is_whole: Callable[[Cell], bool]) -> dict[Key, Cell]:
    """Read the finished cells from a file of JSON lines, if it exists; other lines raise InputError."""
    found: dict[Key, Cell] = {}
    lines = Path(path).read_text(encoding="utf-8").splitlines() if path and Path(path).exists() else []
    for number, line in enumerate(lines, start=1):
        try:
            cell = json.loads(line)
            if not is_whole(cell):
                raise TypeError
            found[tuple(cell[name] for name in names)] = cell
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path} line {number} is not a cell of this study: remove the line") from None
    return found
