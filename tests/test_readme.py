"""What the README shows is run, in order, in one folder, and must print what the README says."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def assert_prints(expected: str, got: str) -> None:
    assert doctest.OutputChecker().check_output(expected, got, FLAGS), f"expected:\n{expected}\ngot:\n{got}"


def commands(block: str) -> list[tuple[str, str]]:
    """Pairs of a command and the output shown under it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("readme")


def run(arguments: list[str], folder: Path, script: str | None = None) -> str:
    result = subprocess.run(
        arguments, cwd=folder, input=script, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_python_examples(folder):
    codes, outputs = ([text for kind, text in BLOCKS if kind == wanted] for wanted in ("python", "text"))
    assert codes
    for code, output in zip(codes, outputs, strict=True):
        assert_prints(output, run([sys.executable, "-W", "error", "-"], folder, code))
    assert (folder / "roc-top.png").stat().st_size > 10_000


def test_command_line(folder):
    program = str(Path(sys.executable).with_name("apexrank"))
    shown = [pair for kind, text in BLOCKS if kind == "console" for pair in commands(text)]
    assert len(shown) >= 4
    for command, output in shown:
        name, *arguments = shlex.split(command)
        assert name == "apexrank"
        assert_prints(output, run([program, *arguments], folder))


def test_names_and_files_that_are_mentioned_exist():
    from apexrank import experiments

    for name in re.findall(r"apexrank reproduce ([\w-]+)", README):
        assert name in experiments.names()
    for path in re.findall(r"\]\((?!http|#)([^)]+)\)", README):
        assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
