"""What users do wrong, and what they are told: what, why, what to do, and a status that scripts can trust."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from acidctl.cli.main import main
from acidctl.errors import AcidctlError, exit_statuses

COMMANDS = [
    ("ls",), ("cat",), ("dump",), ("meta",), ("compact", "--major", "--engine", "local"), ("clean", "--yes"),
    ("restore",), ("purge", "--yes"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_a_missing_path(acidctl, command: tuple[str, ...], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
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
    "command", [("cat",), ("dump",), ("compact", "--major", "--engine", "local")], ids=lambda c: c[0]
)
@pytest.mark.parametrize("content", [b"", b"not orc at all", b"ORC" + bytes(500), b"\xff" * 20], ids=len)
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


def test_a_truncated_file(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    bad = crud / "delta_0000001_0000001_0000" / "bucket_00000"
    bad.write_bytes(bad.read_bytes()[:-100])
    found = acidctl("cat", crud)
    assert found.status == 4
    assert found.err.count("\n") <= 4


def test_usage(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("compact", crud).status == 2
    assert acidctl("nonsense").status == 2
    assert acidctl("ls", "--nonsense").status == 2
    assert acidctl("cat", "--columns", "vlaue", crud).status == 3
    assert "value" in acidctl("cat", "--columns", "vlaue", crud).err
    assert acidctl("dump", "--where", "1 +", crud).status == 2


def test_history_has_its_own_status(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "t" / "base_0000010_v0000050").mkdir(parents=True)
    found = acidctl("cat", "--write-ids", "t:12:8:8:", "--valid-txns", "100:9223372036854775807::", tmp_path / "t")
    assert found.status == 10
    assert "not enough history" in found.err


def test_existing_target_is_a_conflict(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    (crud / "base_0000003_v0000009").mkdir()
    before = sorted(path.name for path in crud.iterdir())
    txns = ("--valid-txns", "5:9223372036854775807::", "--visibility-txn", "9")
    found = acidctl("compact", "--major", "--engine", "local", *txns, crud)
    assert found.status == 9
    assert sorted(path.name for path in crud.iterdir()) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed, and only root can become one")
@pytest.mark.parametrize(
    "command", [("compact", "--major", "--engine", "local"), ("clean", "--yes")], ids=lambda c: c[0]
)
def test_a_location_that_may_not_be_written(
    command: tuple[str, ...], acidctl, crud: Path, tmp_path: Path, capfdbinary
) -> None:  # type: ignore[no-untyped-def]
    # Run once as root, so that every module is imported before the child becomes nobody.
    other = tmp_path / "other"
    acidctl("demo", other)
    for table in (crud, other) if command[0] == "clean" else (other,):
        acidctl("compact", "--major", "--engine", "local", table)
    acidctl(*command, other)
    for parent in (crud, *crud.parents):
        if len(parent.parts) > 2:
            parent.chmod(0o755)
    before = sorted(str(path) for path in crud.rglob("*"))
    child = os.fork()
    if not child:
        os.setgid(65534)
        os.setuid(65534)
        try:
            main([*command, str(crud)])
        except SystemExit as stop:
            os._exit(int(stop.code or 0))
        os._exit(99)
    _, status = os.waitpid(child, 0)
    said = capfdbinary.readouterr().err.decode()
    assert os.waitstatus_to_exitcode(status) == 5, said
    assert "permission denied" in said.lower()
    assert sorted(str(path) for path in crud.rglob("*")) == before


def test_a_broken_pipe_is_quiet(crud: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m acidctl dump {crud} {crud} {crud} | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert done.returncode in (0, 141)


def test_debug_shows_the_trace(tmp_path: Path) -> None:
    args = [sys.executable, "-m", "acidctl", "--debug", "ls", str(tmp_path / "missing")]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "Traceback" in done.stderr


def test_exit_statuses_are_distinct() -> None:
    statuses = [status for status, _ in exit_statuses()]
    assert len(statuses) == len(set(statuses)) == len(AcidctlError.__subclasses__()) + 4
