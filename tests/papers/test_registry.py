"""The list of experiments: names, options, and a cheap import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import apexrank
import apexrank_papers as papers
from apexrank.errors import InputError

FOLDER = Path(papers.__file__).parent
SHARED = {"data", "printed"}
PAPERS = sorted({path.parent.name for path in FOLDER.glob("*/__init__.py")} - SHARED)


def test_names_titles_and_options():
    tables = ["table1", "table2", "table3", "table4", "table4-good", "table5"]
    assert papers.names()[: len(tables)] == tables
    assert len(papers.names()) == len(set(papers.names())) == 53
    assert all(experiment.title for experiment in papers.REGISTRY.values())
    assert papers.get("table3").options == ["n_splits", "solver", "n_jobs", "random_state"]
    with pytest.raises(InputError, match="table9"):
        papers.get("table9")
    with pytest.raises(InputError, match="its options are none"):
        papers.run("table1", n_splits=3)


@pytest.mark.parametrize("name", papers.names())
def test_every_experiment_is_where_the_list_says(name):
    experiment = papers.get(name)
    assert callable(experiment.run)
    assert "random_state" in experiment.options or "n" not in experiment.options


def test_the_list_imports_no_experiment():
    code = """
import sys
import apexrank_papers as papers
titles = [papers.get(name).title for name in papers.names()]
heavy = {"polars", "sklearn", "scipy", "numba", "matplotlib", "apexrank_papers.push.tables"}
print(len(titles), sorted(heavy & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split(maxsplit=1) == [str(len(papers.names())), "[]\n"]


@pytest.mark.parametrize("paper", PAPERS)
def test_no_paper_imports_from_another(paper):
    for path in (FOLDER / paper).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("apexrank_papers."):
                assert node.module.split(".")[1] not in set(PAPERS) - {paper}, path


def test_only_the_command_line_knows_the_papers():
    library = Path(apexrank.__file__).parent
    users = {
        path.relative_to(library).parts[0]
        for path in library.rglob("*.py")
        if "apexrank_papers" in path.read_text(encoding="utf-8")
    }
    assert users == {"cli"}
