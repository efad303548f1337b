"""Interrupted fits go on from their checkpoint and end at the same bits."""

import errno
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from apexrank import (
    InputError,
    IRPush,
    ListwiseRanker,
    MonotoneRetargeting,
    PNormPush,
    PNormPushCV,
    RankBoost,
    checkpoint,
    checkpoints,
)
from apexrank.models.blocks import ArrayBlocks
from apexrank.rankers.blocks import fit_blocks

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + RNG.normal(size=60) > 0.5).astype(int)
GRADES = RNG.integers(0, 3, 60)
QUERIES = np.repeat(np.arange(6), 10)


def fit_table(ranker):
    return lambda: ranker.fit(X, Y)


def fit_lists(ranker):
    return lambda: ranker.fit(X, GRADES, groups=QUERIES)


FITS = {
    "newton": lambda: fit_table(PNormPush(p=8, alpha=1e-3)),
    "lbfgs": lambda: fit_table(PNormPush(p=4, alpha=1e-2, solver="lbfgs")),
    "coordinate": lambda: fit_table(PNormPush(p=2, solver="coordinate", max_iter=20)),
    "rankboost": lambda: fit_table(RankBoost(t_max=20)),
    "lasso": lambda: fit_table(PNormPush(p=4, alpha=0.05, l1_ratio=1.0)),
    "infinite": lambda: fit_table(PNormPush(p=np.inf, alpha=0.1)),
    "ir": lambda: fit_table(IRPush(alpha=1e-2)),
    "cv": lambda: fit_table(PNormPushCV(ps=[1, 4], alphas=[0.1, 1.0], cv=2)),
    "retarget": lambda: fit_lists(MonotoneRetargeting(alpha=0.1)),
    "alternations": lambda: fit_lists(MonotoneRetargeting(alpha=0.1, margin=0, max_alternations=3)),
    "listwise": lambda: fit_lists(ListwiseRanker(alpha=0.1)),
    "blocks": lambda: lambda: fit_blocks(PNormPush(p=4, alpha=1e-2), ArrayBlocks(X, Y, rows=25)),
}


class Interrupted(BaseException):
    """Stands for a Ctrl-C."""


@pytest.fixture
def stop_after(monkeypatch):
    """Interrupt fits whenever checkpoints have been given so many new answers."""
    add = checkpoints.Journal._add

    def stop(number):
        added = []

        def counting(self, record):
            add(self, record)
            added.append(record)
            if len(added) % number == 0:
                raise Interrupted

        monkeypatch.setattr(checkpoints.Journal, "_add", counting)

    return stop


def fitted(ranker):
    """Everything a fit leaves behind that is numbers, as bytes."""
    names = ("coef_", "intercept_", "history_", "objective_", "dual_gap_", "grad_norm_", "n_iter_")
    return {name: np.asarray(getattr(ranker, name)).tobytes() for name in names if hasattr(ranker, name)}


@pytest.mark.parametrize("name", FITS)
def test_interrupted_again_and_again_a_fit_ends_at_the_same_bits(name, tmp_path, stop_after):
    whole = fitted(FITS[name]()())
    path, tries, resumed = tmp_path / "fit.checkpoint", 0, []
    stop_after(2)
    while tries < 200:
        tries += 1
        try:
            with checkpoint(path, every=0) as journal:
                resumed.append(journal.resumed)
                again = fitted(FITS[name]()())
            break
        except Interrupted:
            assert path.stat().st_size > 0
    assert again == whole
    assert tries > 1
    assert resumed == [2 * k for k in range(tries)]
    assert not path.exists()


def test_answers_that_are_there_are_not_computed_again(tmp_path, monkeypatch, stop_after):
    calls = []
    compute = PNormPush._problem

    def counted(self, *args):
        problem = compute(self, *args)
        stream = problem.objective.stream
        problem.objective.stream = lambda sums: calls.append(1) or stream(sums)
        return problem

    monkeypatch.setattr(PNormPush, "_problem", counted)
    fit = FITS["lbfgs"]
    fit()()
    n = len(calls)
    assert n > 5
    stop_after(n - 1)
    with pytest.raises(Interrupted), checkpoint(tmp_path / "c"):
        fit()()
    calls.clear()
    with checkpoint(tmp_path / "c"):
        fit()()
    assert len(calls) == 3  # the first and the last of those that were there, and the one that was missing


def interrupted(path, stop_after, monkeypatch, **options):
    stop_after(6)
    with pytest.raises(Interrupted), checkpoint(path, **options):
        FITS["newton"]()()
    monkeypatch.undo()


@pytest.mark.parametrize("cut", [1, 3, 4, 30])
def test_what_a_crash_cut_off_is_left_out(cut, tmp_path, stop_after, monkeypatch):
    path = tmp_path / "c"
    interrupted(path, stop_after, monkeypatch)
    path.write_bytes(path.read_bytes()[:-cut])
    with checkpoint(path) as journal:
        again = FITS["newton"]()()
    assert journal.resumed == 5
    assert fitted(again) == fitted(FITS["newton"]()())


def test_every_bit_counts(tmp_path, stop_after, monkeypatch):
    path = tmp_path / "c"
    interrupted(path, stop_after, monkeypatch)
    good, whole = path.read_bytes(), fitted(FITS["newton"]()())
    for place in RNG.integers(0, len(good), 60):
        bad = bytearray(good)
        bad[place] ^= 1 << int(RNG.integers(8))
        path.write_bytes(bytes(bad))
        try:
            with checkpoint(path):
                again = fitted(FITS["newton"]()())
        except InputError:
            continue
        assert again == whole


@pytest.mark.parametrize("change", ["row", "label", "alpha", "p"])
def test_a_checkpoint_of_another_fit_is_refused(change, tmp_path, stop_after, monkeypatch):
    path, other, y = tmp_path / "c", X.copy(), Y.copy()
    interrupted(path, stop_after, monkeypatch)
    if change == "row":
        other[17, 1] += 1e-9
    if change == "label":
        y[3] = 1 - y[3]
    ranker = PNormPush(p=2 if change == "p" else 8, alpha=1e-2 if change == "alpha" else 1e-3)
    kept = path.read_bytes()
    with pytest.raises(InputError, match="is of another fit"), checkpoint(path):
        ranker.fit(other, y)
    assert path.read_bytes() == kept


def test_other_options_are_refused_before_any_work(tmp_path, stop_after, monkeypatch):
    interrupted(tmp_path / "c", stop_after, monkeypatch, about="p=8")
    with pytest.raises(InputError, match="with other options"), checkpoint(tmp_path / "c", about="p=2"):
        raise AssertionError


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"apexrank model 1\n", b"\0" * 100])
def test_other_files_are_left_alone(content, tmp_path):
    path = tmp_path / "precious"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a checkpoint"), checkpoint(path):
        raise AssertionError
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"apexrank check", b"apexrank checkpoint 1\nabout 12"])
def test_a_header_cut_short_is_a_new_checkpoint(content, tmp_path):
    path = tmp_path / "c"
    path.write_bytes(content)
    with checkpoint(path) as journal:
        assert fitted(FITS["newton"]()()) == fitted(FITS["newton"]()())
    assert journal.resumed == 0


def test_two_fits_cannot_share_a_checkpoint(tmp_path):
    pytest.importorskip("fcntl", reason="no file locks on this system")
    with (
        checkpoint(tmp_path / "c"),
        pytest.raises(InputError, match="in use by another fit"),
        checkpoint(tmp_path / "c"),
    ):
        raise AssertionError


def test_no_folder(tmp_path):
    with (
        pytest.raises(InputError, match="cannot be written: no such file"),
        checkpoint(tmp_path / "no" / "c"),
    ):
        raise AssertionError


def test_a_full_disk_ends_the_checkpoint_not_the_fit(tmp_path):
    whole = fitted(FITS["newton"]()())
    with checkpoint(tmp_path / "c", every=0) as journal:
        full = FullFile(journal._file)
        journal._file = full
        with pytest.warns(UserWarning, match="is kept no longer: No space left on device"):
            again = FITS["newton"]()()
    assert fitted(again) == whole
    assert full.tries == 1


class FullFile:
    """A file on a disk that is full."""

    def __init__(self, file):
        self.file, self.tries = file, 0

    def write(self, data):
        self.tries += 1
        raise OSError(errno.ENOSPC, "No space left on device")

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_nothing_is_left_of_a_fit_that_never_began(tmp_path):
    with pytest.raises(InputError, match="only one class"), checkpoint(tmp_path / "c"):
        PNormPush().fit(X, np.zeros(60))
    assert not list(tmp_path.iterdir())


def run(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", "from apexrank.cli import main; main()", "fit", *map(str, arguments)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        **options,
    )


def write_rows(path: Path):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1500, 12))
    y = rows[:, 0] + rows[:, 1] ** 2 + rng.normal(size=len(rows)) > 2
    pl.DataFrame({f"x{j}": rows[:, j] for j in range(12)}).with_columns(y=y.astype(int)).write_parquet(path)


def test_killed_and_started_again_the_command_writes_the_same_model(tmp_path, counted):
    train, kept = tmp_path / "rows.parquet", tmp_path / "fit.checkpoint"
    write_rows(train)
    options = [train, "--target", "y", "--model", "rankboost", "--max-iter", 600, "--tol", 0]
    whole = run(*options, "-o", tmp_path / "whole.apex")
    start = time.monotonic()
    for kills in (1, 2):
        process = run(*options, "-o", tmp_path / "again.apex", "--checkpoint", kept)
        size = kept.stat().st_size if kept.exists() else 0
        while process.poll() is None and (not kept.exists() or kept.stat().st_size <= size + 2_000):
            assert time.monotonic() - start < 120
            time.sleep(0.02)
        process.kill()
        process.communicate()
        assert kept.stat().st_size > size, f"kill {kills}"
        assert not (tmp_path / "again.apex").exists()
    last = run(*options, "-o", tmp_path / "again.apex", "--checkpoint", kept)
    message = last.communicate()[1]
    assert last.returncode == 0
    assert "going on from" in message
    assert whole.wait() == 0
    whole.communicate()
    assert (tmp_path / "again.apex").read_bytes() == (tmp_path / "whole.apex").read_bytes()
    assert not kept.exists()
    counted("fits killed and resumed from a checkpoint to the same bytes", kills)


def test_the_command_refuses_a_checkpoint_that_is_an_input(tmp_path):
    train = tmp_path / "rows.csv"
    train.write_text("x,y\n1,0\n2,1\n")
    process = run(train, "--target", "y", "--checkpoint", train, "-o", tmp_path / "m.apex")
    assert "is also an input" in process.communicate()[1]
    assert process.returncode == 2
    assert train.read_text() == "x,y\n1,0\n2,1\n"
