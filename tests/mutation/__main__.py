"""Command line: ``python -m tests.mutation --modules kernels/pav losses --sample 150 --output scores.json``."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

# before NumPy and numba are imported: forks have no use for their threads
os.environ |= {"NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from tests.mutation import mutants, report
from tests.mutation.processes import Task, run_all, warm_up
from tests.mutation.recording import choose, files_of_tests, record
from tests.mutation.session import try_mutant

ROOT = Path(__file__).resolve().parents[2]


def arguments() -> argparse.Namespace:
    """Parse the arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=mutants.__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--modules", nargs="+", default=[], help="modules or folders, as kernels/pav; default: all"
    )
    parser.add_argument("--tests", nargs="+", default=[], help="parts of names of test files; default: all")
    parser.add_argument("--sample", type=int, help="try so many of the mutants, drawn uniformly")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--again", type=Path, help="only the survivors in this file that --output wrote")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=float, default=15.0, help="seconds of tests for a mutant")
    parser.add_argument(
        "--patience", type=float, default=3.0, help="seconds for a test besides thrice its own"
    )
    parser.add_argument("--output", type=Path, help="write scores and outcomes as JSON")
    parser.add_argument("--survivors", type=Path, help="write the list of survivors as Markdown")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to measure")
    parser.add_argument(
        "--cache", type=Path, help="folder for what tests run which lines; default: .mutation"
    )
    return parser.parse_args()


def main() -> None:
    """Record, sample, run and report."""
    options, start = arguments(), time.monotonic()
    root = options.root.resolve()
    modules = mutants.chosen_modules(root, options.modules)
    found = {module: mutants.module_mutants(root, module) for module in modules}
    files = files_of_tests(root, options.tests)
    warm_up(root / name for name in files_of_tests(root, []))
    cache = options.cache or root / ".mutation"
    tests = record(root, cache / "tests.json", options.jobs, files)
    drawn = draw([mutant for some in found.values() for mutant in some], options)
    check_unchanged(root, tests, sorted({mutant.module for mutant in drawn}), options)
    results: dict[mutants.Mutant, str] = {}
    killers: dict[mutants.Mutant, str] = {}
    try:
        for mutant, outcome, by in outcomes(root, drawn, tests, options):
            results[mutant], killers[mutant] = outcome, by
            print(
                f"{len(results)}/{len(drawn)} {time.monotonic() - start:.0f} s {outcome}: {mutant} {by}",
                file=sys.stderr,
            )
    finally:
        rows = report.scores(results, {module: len(some) for module, some in found.items()})
        print(report.table(rows))
        if options.survivors:
            options.survivors.write_text(report.survivors(root, results))
        if options.output:
            tried = [asdict(m) | {"outcome": results[m], "by": killers[m]} for m in drawn if m in results]
            facts = {
                "seed": options.seed,
                "sample": options.sample,
                "seconds": round(time.monotonic() - start),
            }
            facts |= {"versions": report.versions(), "scores": rows, "mutants": tried}
            options.output.write_text(json.dumps(facts, indent=1))


def draw(found: list[mutants.Mutant], options: argparse.Namespace) -> list[mutants.Mutant]:
    """All mutants, the earlier survivors among them, or a sample."""
    if options.again:
        ended = json.loads(options.again.read_text())["mutants"]
        alive = {tuple(m.values())[:5] for m in ended if m["outcome"] in ("survived", "not covered")}
        found = [m for m in found if tuple(asdict(m).values()) in alive]
    if options.sample is None or options.sample >= len(found):
        return found
    return random.Random(options.seed).sample(found, options.sample)


def task_of(
    key, root: Path, mutant: mutants.Mutant | None, seconds: dict[str, float], patience: float
) -> Task:
    """Limit of a test and of all together: three times the time without a mutant, plus some seconds."""
    limits = {test: 3 * normal + patience for test, normal in seconds.items()}
    return Task(key, partial(try_mutant, root, mutant, limits), 3 * sum(seconds.values()) + 3 * patience)


def check_unchanged(root: Path, tests: dict, modules: list[str], options: argparse.Namespace) -> None:
    """Stop if a test fails without any mutant: it would kill all of them."""
    chosen = {module: choose(tests, module, [range(1, 10**6)], options.budget / 4) for module in modules}
    tasks = [task_of(module, root, None, some, options.patience) for module, some in chosen.items() if some]
    for module, outcome, result in run_all(tasks, options.jobs):
        if outcome != "done" or result[0] != "survived":
            raise SystemExit(f"tests of {module} fail without a mutant: {outcome} {result}")


def outcomes(root: Path, drawn: list, tests: dict, options: argparse.Namespace) -> Iterator[tuple]:
    """Each mutant with its outcome and the test that killed it."""
    texts = {m.module: mutants.source_path(root, m.module).read_text() for m in drawn}
    uncovered = []

    def tasks() -> Iterator[Task]:
        for mutant in drawn:
            lines = mutants.lines_of(texts[mutant.module], mutant)
            chosen = choose(tests, mutant.module, lines, options.budget)
            if chosen:
                yield task_of(mutant, root, mutant, chosen, options.patience)
            else:
                uncovered.append(mutant)

    for mutant, outcome, result in run_all(tasks(), options.jobs):
        yield mutant, *(result if outcome == "done" else (outcome, str(result).strip()[-200:]))
    for mutant in uncovered:
        yield mutant, "not covered", ""


if __name__ == "__main__":
    main()
