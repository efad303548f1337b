"""Measures beside one ``np.argsort``; all measures of a LETOR set's queries; what a new process waits for."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np

from apexrank import metrics
from apexrank.io.judge import MANY_LISTS, ONE_LIST
from apexrank_papers.data.sources import data_path
from benchmarks.timing import report, seconds

_FIRST_CALLS = {
    "first evaluate": (
        "from apexrank import metrics; "
        "metrics.evaluate([1, 0, 1, 0], [3, 2, 1, 4], ['auc', 'ndcg'], groups=['a', 'a', 'b', 'b'])"
    ),
    "first kendall_distance": (
        "from apexrank import metrics; metrics.kendall_distance(scores=([3, 2, 1], [1, 3, 2]))"
    ),
}


def one_list() -> list[dict]:
    """AUC, R_4 and precision at 100 of ten million scores."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=10_000_000)
    y = (rng.random(len(scores)) < 0.1).astype(int)
    base = seconds(lambda: np.argsort(scores), repeats=3)
    rows = []
    for names in (["auc", "p_norm_risk_4", "precision_at_100"], list(ONE_LIST)):
        ours = seconds(lambda n=names: metrics.evaluate(y, scores, n), repeats=3)
        shown = ", ".join(names) if len(names) < 4 else f"{len(names)} measures"
        rows.append(_row(f"1e7 scores: {shown}", ours, base, "np.argsort", 1.5 if len(names) < 4 else None))
    return rows


def many_lists() -> list[dict]:
    """All measures of the 784 queries of MQ2008, or of as many synthetic ones."""
    y, scores, groups, what = _queries()
    names = [*MANY_LISTS, *ONE_LIST[:-3]]
    ours = seconds(lambda: metrics.evaluate(y, scores, names, groups=groups))
    return [_row(f"{what}: {len(names)} measures", ours, 0.05, "50 ms", 1.0)]


def _queries() -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    from apexrank.datasets import make_letor_example, read_letor

    folder = data_path("letor", "MQ2008")
    if folder is not None:
        parts = [read_letor(folder / f"S{k}.txt.gz") for k in range(1, 6)]
        y = np.concatenate([part.target for part in parts])
        groups = np.concatenate([part.groups for part in parts])
        return y, np.concatenate([part.data[:, 24] for part in parts]), groups, "MQ2008, 784 queries"
    made = make_letor_example(n_queries=784)
    return made.target, made.data[:, 0], made.groups, "784 synthetic queries"


def new_process() -> list[dict]:
    """Wall time of a new process, less that of an empty one."""
    empty = _process("pass")
    sklearn = _process("import sklearn.base") - empty
    rows = [
        _row("import apexrank", _process("import apexrank") - empty, sklearn, "import sklearn.base", 1.3),
        _row(
            "apexrank --help",
            _process("from apexrank.cli.app import app; app(['--help'])") - empty,
            sklearn,
            "import sklearn.base",
            0.65,
        ),
    ]
    loaded = _process("from apexrank.metrics import evaluate; import numba") - empty
    for name, code in _FIRST_CALLS.items():
        wait = max(0.0, _process(code) - empty - loaded)
        rows.append(_row(f"{name}, beyond importing", wait, 2.0, "2 s", 1.0))
        wait = max(0.0, _process(code, cached=False) - empty - loaded)
        rows.append(_row(f"{name}, compiled anew", wait, 2.0, "2 s", 1.0))
    return rows


def _process(code: str, *, cached: bool = True) -> float:
    """Seconds of a new process; not ``cached`` means that no kernel was ever compiled before."""

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ if cached else {**os.environ, "NUMBA_CACHE_DIR": folder}
            command = [sys.executable, "-c", code]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    return seconds(run, repeats=3)


def _row(what: str, ours: float, base: float, of: str, limit: float | None) -> dict:
    return {
        "what": what,
        "ours (s)": ours,
        "beside": of,
        "that (s)": base,
        "ratio": ours / base,
        "limit": "" if limit is None else f"{limit:g}",
    }


def main() -> None:
    rows = [*one_list(), *many_lists(), *new_process()]
    report("measures", "Measures: one sort for all, many queries at once, no wait at the start", rows)


if __name__ == "__main__":
    main()
