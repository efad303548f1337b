"""Fuzz every reader: ``python -m tests.fuzz --inputs 200000``. Faults are saved; ``--repeat FILE`` repeats one."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

SAVED = Path(".fuzz")


def main() -> int:
    if sys.argv[1:2] == ["--atheris"]:
        return _atheris(sys.argv[2])
    from tests.fuzz.generate import FILES, FORMATS

    targets = [*FORMATS, *FILES]
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000, help="inputs of all targets together")
    parser.add_argument("--targets", nargs="+", default=targets, choices=targets, metavar="TARGET")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--output", type=Path, help="JSON file of the counts to write")
    parser.add_argument("--repeat", type=Path, metavar="FILE", help=f"read one input saved in {SAVED}/ again")
    parser.add_argument(
        "--atheris", choices=targets, metavar="TARGET", help="guided by coverage, until stopped"
    )
    parser.add_argument(
        "--bombs", action="store_true", help="files that would fill the memory, one after the other"
    )
    parser.add_argument("--work", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return _work(*given.work)
    if given.bombs:
        from tests.fuzz.bombs import explode

        print(json.dumps(explode()))
        return 0
    if given.repeat:
        return _repeat(given.repeat)
    return _run(given)


def _work(target: str, seed: str, start: str, stop: str, note: str) -> int:
    from tests.fuzz.work import Share, work

    work(Share(target, int(seed), int(start), int(stop)), Path(note))
    return 0


def _run(given: argparse.Namespace) -> int:
    from tests.fuzz.work import run

    shares = run(given.targets, given.inputs, given.seed, given.jobs)
    print(f"{'target':12} {'inputs':>8} {'values':>8} {'errors':>8} {'faults':>7} {'seconds':>8}")
    for share in shares:
        counts = share.counts
        told = (share.stop, counts["value"], counts["error"], counts["fault"], share.seconds)
        print("{:12} {:8,} {:8,} {:8,} {:7,} {:8.1f}".format(share.target, *told))
        for index, fault in share.faults:
            print(f"  {_save(share.target, given.seed, index)}: {fault}")
    if given.output:
        summary = {
            share.target: {"inputs": share.stop, **share.counts, "seconds": round(share.seconds, 1)}
            for share in shares
        }
        given.output.write_text(json.dumps({"seed": given.seed, "targets": summary}, indent=2) + "\n")
    return int(any(share.faults for share in shares))


def _save(target: str, seed: int, index: int) -> Path:
    from tests.fuzz.generate import generate

    SAVED.mkdir(exist_ok=True)
    path = SAVED / f"{target.replace(' ', '-')}.{seed}.{index}"
    path.write_bytes(generate(target, seed, index))
    return path


def _repeat(path: Path) -> int:
    from tests.fuzz.runner import outcome

    target = path.name.split(".")[0].replace("-", " ")
    with tempfile.TemporaryDirectory() as folder:
        print(outcome(target, path.read_bytes(), Path(folder)))
    return 0


def _atheris(target: str) -> int:
    """Guide inputs by coverage; must run before all imports, which it traces, and without compiled kernels."""
    try:
        import atheris
    except ModuleNotFoundError:
        print("atheris is not installed: pip install atheris")
        return 2
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    with atheris.instrument_imports(include=["apexrank"]):
        from tests.fuzz.runner import outcome
    with tempfile.TemporaryDirectory() as folder:
        atheris.Setup(sys.argv[:1], lambda data: outcome(target, data, Path(folder)) and None)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
