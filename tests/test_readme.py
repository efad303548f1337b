"""What the README shows is run, in order, in one folder, and must print what the README says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.figures import same_output

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def assert_prints(expected: str, got: str) -> None:
    assert same_output(expected, got), f"expected:\n{expected}\ngot:\n{got}"


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


def test_everything_shown_in_order(folder):
    """A block of Python and the text after it, and the commands of each console."""
    program = str(Path(sys.executable).with_name("apexrank"))
    n_examples = n_commands = 0
    for (kind, block), (_, after) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if kind == "python":
            assert_prints(after, run([sys.executable, "-W", "error", "-"], folder, block))
            n_examples += 1
        for command, output in commands(block) if kind == "console" else ():
            name, *arguments = shlex.split(command)
            assert name == "apexrank"
            assert_prints(output, run([program, *arguments], folder))
            n_commands += 1
    assert n_examples >= 3
    assert n_commands >= 8
    assert (folder / "roc-top.png").stat().st_size > 10_000


def test_names_and_files_that_are_mentioned_exist():
    import apexrank_papers as experiments

    for name in re.findall(r"apexrank reproduce ([\w-]+)", README):
        assert name in [*experiments.names(), "all"]
    for path in re.findall(r"\]\((?!http|#)([^)]+)\)", README):
        assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_no_number_is_left_to_be_filled_in():
    assert not re.findall(r"\b(?:RATIO|MEMR|LGBM)_\w+|\bTODO\b", README)
