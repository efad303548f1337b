"""Run what each section of three pages shows, in order, in one folder, and compare what it prints."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.figures import same_output

ROOT = Path(__file__).parent.parent
RUN = ("README.md", "docs/tour.md", "docs/guide/production.md")
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in RUN}
README = PAGES["README.md"]
SECTIONS = {
    f"{name}: {title}": text
    for name, page in PAGES.items()
    for title, text in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
}
SHOWN = {
    title: blocks
    for title, text in SECTIONS.items()
    if (blocks := re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
}


def assert_prints(expected: str, got: str) -> None:
    assert same_output(expected, got), f"expected:\n{expected}\ngot:\n{got}"


def commands(block: str) -> list[tuple[str, str]]:
    """Pairs of a command and its shown output."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def run(arguments: list[str], folder: Path, script: str | None = None) -> str:
    result = subprocess.run(
        arguments, cwd=folder, input=script, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    "title",
    [title if title.startswith("README") else pytest.param(title, marks=pytest.mark.slow) for title in SHOWN],
)
def test_everything_shown_in_order(title, tmp_path):
    """A block of Python with the text after it, and the commands of each console."""
    program = str(Path(sys.executable).with_name("apexrank"))
    blocks = SHOWN[title]
    for (kind, block), (_, after) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind == "python":
            assert_prints(after, run([sys.executable, "-W", "error", "-"], tmp_path, block))
        for command, output in commands(block) if kind == "console" else ():
            name, *arguments = shlex.split(command)
            assert name == "apexrank"
            assert_prints(output, run([program, *arguments], tmp_path))
    drawn = {picture.name: picture.stat().st_size for picture in tmp_path.glob("*.png")}
    assert drawn.keys() == set(re.findall(r'savefig\("([^"]+)"\)', SECTIONS[title]))
    assert all(size > 10_000 for size in drawn.values())


def test_blocks_of_all_kinds_are_found():
    blocks = [block for blocks in SHOWN.values() for block in blocks]
    shown = re.findall(r"^```\w+$", "".join(PAGES.values()), flags=re.MULTILINE)
    assert len(blocks) == len(shown)  # none outside a section
    assert sum(kind == "python" for kind, _ in blocks) >= 3
    assert sum(len(commands(block)) for kind, block in blocks if kind == "console") >= 8


def test_names_and_files_that_are_mentioned_exist():
    import apexrank_papers as experiments

    for name in re.findall(r"apexrank reproduce ([\w-]+)", "".join(PAGES.values())):
        assert name in [*experiments.names(), "all"]
    for path in re.findall(r"\]\((?!http|#)([^)]+)\)", README):
        assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_readme_is_short_and_nothing_is_left_to_be_filled_in():
    assert len(README.splitlines()) <= 200
    assert not re.findall(r"\b(?:RATIO|MEMR|LGBM)_\w+|\bTODO\b", README)
