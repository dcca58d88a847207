"""What users do wrong, and what they are told: what, why, what to do, and a status that scripts can trust."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.tables import CLEAN_NOW, make
from support.terminals import Terminals

from acidctl.acid.names import MAXL
from acidctl.base.errors import AcidctlError, ExitStatus, UnexpectedError
from acidctl.writing.once import AlreadyLoaded

COMMANDS = [
    ("ls",), ("cat",), ("dump",), ("meta",), CLEAN_NOW,
    ("compact", "--assume-committed=0s", "--major", "--engine", "local"),
    ("restore",), ("purge", "--yes"), ("validate", "--deep"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_missing_path_is_told_with_status_3(acidctl, command: tuple[str, ...], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl(*command, tmp_path / "missing")
    assert found.status == 3
    assert "missing" in found.err
    assert "Traceback" not in found.err
    assert found.out == ""


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_control_characters_never_reach_the_terminal(  # type: ignore[no-untyped-def]
    acidctl, command: tuple[str, ...], tmp_path: Path
) -> None:
    evil = tmp_path / "evil\x1b[31m\u202etab\tname\n"
    assert acidctl("demo", evil).status == 0
    (evil / "delta_\x1b]0;owned\x07").mkdir()
    (evil / "0000\x1b[2J_0").write_bytes(b"")
    target = evil if command[0] != "meta" else evil / "delta_0000001_0000001_0000" / "bucket_00000"
    found = acidctl(*command, target)
    shown = found.out + found.err
    assert not {"\x1b", "\x07", "\u202e", "\t"} & set(shown)


@pytest.mark.parametrize(
    "command",
    [("cat",), ("dump",), ("compact", "--snapshot", f"db.crud_table:3:{MAXL}::", "--major", "--engine", "local")],
    ids=lambda c: c[0],
)
@pytest.mark.parametrize("content", [b"not orc at all", b"ORC" + bytes(500), b"\xff" * 20], ids=len)
def test_files_that_are_not_orc(  # type: ignore[no-untyped-def]
    acidctl, command: tuple[str, ...], content: bytes, crud: Path
) -> None:
    bad = crud / "delta_0000002_0000002_0000" / "bucket_00000"
    bad.write_bytes(content)
    found = acidctl(*command, crud)
    assert found.status == 4
    assert str(bad) in found.err
    assert "Traceback" not in found.err
    assert not list(crud.glob("_tmp*"))
    assert not list(crud.glob("base*"))


def test_truncated_file_is_told_with_status_4(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    bad = crud / "delta_0000001_0000001_0000" / "bucket_00000"
    bad.write_bytes(bad.read_bytes()[:-100])
    found = acidctl("cat", crud)
    assert found.status == 4
    assert found.err.count("\n") <= 4


def test_usage_errors_have_status_2_and_a_hint(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("compact", crud).status == 2
    assert acidctl("nonsense").status == 2
    assert acidctl("ls", "--nonsense").status == 2
    assert acidctl("cat", "--columns", "vlaue", crud).status == 3
    assert "value" in acidctl("cat", "--columns", "vlaue", crud).err
    assert acidctl("dump", "--where", "1 +", crud).status == 2


def test_history_has_its_own_status(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "t" / "base_0000010_v0000050").mkdir(parents=True)
    found = acidctl("cat", "--snapshot", "db.t:12:8:8:\ntxns=100:9223372036854775807::", tmp_path / "t")
    assert found.status == 10
    assert "not enough history" in found.err


def test_existing_target_is_a_conflict(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    make(crud, "base_0000003_v0000009")
    before = sorted(path.name for path in crud.iterdir())
    txns = ("--snapshot", "txns=5:9223372036854775807::", "--visibility-txn", "9")
    found = acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", *txns, crud)
    assert found.status == 9
    assert sorted(path.name for path in crud.iterdir()) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed, and only root can become one")
@pytest.mark.parametrize(
    "command", [("compact", "--assume-committed=0s", "--major", "--engine", "local"), CLEAN_NOW], ids=lambda c: c[0]
)
def test_a_location_that_may_not_be_written(terminal: Terminals, command: tuple[str, ...], acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    if command[0] == "clean":
        acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", crud)
    for parent in (crud, *crud.parents):
        if len(parent.parts) > 2:
            parent.chmod(0o755)
    before = sorted(str(path) for path in crud.rglob("*"))
    status, said = terminal.run(*command, crud, nobody=True)
    assert status == 5, said
    assert "permission denied" in said.lower()
    assert sorted(str(path) for path in crud.rglob("*")) == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "arguments",
    [
        "ls {0}", "ls -o json {0}", "cat {0}", "cat -o parquet {0}", "meta {0}/delta_0000001_0000001_0000/bucket_00000",
        "--help",
    ],
)  # fmt: skip
def test_standard_output_that_cannot_be_written(crud: Path, arguments: str) -> None:
    command = f"{sys.executable} -m acidctl {arguments.format(crud)}"
    for redirection, status, message in (
        (">/dev/full", 6, "error: cannot write to standard output: no space left on device\n"),
        (">&-", 6, "error: cannot write to standard output: it is closed\n"),
        # The reader has ended before anything is written.
        ("| true; exit ${PIPESTATUS[0]}", 141, ""),
    ):
        # Started late enough for the reader to be gone.
        line = f"(sleep 0.3; exec {command}) {redirection}" if status == 141 else f"{command} {redirection}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        said = "".join(text for text in done.stderr.splitlines(keepends=True) if not text.startswith("note: "))
        assert (done.returncode, said) == (status, message), redirection


def test_a_reader_that_ends_early(crud: Path, tmp_path: Path) -> None:
    for number in range(300):
        make(tmp_path / "w" / f"t{number}", *(f"delta_{n}_{n}" for n in range(1, 5)))
    for arguments in (f"dump {crud} {crud} {crud}", f"ls -r {tmp_path / 'w'}"):
        line = f"{sys.executable} -m acidctl {arguments} | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert done.stdout.count("\n") == 1
        assert done.returncode in (0, 141)
    assert done.returncode == 141


def test_other_standard_streams_that_are_closed(crud: Path) -> None:
    ls = f"{sys.executable} -m acidctl ls {crud}"
    for command, status in (
        (f"{ls} 2>&-", 0), (f"{ls} 2>/dev/full", 0), (f"{ls} <&-", 0), (f"{ls} <&- >&- 2>&-", 6), (f"{ls}x 2>&-", 3),
        (ls.replace(" ls ", " purge ") + " <&-", 0),
    ):  # fmt: skip
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == status, command
        assert "Traceback" not in done.stderr
        assert "bug" not in done.stderr


SLOW = """
import sys, time
from acidctl.compaction import run

def slow(task):
    print("started", flush=True)
    # In short sleeps, as work is: CPython misses a signal that comes just before a system call that blocks.
    for _ in range(600):
        time.sleep(0.1)

run.run_task = slow
from acidctl.cli.main import main
main(sys.argv[1:])
"""


HANGS = """
import sys, time
from acidctl.base.parallel import threads
from acidctl.cli import main as program
def invoked(context):
    with threads(1, "hangs") as pool:
        pool.submit(time.sleep, 600)
        raise KeyboardInterrupt
program.cli.invoke = invoked
sys.argv = ["acidctl", "status"]
program.main()
"""


def test_ctrl_c_does_not_wait_for_a_store_that_hangs() -> None:
    ended = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, "interrupted" in ended.stderr) == (130, True), ended.stderr


HEARS = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
"""Whoever started the tests may have ignored it, as nohup does, and then their children do."""


@pytest.mark.sampled
@pytest.mark.parametrize(
    "numbers",
    [[signal.SIGTERM], [signal.SIGHUP], [signal.SIGINT], [signal.SIGTERM, signal.SIGHUP]],
    ids=lambda numbers: "+".join(number.name for number in numbers),
)
def test_signals_end_a_compaction_cleanly(crud: Path, numbers: list[signal.Signals]) -> None:
    before = sorted(path.name for path in crud.iterdir())
    command = [
        sys.executable,
        "-c",
        HEARS + SLOW,
        "compact",
        "--assume-committed=0s",
        "--major",
        "--engine",
        "local",
        str(crud),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        assert list(crud.glob("_tmp_*"))
        for number in numbers:
            process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "error: interrupted; run it again: it finishes or clears away what was staged"
    assert sorted(path.name for path in crud.iterdir()) == before


def test_a_signal_that_is_ignored_stays_ignored(crud: Path) -> None:
    command = [
        sys.executable,
        "-c",
        SLOW,
        "compact",
        "--assume-committed=0s",
        "--major",
        "--engine",
        "local",
        str(crud),
    ]
    line = f"trap '' HUP; exec {shlex.join(command)}"
    with subprocess.Popen(["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.terminate()
        assert process.wait(30) == 130


def test_the_handlers_and_streams_are_put_back(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)], sys.stdout
    assert acidctl("ls", crud).status == 0
    assert ([signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)], sys.stdout) == before


def test_meta_goes_on_after_a_bad_file(acidctl, crud: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    bad, missing = tmp_path / "bad", tmp_path / "missing"
    bad.write_bytes(b"no ORC")
    good = [crud / f"delta_000000{i}_000000{i}_0000" / "bucket_00000" for i in (1, 2)]
    found = acidctl("meta", "-o", "jsonl", good[0], bad, missing, good[1])
    assert found.status == 4
    assert [line["path"] for line in found.lines()] == [str(path) for path in good]
    assert str(bad) in found.err
    assert str(missing) in found.err
    assert acidctl("meta", missing, good[0]).status == 3
    assert acidctl("meta", *good).status == 0


def test_a_cleaning_run_that_never_began(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    run = crud / ".acidctl-trash" / "20990101T000000Z-deadbeef"
    run.mkdir(parents=True)
    assert "incomplete" in acidctl("restore", "--list", crud).out
    assert acidctl("restore", "--list", "-o", "jsonl", crud).json()["isComplete"] is False
    found = acidctl("restore", crud)
    assert found.status == 3
    assert "interrupted" in found.err
    assert acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", crud).status == 0
    assert acidctl(*CLEAN_NOW, crud).status == 0
    found = acidctl("restore", crud)
    assert found.status == 0
    assert f"passed over {run.name}" in found.err
    assert "4 restored" in found.out
    found = acidctl("purge", "--yes", crud)
    assert found.status == 0
    assert "incomplete" in found.out
    assert not run.parent.exists()
    assert acidctl("restore", "--list", "-o", "json", crud).json() == []


def test_debug_shows_the_trace(tmp_path: Path) -> None:
    args = [sys.executable, "-m", "acidctl", "--debug", "ls", str(tmp_path / "missing")]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "Traceback" in done.stderr


def test_exit_statuses_are_distinct() -> None:
    classes = {AcidctlError, *AcidctlError.__subclasses__()} - {UnexpectedError}  # a bug has the status of the base
    assert len({one.exit_status for one in classes}) == len({one.code for one in classes}) == len(classes) > 10
    assert len(ExitStatus) == len(ExitStatus.__members__)  # none is another name of a second one
    assert AlreadyLoaded in classes
    of_no_error = {"DONE", "FINDINGS", "UNCHECKED", "INTERRUPTED", "BROKEN_PIPE"}
    assert {one.name for one in ExitStatus} - {one.exit_status.name for one in classes} == of_no_error


def test_too_little_memory_is_no_bug(acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no 5 bytes left")

    assert acidctl("demo", tmp_path / "t").status == 0
    monkeypatch.setattr("acidctl.cli.rows.rows_out.write_rows", fail)
    found = acidctl("cat", tmp_path / "t")
    assert found.status == 16
    assert "not enough memory" in found.err
    assert "no 5 bytes left" in found.err
    assert "bug" not in found.err


def test_too_few_threads_are_no_bug(acidctl, crud: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """The limits of a user (ulimit -u), and of a container (pids.max)."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    assert acidctl("compact", "--major", "--engine", "local", "--assume-committed=0s", crud).status == 0
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", fail)
    found = acidctl("clean", "--yes", "--older-than", "0", "--unsafe-retention", crud)
    assert found.status == 8
    assert "pids.max" in found.err
    assert "bug" not in found.err
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", lambda *_: 1 / 0)
    assert "this is a bug" in acidctl("clean", "--yes", "--older-than", "0", "--unsafe-retention", crud).err


def test_no_threads_are_started_for_what_is_not_used(crud: Path) -> None:
    """NumPy's OpenBLAS would start one a core, and interrupts a process that may have no more."""
    script = f"""
import contextlib, os, sys
sys.argv = ["acidctl", "cat", {str(crud)!r}]
from acidctl.cli.main import main
with contextlib.suppress(SystemExit):
    main()
print(os.environ["OPENBLAS_NUM_THREADS"])
"""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1"
    environment["OPENBLAS_NUM_THREADS"] = "7"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "7", "the user's own counts"


def test_ctrl_c_before_the_command_begins(acidctl, crud: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("acidctl.cli.main.ending_signals", interrupted)
    try:
        status = acidctl("ls", crud).status
    except KeyboardInterrupt:  # which would end the tests, too
        status = None
    assert status == 130
