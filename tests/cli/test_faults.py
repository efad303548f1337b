"""The command line under faults: full disks, closed pipes, signals and unsuitable files.

Every fault is reported in one line and leaves no partial file.
"""

import ast
import errno
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from itertools import count, cycle
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from apexrank.cli.app import _reader_has_left, _stopping_cleanly, app
from apexrank.errors import InputError
from apexrank.files import check_writable, replacing, write_bytes
from apexrank.io import delimited, read_table, write, write_table
from tests.cli.warm import FIT, OUTPUTS, WRITE, Ended, WarmCli, write_inputs

SRC = Path(__file__).parents[2] / "src" / "apexrank"
NOBODY = 65534
OLD = b"old content, which is precious\n"
FULL = "error: cannot print the result: no space left on device\n"
PRINTING = [
    "--help",
    "reproduce --list",
    "rank model.apex train.csv",
    "rank model.apex train.csv --json",
    "evaluate model.apex train.csv",
    "export model.apex",
    "aggregate ballots.csv",
    "cluster ballots.csv -k 2",
    "graph rank edges.txt",
    "graph inspect edges.txt",
]

WHOLE = PRINTING[2:4]  # much and little output: at exit the interpreter may report what it could not print


def some_quick(cases, quick=("fit.apex", "rank.csv", "votes.svg", *PRINTING[:3])):
    """Mark all cases as slow except one for each way of writing or printing."""
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]


READING = {
    "table": "rank model.apex {}.csv",
    "parquet": "rank model.apex {}.parquet",
    "letor": "fit {}.txt",
    "training": "fit {}.csv --target fraud",
    "model": "rank {}.apex train.csv",
    "edges": "graph rank {}.txt",
    "ballots": "aggregate {}.csv",
    "preflib": "aggregate {}.soc",
    "run": "evaluate {}.txt --qrels edges.txt",
    "seeds": "graph rank edges.txt --method trustrank --trusted {}.txt",
}


@pytest.fixture(scope="module")
def folder():
    """World-readable folder with the input files of the verbs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        write_inputs(folder)
        yield folder


@pytest.fixture(scope="module")
def warm(folder):
    """Runner of command lines in the folder, which contains a model."""
    if not hasattr(signal, "sigtimedwait"):
        pytest.skip("no sigtimedwait: this system cannot wait for signals so")
    warm = WarmCli(folder)
    assert warm.run(*shlex.split(FIT)).code == 0
    yield warm
    warm.close()


@pytest.fixture
def cli(warm, folder):
    """Runner of one command; files that it leaves in the folder are removed after the test."""
    before = set(folder.iterdir())
    yield lambda command, **faults: warm.run(*shlex.split(command), **faults)
    for path in set(folder.iterdir()) - before:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
            shutil.rmtree(path)
        else:
            path.unlink()


@pytest.fixture
def here(cli, folder, monkeypatch):
    """Runner of one command in this process, which is quicker, for cases without faults."""
    monkeypatch.chdir(folder)

    def run(command):
        result = CliRunner().invoke(app, shlex.split(command))
        return Ended(result.exit_code, result.stdout, result.stderr, 0.0)

    return run


def assert_one_line(ended, code, *words):
    assert (ended.code, ended.stdout) == (code, ""), ended
    lines = [line for line in ended.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, ended.stderr
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]


def other_user():
    """User with fewer rights than root, for whom nothing is read-only."""
    return {"uid": NOBODY} if os.geteuid() == 0 else {}


class TestFullDisk:
    """Writes fail at a limit on the file size, which stands for a full disk because root has no quota."""

    # a scorecard is shorter than the line about it, and the slow demo uses the same writer as the others
    @pytest.mark.parametrize(
        "name", some_quick([name for name in OUTPUTS if name not in ("card.md", "demo/train.csv")])
    )
    def test_one_line_and_the_old_file(self, cli, folder, name):
        output = folder / name
        output.parent.mkdir(exist_ok=True)
        output.write_bytes(OLD)
        before = set(folder.rglob("*"))
        ended = cli(OUTPUTS[name], fsize=120)
        assert_one_line(ended, 2, f"cannot write '{name}': file too large: raise the limit")
        assert output.read_bytes() == OLD
        assert set(folder.rglob("*")) == before

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_what_polars_says(self, tmp_path, monkeypatch, suffix):
        writer = write._WRITERS[suffix]
        monkeypatch.setitem(write._WRITERS, suffix, lambda frame, _: writer(frame, Path("/dev/full")))
        path = tmp_path / f"a{suffix}"
        path.write_bytes(OLD)
        with pytest.raises(InputError) as error:
            write_table(pl.DataFrame({"a": range(100_000)}), path)
        advice = "no space left on device: free some space or choose another folder"
        assert str(error.value) == f"cannot write '{path}': {advice}"
        assert (path.read_bytes(), list(tmp_path.iterdir())) == (OLD, [path])

    @pytest.mark.parametrize(
        ("number", "words"),
        [
            (errno.ENOSPC, "no space left on device: free some space or choose another folder"),
            (errno.EDQUOT, "disk quota exceeded: free some space or choose another folder"),
            (errno.EROFS, "read-only file system: choose another folder"),
            (errno.EIO, "input/output error"),
        ],
    )
    @pytest.mark.parametrize("step", ["write", "fsync", "replace"])
    def test_what_the_system_says(self, tmp_path, monkeypatch, number, words, step):
        def fail(*_):
            raise OSError(number, os.strerror(number))

        path = tmp_path / "a.bin"
        path.write_bytes(OLD)
        owner = Path if step == "write" else os
        monkeypatch.setattr(owner, "write_bytes" if step == "write" else step, fail)
        with pytest.raises(InputError) as error:
            write_bytes(path, b"new")
        monkeypatch.undo()
        assert str(error.value) == f"cannot write '{path}': {words}"
        assert (path.read_bytes(), list(tmp_path.iterdir())) == (OLD, [path])

    def test_an_error_that_is_not_the_systems_stays_what_it_is(self, tmp_path):
        with pytest.raises(ZeroDivisionError), replacing(tmp_path / "a.bin"):
            raise ZeroDivisionError
        assert not list(tmp_path.iterdir())

    def test_another_file_that_fails_inside_the_block_is_not_blamed_on_the_target(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="gone"), replacing(tmp_path / "a.bin"):
            (tmp_path / "gone").read_bytes()
        with pytest.raises(InputError, match=r"a\.bin"), replacing(tmp_path / "a.bin") as temporary:
            temporary.read_bytes()
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
    def test_systems_that_cannot_flush(self, tmp_path, monkeypatch, number):
        def fail(_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fail)
        write_bytes(tmp_path / "a.bin", b"new")
        assert (tmp_path / "a.bin").read_bytes() == b"new"


def test_nobody_else_reads_a_private_file_while_it_is_written(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(OLD)
    path.chmod(0o640)
    with replacing(path) as temporary:
        temporary.write_bytes(b"new")
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_bytes_reach_the_disk_before_the_name(tmp_path, monkeypatch):
    """A power failure cannot be simulated here, so the order of the system calls is checked."""
    calls = []
    fsync, replace = os.fsync, os.replace

    def flush(file):
        calls.append("flush folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "flush file")
        fsync(file)

    def rename(old, new):
        calls.append("rename")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "replace", rename)
    write_bytes(tmp_path / "a.bin", b"new")
    assert calls == ["flush file", "rename", "flush folder"]


class TestStandardStreams:
    @pytest.mark.parametrize("command", some_quick(PRINTING))
    def test_full_stdout(self, cli, command):
        assert_one_line(cli(command, stdout="/dev/full", whole=command in WHOLE), 2, FULL.strip())

    @pytest.mark.parametrize("command", some_quick(PRINTING))
    def test_reader_that_has_left(self, cli, command):
        ended = cli(command, stdout="left", whole=command in WHOLE)
        assert ended.code == 141
        assert all(line.startswith("note: ") for line in ended.stderr.splitlines())

    def test_files_are_written_though_the_reader_has_left(self, cli, folder):
        assert cli(OUTPUTS["roc.png"], stdout="left").code == 141
        assert (folder / "roc.png").read_bytes().startswith(b"\x89PNG")

    def test_streams_of_the_caller_stay_as_they_were(self, monkeypatch):
        """Commands called from a program: errors, stderr and file descriptors."""
        with open(os.devnull, "w", errors="strict") as stdout:
            monkeypatch.setattr(sys, "stdout", stdout)
            with pytest.raises(SystemExit):
                app(["--version"])
            assert stdout.errors == "strict"
            with open(os.devnull) as spare:
                free = spare.fileno()
            error = os.fstat(2)
            assert _reader_has_left() == 141
            assert os.fstat(2) == error
            with open(os.devnull) as spare:
                assert spare.fileno() == free

    def test_an_encoding_that_the_user_chose_is_kept(self):
        """Latin-1 has no em dash, which becomes a question mark."""
        found = subprocess.run(
            [sys.executable, "-c", "from apexrank.cli.app import app; app()", "reproduce", "--list"],
            env=os.environ | {"PYTHONIOENCODING": "latin-1:replace"},
            capture_output=True,
            check=False,
        )
        assert (found.returncode, found.stderr) == (0, b"")
        assert b"?" in found.stdout

    @pytest.mark.slow
    @pytest.mark.parametrize("stderr", ["/dev/full", "left", None])
    def test_lost_stderr_changes_no_exit_code(self, cli, stderr):
        assert cli("rank model.apex gone.csv", stderr=stderr, whole=True).code == 2
        # a note that cannot be shown does not stop the work
        shown = cli("aggregate ballots.csv --id a", stderr=stderr, whole=True)
        assert (shown.code, shown.stdout[:10]) == (0, "rank,item,"), shown

    @pytest.mark.parametrize("closed", [["stdin"], ["stdout"], ["stderr"], ["stdin", "stdout", "stderr"]])
    @pytest.mark.slow
    def test_closed_streams(self, cli, folder, closed):
        """A file that gets the descriptor of a closed stream must not receive printed output."""
        assert cli(OUTPUTS["rank.csv"]).code == 0
        wanted = (folder / "rank.csv").read_bytes()
        (folder / "rank.csv").unlink()
        ended = cli(OUTPUTS["rank.csv"], whole=True, **dict.fromkeys(closed))
        assert (ended.code, ended.stderr) == (0, "")
        assert (folder / "rank.csv").read_bytes() == wanted

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("redirection", "code", "stderr"),
        [("> /dev/full", 2, FULL), ("| true", 141, ""), (">&-", 0, ""), ("2>&-", 0, ""), ("<&-", 0, "")],
    )
    def test_as_a_shell_does_it(self, redirection, code, stderr):
        apexrank = f"'{sys.executable}' -c 'from apexrank.cli import main; main()' --version"
        # the sleep lets the reader leave first
        script = f"(sleep 0.2; {apexrank}; echo $? >&3) {redirection}"
        found = subprocess.run(
            ["bash", "-c", f"exec 3>&1; {script}"], capture_output=True, text=True, check=False
        )
        assert found.stdout.splitlines()[-1] == str(code)
        assert found.stderr == stderr


class TestOutputsThatCannotBe:
    """They raise an error before any work: the inputs of these commands do not even exist."""

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("folder.csv", "it is a folder; give a file name"),
            ("pipe.csv", "it is not a regular file"),
            ("gone/a.csv", "there is no folder"),
            ("train.csv/a.csv", "there is no folder"),
            ("loop.csv", "too many levels of symbolic links: remove the link"),
            ("dangling.csv", "there is no folder"),
            (f"{'x' * 300}.csv", "file name too long: choose a shorter one"),
        ],
    )
    def test_refused_in_one_line(self, here, folder, name, words):
        (folder / "folder.csv").mkdir()
        os.mkfifo(folder / "pipe.csv")
        (folder / "loop.csv").symlink_to("loop.csv")
        (folder / "dangling.csv").symlink_to("gone/a.csv")
        assert_one_line(here(f"rank gone.apex gone.csv -o {name}"), 2, f"cannot write '{name}'", words)

    def test_devices_and_no_name(self, here):
        assert_one_line(here("fit gone.csv --target a -o /dev/null"), 2, "it is not a regular file")
        assert_one_line(here("fit gone.csv --target a -o ''"), 2, "it is a folder")
        with pytest.raises(InputError, match=r"cannot write 'a\\x00b':.* embedded null"):
            check_writable("a\0b")

    @pytest.mark.parametrize(
        "command",
        [
            "fit gone.csv --target a -o locked/a.apex",
            "rank gone.apex gone.csv -o locked/a.csv",
            "export gone.apex -o locked/a.onnx",
            "evaluate gone.apex gone.csv --roc locked/a.png",
            "compare gone.csv --target a --report locked/a.html",
            "aggregate gone.csv --report locked/a.html",
            "cluster gone.csv -k 2 -o locked/a.csv",
            "graph rank gone.txt -o locked/a.csv",
            "graph compare gone.txt --report locked/a.html",
            "graph consensus gone.txt lost.txt -o locked/a.csv",
        ],
    )
    def test_read_only_folder(self, cli, folder, command):
        (folder / "locked").mkdir(mode=0o555)
        ended = cli(command, **other_user())
        assert_one_line(ended, 2, "cannot write 'locked/a.", "no permission to write in")

    @pytest.mark.parametrize(
        "command", ["demo --out locked/new", "demo --out locked", "reproduce figure1 --out locked/new"]
    )
    def test_read_only_folder_of_several_files(self, cli, folder, command):
        (folder / "locked").mkdir(mode=0o555)
        assert_one_line(cli(command, **other_user()), 2, "locked", "ermission")

    def test_read_only_file_is_not_replaced(self, cli, folder):
        """A read-only file is not replaced, as with a shell's ``>`` and in editors."""
        shared = folder / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        (shared / "a.csv").write_bytes(OLD)
        (shared / "a.csv").chmod(0o444)
        ended = cli("rank gone.apex gone.csv -o shared/a.csv", **other_user())
        assert_one_line(ended, 2, "it is read-only; make it writable or choose another name")
        assert (shared / "a.csv").read_bytes() == OLD

    def test_a_link_to_a_file_that_is_still_missing_stays_a_link(self, cli, folder):
        (folder / "link.csv").symlink_to("later.csv")
        assert cli("rank model.apex train.csv -o link.csv").code == 0
        assert (folder / "link.csv").is_symlink()
        assert (folder / "later.csv").is_file()

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_names_as_long_as_names_can_be(self, cli, folder, suffix):
        name = f"{'x' * (254 - len(suffix))}.{suffix}"
        assert cli(f"rank model.apex train.csv -o {name}").code == 0
        assert (folder / name).is_file()

    @pytest.mark.parametrize("suffix", ["csv", "parquet", "apex"])
    def test_names_that_are_no_text(self, cli, folder, suffix):
        name = os.fsdecode(b"caf\xe9." + suffix.encode())
        command = (
            "fit train.csv --target fraud --drop case" if suffix == "apex" else "rank model.apex train.csv"
        )
        ended = cli(f"{command} -o {name}", whole=True)
        assert (ended.code, ended.stderr) == (0, "")
        assert f"written: {name}" in ended.stdout
        assert (folder / name).is_file()


class TestSignals:
    SIGNALS = (
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "stopped by SIGTERM"),
        (signal.SIGHUP, 129, "stopped by SIGHUP"),
    )

    @pytest.mark.parametrize(("number", "code", "words"), SIGNALS, ids=lambda value: str(value))
    @pytest.mark.parametrize(
        "where", ["apexrank/io/read.py", "apexrank/solvers/", "apexrank/io/model_file.py"]
    )
    def test_during_fit(self, cli, folder, where, number, code, words):
        (folder / "fit.apex").write_bytes(OLD)
        before = set(folder.iterdir())
        ended = cli(OUTPUTS["fit.apex"], at={"file": where, "signal": number})
        assert_one_line(ended, code, f"error: {words}")
        assert (folder / "fit.apex").read_bytes() == OLD
        assert set(folder.iterdir()) == before

    @pytest.mark.slow
    def test_on_every_line_of_a_write(self, cli, folder):
        contents = set()
        for line, (number, code, words) in zip(count(1), cycle(self.SIGNALS), strict=False):
            (folder / "model.sql").write_bytes(OLD)
            before = set(folder.iterdir())
            at = {"signal": number, "functions": WRITE, "line": line}
            ended = cli(OUTPUTS["model.sql"], at=at)
            contents.add((folder / "model.sql").read_bytes())
            assert set(folder.iterdir()) == before, f"a temporary file is left by line {line}"
            if ended.code == 0:
                break
            assert_one_line(ended, code, f"error: {words}")
        assert line > 10
        assert len(contents) == 2
        assert OLD in contents

    def test_one_that_is_ignored_stays_so(self):
        """Under nohup a closed terminal must not stop the work; afterwards the caller's handlers are restored."""
        handlers = []
        earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            with _stopping_cleanly():
                handlers += [signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM)]
            handlers += [signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM)]
        finally:
            signal.signal(signal.SIGHUP, earlier[0])
            signal.signal(signal.SIGTERM, earlier[1])
        assert callable(handlers.pop(1))
        assert handlers == [signal.SIG_IGN, signal.SIG_IGN, signal.SIG_DFL]


def test_unknown_experiments_are_told_the_nearest():
    result = CliRunner().invoke(app, ["reproduce", "figur1"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: unknown experiment 'figur1': did you mean 'figure1'?")
    assert CliRunner().invoke(app, ["reproduce", "zzz"]).stderr.endswith("see apexrank reproduce --list\n")


def name_in(command, word):
    return next(part for part in command.split() if "{}" in part).format(word)


class TestInputs:
    @pytest.mark.parametrize("command", READING.values(), ids=READING)
    def test_not_a_file(self, here, folder, command):
        for kind in ("folder", "gone", "loop"):
            name = name_in(command, kind)
            if kind == "folder":
                (folder / name).mkdir()
            elif kind == "loop":
                (folder / name).symlink_to(name)
            assert_one_line(here(command.format(kind)), 2, name)

    @pytest.mark.parametrize("kind", ["table", "model", "edges", "seeds"])
    def test_no_permission(self, cli, folder, kind):
        locked = folder / name_in(READING[kind], "locked")
        locked.write_text("secret")
        locked.chmod(0)
        assert_one_line(cli(READING[kind].format("locked"), **other_user()), 2, f"'{locked.name}'", "read")

    @pytest.mark.parametrize("command", ["rank model.apex pipe.csv", "fit pipe.csv --target a"])
    def test_a_pipe_is_not_read_half(self, cli, folder, command):
        os.mkfifo(folder / "pipe.csv")  # nobody writes to it, so a reader would wait forever
        ended = cli(command, kill={"after": 60.0})
        assert_one_line(ended, 2, "'pipe.csv'", "read twice; save the stream to a file first")

    def test_devices(self, cli):
        ended = cli("rank /dev/zero train.csv", kill={"after": 60.0})
        assert_one_line(ended, 2, "'/dev/zero' is a device or a pipe: give a model file")
        ended = cli("graph rank /dev/zero", kill={"after": 60.0})
        assert_one_line(ended, 2, "'/dev/zero' is a device: give a file, a pipe or -")
        assert_one_line(cli("rank model.apex /dev/stdin"), 2, "cannot read '/dev/stdin'")

    @pytest.mark.parametrize("change", ["removed", "emptied", "cut short", "replaced"])
    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_a_table_that_changes_while_it_is_read(self, folder, tmp_path, monkeypatch, suffix, change):
        """Changed after its inspection and before its rows are read: a value, or a one-line error."""
        path = tmp_path / f"a.{suffix}"
        module, name = (delimited, "opened") if suffix == "csv" else (pl, "read_parquet")
        reader = getattr(module, name)
        frame = pl.read_csv(folder / "train.csv")
        getattr(frame, f"write_{suffix}")(path)
        whole = path.read_bytes()

        def late(*args, **options):
            if change == "removed":
                path.unlink()
            else:
                new = {"emptied": b"", "cut short": whole[: len(whole) // 2], "replaced": b"a;b\n1;2;3\n"}
                path.write_bytes(new[change])
            return reader(*args, **options)

        monkeypatch.setattr(module, name, late)
        try:
            rows, message = len(read_table(path)), f"{path}"
        except InputError as error:
            rows, message = 1, str(error)
        assert 0 < rows < len(frame)
        assert str(path) in message
        assert "\n" not in message

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_a_name_that_is_no_text(self, here, folder, suffix):
        name = os.fsdecode(b"caf\xe9." + suffix.encode())
        (folder / name).write_text("a,b\n1,2\n")
        assert_one_line(here(f"rank model.apex {name}"), 2, "its name is not UTF-8 text; rename it")


# Places that may write without files.py, and the reasons.
DIRECT = {
    "files.py": "the one place",
    "io/write.py": "polars, into the temporary file of files.py",
    "io/model_file.py": "zipfile, into the temporary file of files.py",
    "cli/output.py": "matplotlib, into memory",
    "graph/shards.py": "into the temporary folder of files.py",
    "graph/pack.py": "scratch files in the temporary folder of files.py",
    "graph/files.py": "standard input, into the same scratch folder",
}
WRITERS = {
    "write_text",
    "write_bytes",
    "savefig",
    "to_csv",
    "tofile",
    "savez",
    "save",
    "dump",
    "rename",
    "replace",
}
WRITERS |= {
    "write_parquet",
    "write_json",
    "write_ndjson",
    "write_ipc",
    "write_excel",
    "write_database",
    "writestr",
}


def writes(call: ast.Call) -> bool:
    """Whether a call looks like one that writes a file."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name == "open":
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        modes = [
            node.value for argument in given for node in ast.walk(argument) if isinstance(node, ast.Constant)
        ]
        return any(isinstance(m, str) and set(m) <= set("rwxabt+") and set(m) & set("wxa+") for m in modes)
    if not isinstance(function, ast.Attribute):
        return False
    if name in ("rename", "replace", "save", "dump"):  # of frames and texts, too
        return getattr(function.value, "id", "") in (
            "os",
            "shutil",
            "np",
            "json",
            "pickle",
            "joblib",
            "torch",
        )
    if name == "write_csv" or name.startswith("sink_"):
        return bool(call.args)  # without a path it gives text
    return name in WRITERS


def direct_writers(text: str) -> list[int]:
    return [node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and writes(node)]


class TestEveryWriteIsAtomic:
    def test_nothing_writes_past_atomic(self):
        found = {
            str(path.relative_to(SRC)): lines
            for path in SRC.rglob("*.py")
            if (lines := direct_writers(path.read_text()))
        }
        assert {name: lines for name, lines in found.items() if name not in DIRECT} == {}
        assert set(DIRECT) <= set(found), "an exception that is not needed any more"

    @pytest.mark.parametrize(
        "line",
        [
            "open(path, 'w')",
            "path.open('r+b')",
            "open(path, mode='xb')",
            "path.write_text('a')",
            "frame.write_csv(path)",
            "frame.lazy().sink_parquet(path)",
            "figure.savefig(path)",
            "np.save(path, x)",
            "os.replace(a, b)",
        ],
    )
    def test_the_search_finds(self, line):
        assert direct_writers(line) == [1]

    @pytest.mark.parametrize(
        "line", ["open(path)", "path.open('rb')", "frame.write_csv()", "text.replace('a', 'b')"]
    )
    def test_the_search_leaves(self, line):
        assert direct_writers(line) == []
