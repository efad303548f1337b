"""Interrupted fits resume from their checkpoint and produce a bit-identical model."""

import errno
import hashlib
import io
import os
import signal
import subprocess
import sys
from contextlib import suppress
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
from apexrank.problem.blocks import ArrayBlocks
from apexrank.rankers.base import fit_blocks
from apexrank_papers.retargeting.published import PublishedRetargeting

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
    "lasso": lambda: fit_table(PNormPush(p=4, alpha=0.05 / 20, l1_ratio=1.0)),
    "infinite": lambda: fit_table(PNormPush(p=np.inf, alpha=0.1)),
    "ir": lambda: fit_table(IRPush(alpha=1e-2)),
    "cv": lambda: fit_table(PNormPushCV(ps=[1, 4], alphas=[0.1, 1.0], cv=2)),
    "retarget": lambda: fit_lists(MonotoneRetargeting(alpha=0.1)),
    "alternations": lambda: fit_lists(PublishedRetargeting(alpha=0.1, max_alternations=3)),
    "listwise": lambda: fit_lists(ListwiseRanker(alpha=0.1)),
    "blocks": lambda: lambda: fit_blocks(PNormPush(p=4, alpha=1e-2), ArrayBlocks(X, Y, rows=25)),
    "blocks lbfgs": lambda: (
        lambda: fit_blocks(PNormPush(p=4, alpha=1e-2, solver="lbfgs"), ArrayBlocks(X, Y, rows=25))
    ),
    "lists in blocks": lambda: (
        lambda: fit_blocks(MonotoneRetargeting(alpha=0.1), ArrayBlocks(X, GRADES, groups=QUERIES, rows=30))
    ),
}


class Interrupted(BaseException):
    """Substitute for Ctrl-C."""


@pytest.fixture
def stop_after(monkeypatch):
    """Interrupt fits whenever checkpoints have received this many new results."""
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
    """All numeric results of a fit, as bytes."""
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


@pytest.fixture
def computed(monkeypatch):
    """Records every result that had to be computed."""
    found = []
    recall = checkpoints.Journal.recall

    def counting(self, owner, name, point, compute):
        return recall(self, owner, name, point, lambda: (found.append(name), compute())[1])

    monkeypatch.setattr(checkpoints.Journal, "recall", counting)
    return found


@pytest.mark.parametrize("name", sorted(FITS.keys() - {"cv", "infinite", "alternations"}))
def test_answers_that_are_there_are_not_computed_again(name, tmp_path, computed, stop_after):
    with checkpoint(tmp_path / "whole"):
        FITS[name]()()
    asked = list(computed)
    assert len(asked) >= 2
    stop_after(len(asked) - 1)
    with pytest.raises(Interrupted), checkpoint(tmp_path / "c"):
        FITS[name]()()
    computed.clear()
    with checkpoint(tmp_path / "c") as journal:
        FITS[name]()()
    assert journal.resumed == len(asked) - 1
    # the first and the last of those that were there, and the one that was missing
    assert computed == [asked[0], *asked[1:][-2:]]


@pytest.mark.parametrize("name", ["newton", "blocks", "lists in blocks"])
def test_hessians_are_kept_too(name, tmp_path, computed):
    with checkpoint(tmp_path / "c"):
        FITS[name]()()
    assert "hessian" in computed


def test_the_point_is_part_of_the_question(tmp_path):
    journal = checkpoints.Journal(tmp_path / "c", every=0)
    problem = type("Problem", (), {})()
    journal.recall(problem, "value", np.zeros(2), lambda: (np.ones(2),))
    journal.close(done=False)
    journal = checkpoints.Journal(tmp_path / "c")
    with pytest.raises(InputError, match="belongs to another fit"):
        journal.recall(problem, "value", np.array([0.0, 1e-300]), lambda: (np.ones(2),))
    journal.close(done=False)


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


def test_crashing_twice(tmp_path, stop_after, monkeypatch):
    """A truncated record must be removed from the file before new ones are appended."""
    path, whole = tmp_path / "c", fitted(FITS["newton"]()())
    for _ in range(2):
        stop_after(4)
        with pytest.raises(Interrupted), checkpoint(path):
            FITS["newton"]()()
        monkeypatch.undo()
        path.write_bytes(path.read_bytes()[:-9])
    with checkpoint(path) as journal:
        assert fitted(FITS["newton"]()()) == whole
    assert journal.resumed == 6


def test_a_signal_in_the_middle_of_a_write_does_not_write_twice(tmp_path, monkeypatch):
    whole, fsync, stops = fitted(FITS["newton"]()()), os.fsync, [3]

    def interrupting(number):
        stops[0] -= 1
        if stops[0] == 0:
            raise Interrupted
        fsync(number)

    monkeypatch.setattr(checkpoints.os, "fsync", interrupting)
    with pytest.raises(Interrupted), checkpoint(tmp_path / "c", every=0):
        FITS["newton"]()()
    with checkpoint(tmp_path / "c") as journal:
        assert fitted(FITS["newton"]()()) == whole
    assert journal.resumed == 3


def test_a_refusal_that_somebody_catches_is_not_lost(tmp_path, stop_after, monkeypatch):
    """GridSearchCV continues after a failed fit."""
    path = tmp_path / "c"
    interrupted(path, stop_after, monkeypatch)
    kept = path.read_bytes()

    def fit_ten_times():
        for _ in range(10):
            with suppress(InputError):
                PNormPush(p=2).fit(X + 1e-6, Y)

    with pytest.raises(InputError, match="belongs to another fit"), checkpoint(path):
        fit_ten_times()
    assert path.read_bytes() == kept


def test_every_fit_is_recognised(tmp_path, computed, stop_after, monkeypatch):
    """A change in a row that the first and last fit do not use must be detected."""
    parts, done = [slice(0, 40), slice(20, 60), slice(0, 40)], []

    def fit_parts(rows):
        for part in parts:
            done.append(PNormPush(p=8, alpha=1e-3).fit(rows[part], Y[part]))

    with checkpoint(tmp_path / "c"):
        fit_parts(X)
    stop_after(len(computed) - 2)
    with pytest.raises(Interrupted), checkpoint(tmp_path / "c"):
        fit_parts(X)
    monkeypatch.undo()
    assert len(done) == 3 + 2
    done.clear()
    other = X.copy()
    other[55, 0] += 1e-9
    with pytest.raises(InputError, match="belongs to another fit"), checkpoint(tmp_path / "c"):
        fit_parts(other)
    assert len(done) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_workers_leave_the_checkpoint_alone(tmp_path):
    path = tmp_path / "c"
    with checkpoint(path, every=0):
        before = path.stat().st_size
        worker = os.fork()
        if worker == 0:
            try:
                FITS["newton"]()()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(worker, 0)[1] == 0
        assert path.stat().st_size == before


def test_every_bit_counts(tmp_path, stop_after, monkeypatch):
    path = tmp_path / "c"
    interrupted(path, stop_after, monkeypatch)
    good, whole, refused = path.read_bytes(), fitted(FITS["newton"]()()), 0
    rng = np.random.default_rng(1)
    for place in rng.integers(0, len(good), 60):
        bad = bytearray(good)
        bad[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(bad))
        try:
            with checkpoint(path):
                again = fitted(FITS["newton"]()())
        except InputError:
            refused += 1
            continue
        assert again == whole
    assert 0 < refused < 60  # changed bits in the header raise an error; damaged records are ignored


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
    with pytest.raises(InputError, match="belongs to another fit"), checkpoint(path):
        ranker.fit(other, y)
    assert path.read_bytes() == kept


def test_other_options_are_refused_before_any_work(tmp_path, stop_after, monkeypatch):
    interrupted(tmp_path / "c", stop_after, monkeypatch, about="p=8")
    with pytest.raises(InputError, match="with other options"), checkpoint(tmp_path / "c", about="p=2"):
        raise AssertionError


@pytest.mark.parametrize("content", [b"a", b"apexrank", b"PK\x03\x04", b"apexrank model 1\n", b"\0" * 100])
def test_other_files_are_left_alone(content, tmp_path):
    path = tmp_path / "precious"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a checkpoint"), checkpoint(path):
        raise AssertionError
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"apexrank checkpoint", b"apexrank checkpoint 1\nabout 12"])
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


def test_file_systems_without_locks(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="no file locks on this system")

    def unsupported(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with checkpoint(tmp_path / "c"):
        FITS["newton"]()()


def test_a_disk_that_is_full_from_the_start(tmp_path, monkeypatch):
    class Full(io.FileIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints, "open", lambda path, mode: Full(path, "x+"), raising=False)
    with pytest.raises(InputError, match="cannot be written: no space left"), checkpoint(tmp_path / "c"):
        raise AssertionError
    assert not list(tmp_path.iterdir())


def test_a_forged_record_is_one_line(tmp_path):
    """Its checksum is valid but its content is not."""
    journal = checkpoints.Journal(tmp_path / "c", every=0)
    problem, point = type("Problem", (), {})(), np.zeros(1)
    key = hashlib.blake2b(b"value" + point.tobytes(), digest_size=16).digest()
    for record in (b"\x01" + b"\xff" * 8, b"\x05", b"\x01" + (1 << 40).to_bytes(8, "little")):
        journal._add(key + record)
        journal._add(key + record)
    journal.close(done=False)
    journal = checkpoints.Journal(tmp_path / "c")
    journal._checked = lambda: problem
    for _ in range(3):
        with pytest.raises(InputError, match="is damaged"):
            journal.recall(problem, "value", point, lambda: (np.ones(1),))
    journal.close(done=False)


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
        with pytest.warns(UserWarning, match="is no longer kept: No space left on device"):
            again = FITS["newton"]()()
    assert fitted(again) == whole
    assert full.tries == 1


class FullFile:
    """File on a full disk."""

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


KILLED = """
import os, signal, sys
from apexrank import checkpoints

add, left = checkpoints.Journal._add, int(sys.argv.pop(1))

def killing(self, record):
    global left
    add(self, record)
    self._flush()
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoints.Journal._add = killing
"""
MAIN = "from apexrank.cli import main; main()"


def run(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def write_rows(path: Path):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 4))
    y = rows[:, 0] + rows[:, 1] ** 2 + rng.normal(size=len(rows)) > 2
    pl.DataFrame({f"x{j}": rows[:, j] for j in range(4)}).with_columns(y=y.astype(int)).write_parquet(path)


@pytest.mark.slow
def test_killed_and_started_again_the_command_writes_the_same_model(tmp_path, counted):
    train, kept = tmp_path / "rows.parquet", tmp_path / "fit.checkpoint"
    write_rows(train)
    fit = ["fit", train, "--target", "y", "--model", "rankboost", "--max-iter", 60, "--tol", 0, "-o"]
    assert run(MAIN, *fit, tmp_path / "whole.apex").returncode == 0
    sizes = []
    for _ in range(2):
        killed = run(KILLED + MAIN, 45, *fit, tmp_path / "again.apex", "--checkpoint", kept)
        assert killed.returncode == -signal.SIGKILL
        assert not (tmp_path / "again.apex").exists()
        sizes.append(kept.stat().st_size)
    assert sizes[1] > 1.5 * sizes[0]
    last = run(MAIN, *fit, tmp_path / "again.apex", "--checkpoint", kept)
    assert last.returncode == 0
    assert "after 90 passes over the rows" in last.stderr
    assert (tmp_path / "again.apex").read_bytes() == (tmp_path / "whole.apex").read_bytes()
    assert not kept.exists()
    counted("fits killed and resumed from a checkpoint to the same bytes", len(sizes))


@pytest.mark.slow
def test_the_command_refuses_a_checkpoint_that_is_an_input(tmp_path):
    train = tmp_path / "rows.csv"
    train.write_text("x,y\n1,0\n2,1\n")
    process = run(MAIN, "fit", train, "--target", "y", "--checkpoint", train, "-o", tmp_path / "m.apex")
    assert "is also an input" in process.stderr
    assert process.returncode == 2
    assert train.read_text() == "x,y\n1,0\n2,1\n"
