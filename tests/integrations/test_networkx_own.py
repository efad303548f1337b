"""networkx's own PageRank tests, dispatched to our backend by networkx's plugin."""

import json
import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

THEIRS = [
    "networkx.algorithms.link_analysis.pagerank_alg",  # the examples of its docstrings
    "networkx.algorithms.link_analysis.tests.test_pagerank",
]

# tests could pass by falling back to networkx, so our calls are counted per test
PLUGIN = """
import json
from collections import Counter
from apexrank.integrations.networkx import BackendInterface

calls, current, pagerank = Counter(), [], BackendInterface.pagerank

def counted(*args, **kwargs):
    calls[current[-1]] += 1
    return pagerank(*args, **kwargs)

BackendInterface.pagerank = staticmethod(counted)

def pytest_runtest_setup(item):
    current.append(item.name)

def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    outcomes = {kind: [report.nodeid.split("::")[-1] for report in stats.get(kind, [])]
                for kind in ("passed", "failed", "error", "skipped", "xfailed", "xpassed")}
    with open("outcome.json", "w") as file:
        json.dump({"calls": calls, **outcomes}, file)
"""


def run_theirs(folder):
    """Outcomes of networkx's tests, and the number of calls of our backend in each; only the plugin is loaded."""
    (folder / "calls_of_backend.py").write_text(PLUGIN)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    options = [
        "-p",
        "calls_of_backend",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "-q",
        "--doctest-modules",
    ]
    options += ["-c", str(folder / "pytest.ini"), "--confcutdir", str(Path(nx.__file__).parent)]
    variables = {
        "NETWORKX_TEST_BACKEND": "apexrank",
        "NETWORKX_FALLBACK_TO_NX": "True",
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--pyargs", *THEIRS],
        cwd=folder,
        env={**os.environ, **variables, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "outcome.json").read_text())


@pytest.mark.slow
def test_their_tests_pass_through_the_backend(tmp_path, counted):
    outcome = run_theirs(tmp_path)
    passed, calls = outcome.pop("passed"), outcome.pop("calls")
    assert outcome == {kind: [] for kind in ("failed", "error", "skipped", "xfailed", "xpassed")}
    # of each test that networkx has of several functions, the one that it hands on
    handed_on = {name for name in passed if name.endswith("[pagerank]")}
    assert len(handed_on) >= 5
    handed_on.add("networkx.algorithms.link_analysis.pagerank_alg.pagerank")
    assert handed_on <= set(calls) <= set(passed)
    counted("networkx's own tests through the backend", len(passed))
    counted("calls of PageRank in networkx's own tests", sum(calls.values()))
