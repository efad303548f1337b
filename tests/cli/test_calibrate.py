"""Calibrated probabilities, and lists that end where the expected gain of the next row becomes negative."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer

import apexrank
from apexrank.io import ModelFileError
from apexrank.io.judge import best_cut
from apexrank.io.table_ranker import Calibration
from tests.io.model_files import number, pack, unpack

from .test_verbs import run

FIT = "fit train.csv --target malignant --id case --calibrate"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two halves of a real table with four features that do not separate the classes, and a fitted model."""
    path = tmp_path_factory.mktemp("calibrate")
    data = load_breast_cancer(as_frame=True)
    names = ["mean texture", "mean smoothness", "mean symmetry", "mean fractal dimension"]
    frame = pl.DataFrame({name: data.frame[name].to_numpy() for name in names})
    frame = frame.with_columns(malignant=pl.Series(1 - data.target.to_numpy()))
    frame = frame.with_columns(case=pl.int_range(len(frame))).sample(fraction=1, shuffle=True, seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        frame[:285].write_csv("train.csv")
        frame[285:].write_csv("new.csv")
        run(f"{FIT} -o m.apex")
        run(f"{FIT.replace(' --calibrate', '')} -o plain.apex")
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def ranked(command):
    return pl.DataFrame(json.loads(run(f"{command} --json").stdout)["ranking"])


def test_probabilities_are_those_of_held_out_rows():
    found = ranked("rank m.apex new.csv --keep")
    p, y = found["probability"].to_numpy(), found["malignant"].to_numpy()
    for part in np.array_split(np.arange(len(p)), 4):
        deviation = np.sqrt(np.mean(p[part] * (1 - p[part])) / len(part))
        assert (
            abs(p[part].mean() - y[part].mean()) < 3 * deviation + 0.03
        )  # and as much for the 285 rows of training
    base = np.mean(y) * (1 - np.mean(y))
    assert np.mean((p - y) ** 2) < 0.75 * base
    assert ((p > 0) & (p < 1)).all()


def test_order_is_kept():
    found = ranked("rank m.apex new.csv")
    score, p = found["score"].to_numpy(), found["probability"].to_numpy()
    assert (np.diff(p) <= 0).all()
    knots = apexrank.load("m.apex").calibration.scores
    inside = (score > knots[0]) & (score < knots[-1])
    assert inside.sum() > 200
    assert (np.diff(p[inside]) < 0).all()  # ties only in the first and the last block


def test_without_calibration_nothing_changes():
    plain = ranked("rank plain.apex new.csv")
    assert plain.equals(ranked("rank m.apex new.csv").drop("probability"))
    assert apexrank.load("plain.apex").calibration is None


def test_model_files_keep_the_map():
    model = apexrank.load("m.apex")
    tree, arrays = unpack(Path("m.apex").read_bytes())
    for name in ("scores", "probabilities"):
        at = number(tree, "apexrank.io.Calibration", name)
        assert np.array_equal(arrays[at], getattr(model.calibration, name))
        for wrong in (arrays[at] * 0, arrays[at] + np.inf, arrays[at][1:]):
            Path("bad.apex").write_bytes(pack(tree, [*arrays[:at], wrong, *arrays[at + 1 :]]))
            with pytest.raises(ModelFileError, match="of a Calibration"):
                apexrank.load("bad.apex")


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    scores, times = rng.normal(size=200).round(1), rng.integers(0, 4, 200)
    y = (rng.random(200) < 1 / (1 + np.exp(-scores))).astype(int)
    weighted = Calibration.learn(scores, y, times.astype(float))
    repeated = Calibration.learn(np.repeat(scores, times), np.repeat(y, times))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


def test_blocks_are_those_of_isotonic_regression():
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(1)
    scores = rng.normal(size=3000)
    y = (rng.random(3000) < 1 / (1 + np.exp(2 - scores))).astype(int)
    found = Calibration.learn(scores, y)
    values = np.unique(IsotonicRegression().fit(scores, y).predict(scores))
    assert len(found.probabilities) == pytest.approx(len(values), abs=2)
    middle = found.probabilities[(found.probabilities > 0.05) & (found.probabilities < 0.4)]
    assert len(middle) > 5
    for p in middle:
        assert np.abs(values - p).min() < 1e-9


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("fit train.csv --target malignant --model retarget --calibrate", "and this one holds grades"),
        ("fit train.csv --target malignant --groups case --calibrate", "probabilities need one list"),
        (
            "fit train.csv --target malignant --engine blocks --calibrate",
            "--calibrate needs the table in memory",
        ),
        ("fit few.csv --target malignant --calibrate", "at least 5 rows of each class"),
        ("rank plain.apex new.csv --cost-false-alarm 1 --gain-hit 1", "fit it with --calibrate"),
        ("rank m.apex new.csv --cost-false-alarm 1", "go together: give both"),
        ("rank m.apex new.csv --cost-false-alarm -1 --gain-hit 1", "--cost-false-alarm must be at least 0"),
        ("rank m.apex new.csv --cost-false-alarm 1 --gain-hit nan", "--gain-hit above 0"),
        ("rank m.apex new.csv --cost-false-alarm 1 --gain-hit 1 --top 3", "leave out --top and --fpr"),
        ("evaluate m.apex new.csv --gain-hit 1", "go together: give both"),
        ("evaluate m.apex new.csv --per-query --cost-false-alarm 1 --gain-hit 1", "leave out --per-query"),
    ],
)
def test_refusals(command, words):
    rows = Path("train.csv").read_text().splitlines()
    positive = [row for row in rows[1:] if row.split(",")[-2] == "1"]
    negative = [row for row in rows[1:] if row.split(",")[-2] == "0"]
    Path("few.csv").write_text("\n".join([rows[0], *positive[:4], *negative[:40]]) + "\n")
    error = run(f"{command} -o out.csv" if command.startswith("rank") else command, code=2).stderr
    assert words in error
    assert error.count("\n") == 1
    assert not Path("out.csv").exists()


def test_lists_are_cut_where_the_next_row_loses():
    whole = ranked("rank m.apex new.csv")
    result = run("rank m.apex new.csv --cost-false-alarm 5 --gain-hit 20 --json")
    report = json.loads(result.stdout)
    gains = 20 * whole["probability"] - 5 * (1 - whole["probability"])
    assert report["rows"] == int((gains >= 0).sum()) == len(report["ranking"])
    assert 0 < report["rows"] < len(whole)
    assert report["min_probability"] == pytest.approx(0.2)
    assert report["expected_gain"] == pytest.approx(gains.filter(gains >= 0).sum())
    assert report["expected_gain"] == pytest.approx(gains.cum_sum().max())
    assert f"{report['rows']} of 284 rows have a probability" in result.stderr
    assert "expected gain, " in result.stderr
    run("rank m.apex new.csv --cost-false-alarm 5 --gain-hit 20 -o cut.csv.gz")
    assert pl.read_csv("cut.csv.gz").height == report["rows"]


def test_the_best_cut_of_labelled_rows():
    found = ranked("rank m.apex new.csv --keep")
    hits = found["malignant"].cum_sum()
    gains = 20 * hits - 5 * (found["rank"] - hits)
    result = run("evaluate m.apex new.csv --cost-false-alarm 5 --gain-hit 20 --json")
    cut = json.loads(result.stdout)["best_cut"]
    assert cut["gain"] == gains.max()
    assert cut["length"] == gains.arg_max() + 1
    assert cut["hits"] == hits[gains.arg_max()]
    assert cut["score"] == found["score"][gains.arg_max()]
    shown = run("evaluate m.apex new.csv --cost-false-alarm 5 --gain-hit 20").stdout
    assert f"largest gain: {cut['gain']:.6g}, of a list of {cut['length']:.6g} rows" in shown
    assert "chosen on these rows" in shown
    Path("last.csv").write_text("s,y\n3,0\n2,1\n1,0\n")
    shown = run("evaluate last.csv --scores s --target y --cost-false-alarm 5 --gain-hit 1").stdout
    assert "largest gain: 0, of an empty list" in shown


def test_cuts_keep_ties_together_and_weights_repeat():
    rng = np.random.default_rng(0)
    scores, times = rng.normal(size=60).round(1), rng.integers(0, 4, 60)
    y = rng.integers(0, 2, 60)
    cut = best_cut(y, scores, 1.0, 1.1, sample_weight=times.astype(float))
    assert cut == best_cut(np.repeat(y, times), np.repeat(scores, times), 1.0, 1.1)
    own = np.repeat(y, times)[np.repeat(scores, times) >= cut["score"]]
    assert (cut["length"], cut["hits"]) == (len(own), own.sum())
    every = [
        1.1 * y[scores >= s] @ times[scores >= s] - (1 - y[scores >= s]) @ times[scores >= s]
        for s in np.unique(scores)
    ]
    assert cut["gain"] == pytest.approx(max(every))


def test_fit_says_the_range_and_writes_the_same_bytes_again():
    result = run(f"{FIT} -o again.apex")
    low, high = apexrank.load("again.apex").calibration.probabilities[[0, -1]]
    assert f"probabilities from {low:.3g} to {high:.3g}" in result.stdout
    assert Path("again.apex").read_bytes() == Path("m.apex").read_bytes()


def test_rows_of_one_customer_are_in_one_fold(tmp_path):
    """Visits of patients with random outcomes: trees memorise patients, which only folds of whole patients reveal."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 8)
    own, ill = rng.normal(size=(60, 2))[patient], (rng.random(60) < 0.5)[patient]
    frame = pl.DataFrame({"patient": patient, "a": own[:, 0], "b": own[:, 1], "ill": ill.astype(int)})
    frame.write_csv(tmp_path / "visits.csv")
    fit = f"fit {tmp_path}/visits.csv --target ill --model trees --calibrate"
    widths = []
    for options in ("--drop patient", "--group-split patient"):
        run(f"{fit} {options} -o {tmp_path}/m.apex")
        model = apexrank.load(tmp_path / "m.apex")
        assert model.encoder.features == ["a", "b"]
        widths.append(np.ptp(model.calibration.probabilities))
    assert widths[0] > 0.9
    assert widths[1] < 0.6
    message = run(f"{fit.replace(' --calibrate', '')} --group-split patient", code=2).stderr
    assert "--group-split is about the folds of --calibrate" in message


def test_a_share_of_the_list():
    assert len(ranked("rank m.apex new.csv --top 5%")) == 15  # of 284 rows, rounded up
    assert "such as 5%, got 'few'" in run("rank m.apex new.csv --top few", code=2).stderr
    assert "--top must be at least 1" in run("rank m.apex new.csv --top 0%", code=2).stderr
