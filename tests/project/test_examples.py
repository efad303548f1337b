"""Every example of the gallery runs without a warning, draws, prints, and reads as a page.

They run in one process, because a short program spends most of its time on imports.
"""

import ast
import re
import runpy
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*/*.py"))
NAMES = [path.relative_to(FOLDER).with_suffix("").as_posix() for path in EXAMPLES]
QUICK = {"push/push_path"}
RUNS = [
    pytest.param(path, marks=() if name in QUICK else pytest.mark.slow)
    for path, name in zip(EXAMPLES, NAMES, strict=True)
]
every_example = pytest.mark.parametrize("path", EXAMPLES, ids=NAMES)
distributions = cache(packages_distributions)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run an example in an empty folder; return its output and its number of figures."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    mpl.use("agg")

    def run(path):
        with mpl.rc_context():
            runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out, len(plt.get_fignums())

    return run


@pytest.mark.parametrize("path", RUNS, ids=NAMES)
def test_example_runs(path, run, tmp_path):
    printed, figures = run(path)
    assert printed.strip()
    assert figures >= 1
    assert not list(tmp_path.iterdir()), "an example leaves files behind"


def requirements(extra):
    """Distributions of an extra and of the extras that it names, with those that are always installed."""
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = set()
    for line in [*project["dependencies"], *project["optional-dependencies"][extra]]:
        name, inner = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", line).groups()
        required |= set().union(*map(requirements, inner.split(","))) if name == "apexrank" else {name}
    return required


@every_example
def test_the_docs_extra_has_what_an_example_always_imports(path):
    made = distributions()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in {name.partition(".")[0] for name in names} - sys.stdlib_module_names:
            ours = {"apexrank", "apexrank_papers"}
            assert (ours | requirements("docs")) & {*made.get(name, ()), name}, name


@every_example
def test_example_reads_as_a_page(path):
    source = path.read_text(encoding="utf-8")
    title, line, *rest = ast.get_docstring(ast.parse(source)).splitlines()
    assert line == "=" * len(line)
    assert len(line) >= len(title)
    assert len(" ".join(rest).split()) >= 20, "says too little about the question it answers"
    assert len(re.findall(r"^# %%$", source, flags=re.M)) >= 2
    assert "__name__" not in source, "a page has no main function: its cells are run one by one"


@pytest.mark.parametrize("folder", sorted({path.parent for path in EXAMPLES}), ids=lambda path: path.name)
def test_every_folder_has_a_header(folder):
    for header in (folder / "GALLERY_HEADER.rst", FOLDER / "GALLERY_HEADER.rst"):
        title, line, *rest = header.read_text(encoding="utf-8").strip().splitlines()
        assert re.fullmatch(r"([=-])\1+", line)
        assert len(line) >= len(title)
        assert rest


def test_all_examples_are_in_folders_of_the_gallery():
    assert {path.parent.name for path in EXAMPLES} == {"push", "relevance", "graphs", "votes"}
    assert not list(FOLDER.glob("*.py"))


def test_calibration_changes_the_probabilities_and_not_the_ranking(run):
    output, _ = run(FOLDER / "push" / "calibrated_probabilities.py")
    assert "leaves the ranking unchanged: True" in output
    rows = [line.split() for line in output.split("Brier score")[1].splitlines()[1:4]]
    brier, auc, precision = ([float(row[column]) for row in rows] for column in (-3, -2, -1))
    assert max(brier[1:]) < 0.5 * brier[0]
    assert auc[1] == auc[0]
    assert precision[1] == precision[0]
