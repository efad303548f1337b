"""Build wheel and sdist, and test them outside the checkout: ``python -m tests.release [--suite]``.

The wheel is installed into a new environment, where the README and the tour, unpacked from the sdist without its
``src``, must print what they show. The sdist must build the same wheel. ``--suite`` also runs ``make test`` inside the
sdist.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
# the project's own settings must not reach into the new environment
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def call(*command: str | Path, cwd: Path) -> None:
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=cwd, env=CLEAN, check=True)


def contents(wheel: Path) -> dict[str, int]:
    """Names and checksums of the files in a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        return {entry.filename: entry.CRC for entry in opened.infolist()}


def build(source: Path, target: Path) -> tuple[Path, Path]:
    """Wheel and sdist of a source tree."""
    call(sys.executable, "-m", "build", "--outdir", target, source, cwd=target)
    return next(target.glob("*.whl")), next(target.glob("*.tar.gz"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", action="store_true", help="run make test inside the unpacked sdist too")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="folder for the two files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (first := folder / "first").mkdir()
        (again := folder / "again").mkdir()
        wheel, sdist = build(ROOT, first)
        with tarfile.open(sdist) as opened:
            opened.extractall(folder, filter="data")
        source = folder / sdist.name.removesuffix(".tar.gz")
        if contents(build(source, again)[0]) != contents(wheel):
            sys.exit("the wheel that the sdist builds differs from the one of the checkout")
        if arguments.suite:
            call("make", "test", cwd=source)
        environment = folder / "environment"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        needs = [
            f"{wheel}[plot,report,graph,export]",
            source / "papers",
            "lightgbm",
            "pytest",
            "hypothesis",
            "pandas",
        ]
        pip = "-m", "pip", "--quiet", "--disable-pip-version-check"
        call(python, *pip, "install", "--constraint", source / "constraints.txt", *needs, cwd=folder)
        shutil.rmtree(source / "src")
        call(python, "-m", "pytest", "-q", "tests/test_readme.py", cwd=source)
        arguments.dist.mkdir(exist_ok=True)
        for file in (wheel, sdist):
            shutil.copy2(file, arguments.dist)
            print(arguments.dist / file.name)


if __name__ == "__main__":
    main()
