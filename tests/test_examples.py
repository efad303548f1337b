"""Every example runs as a reader would run it, in an empty folder, without a warning."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Run an example once and give what it printed."""
    outputs = {}

    def run(path):
        if path not in outputs:
            folder = tmp_path_factory.mktemp(path.stem)
            command = [sys.executable, "-W", "error", str(path)]
            result = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
            )
            assert result.returncode == 0, result.stderr
            outputs[path] = result.stdout
        return outputs[path]

    return run


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, printed):
    assert printed(path).strip()


def test_there_are_examples():
    assert EXAMPLES


def test_calibration_changes_the_probabilities_and_not_the_ranking(printed):
    [path] = [path for path in EXAMPLES if path.stem == "calibrated_probabilities"]
    output = printed(path)
    assert "leaves the ranking unchanged: True" in output
    rows = [line.split() for line in output.split("Brier score")[1].splitlines()[1:4]]
    brier, auc, precision = ([float(row[column]) for row in rows] for column in (-3, -2, -1))
    assert max(brier[1:]) < 0.5 * brier[0]
    assert auc[1] == auc[0]
    assert precision[1] == precision[0]
