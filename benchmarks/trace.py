"""How much code a fit from a CSV file runs through: ``python -m benchmarks.trace``.

Counts the distinct modules and functions of apexrank that ``apexrank fit train.csv --target fraud`` calls, and how
often columns are read.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import apexrank

ROOT = str(Path(apexrank.__file__).parent)


def trace(call: Any) -> Counter[CodeType]:
    """Calls of each apexrank function while ``call()`` runs, module bodies and comprehensions left out."""
    calls: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and not code.co_name.startswith("<"):
            calls[code] += 1

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return calls


def fit_from_csv(folder: str) -> Counter[CodeType]:
    """Trace ``apexrank fit`` on 2,000 rows, loaded modules and compiled kernels taken as given."""
    import polars as pl

    from apexrank.cli.app import app
    from apexrank.datasets import make_push_example

    example = make_push_example(2000)
    columns = dict(zip(example.feature_names, example.data.T, strict=True))
    path, model = f"{folder}/train.csv", f"{folder}/model.apex"
    pl.DataFrame({**columns, "fraud": example.target}).write_csv(path)

    def fit() -> None:
        try:
            app(["fit", path, "--target", "fraud", "-o", model])
        except SystemExit as end:
            if end.code:
                raise

    fit()  # once before, so that imports and compilation are not counted
    return trace(fit)


def modules_of(calls: Counter[CodeType]) -> Counter[str]:
    """Functions of each module that was called."""
    return Counter(code.co_filename.removeprefix(f"{ROOT}/") for code in calls)


def main() -> None:
    """Print the counts, and the functions of each module."""
    with tempfile.TemporaryDirectory() as folder:
        calls = fit_from_csv(folder)
    modules = modules_of(calls)
    for module, functions in sorted(modules.items()):
        names = sorted(code.co_qualname for code in calls if code.co_filename == f"{ROOT}/{module}")
        print(f"{module:40} {functions:4}  {', '.join(names)}")
    readers = ("Table.column", "numbers", "texts")
    reads = ", ".join(f"{code.co_qualname} {n}" for code, n in calls.items() if code.co_qualname in readers)
    print(
        f"{len(modules)} modules, {len(calls)} functions, {sum(calls.values())} calls; columns read by {reads}"
    )


if __name__ == "__main__":
    main()
