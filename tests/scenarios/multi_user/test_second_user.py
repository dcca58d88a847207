"""The owner of a table is hostile, and root works on it: nothing outside of it is read, moved, changed or removed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import ids, write_delta
from support.tables import CLEAN_NOW

Acidctl = Callable[..., Any]
OTHER = 65534
COMPACT = ("compact", "--major", "--assume-committed=0s", "--engine", "local")
CLEAN = (*CLEAN_NOW, "--assume-committed=0s")
RUN = "20261121T222400.000Z-0123abcd"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can play two users")


def own(*paths: Path) -> None:
    """Give everything there to the other user."""
    for path in paths:
        for one in (path, *path.rglob("*")):
            os.lchown(one, OTHER, OTHER)


def look(path: Path) -> dict[str, object]:
    return {
        str(one): (one.stat().st_mode, one.read_bytes() if one.is_file() else None) for one in sorted(path.rglob("*"))
    }


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Somebody else's table, and a file with a secret."""
    victim = tmp_path / "victim"
    victim.mkdir()
    for write_id in (1, 3):
        write_delta(victim, write_id, ids(4710 + write_id))
    (victim / "base_0000007").mkdir()
    (victim / "base_0000007" / "secret").write_bytes(b"secret")
    victim.chmod(0o700)
    return victim


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of the other user."""
    table = tmp_path / "t"
    table.mkdir()
    for write_id in (1, 2):
        write_delta(table, write_id, ids(write_id))
    own(table)
    return table


@pytest.fixture(autouse=True)
def _nothing_happens(victim: Path) -> Any:
    before = look(victim)
    yield
    assert look(victim) == before


def manifest(*names: str) -> str:
    return json.dumps({"version": 1, "names": names, "bytes": 1, "content": ""})


def repair_manifest(*steps: dict[str, object]) -> str:
    return json.dumps({"version": 1, "kinds": ["nested"], "paths": ["x"], "bytes": 1, "steps": steps})


EVERY_CHANGE = [
    COMPACT, CLEAN, ("clean", "--yes", "--leftovers", "--assume-committed=1h"),
    ("purge", "--yes"), ("restore", "--yes"),
    ("repair", "--only", "key-index", "--yes"), ("repair", "--only", "nested", "--yes", "--offline", "--force"),
    ("repair", "--only", "version-file", "--yes"), ("repair", "--only", "flush-length", "--yes"),
]  # fmt: skip


def test_a_table_of_another_user_works(acidctl: Acidctl, table: Path) -> None:
    """Nothing is wrong with it: what root makes in it is its owner's afterwards."""
    assert acidctl(*COMPACT, table).status == 0
    assert acidctl(*CLEAN, table).status == 0
    (base,) = table.glob("base_*")
    assert {path.stat().st_uid for path in (base, *base.iterdir())} == {OTHER}
    assert acidctl("restore", "--yes", table).status == 0
    assert acidctl(*CLEAN, table).status == 0
    assert acidctl("purge", "--yes", table).status == 0
    assert not (table / ".acidctl-trash").exists()


@pytest.mark.parametrize("name", [".acidctl-trash", ".acidctl-backup"])
@pytest.mark.parametrize("line", EVERY_CHANGE, ids=lambda line: "-".join(line[:2]))
def test_our_folder_is_a_link(acidctl: Acidctl, table: Path, victim: Path, name: str, line: tuple[str, ...]) -> None:
    (table / name).symlink_to(victim)
    os.lchown(table / name, OTHER, OTHER)
    before = look(table)
    assert acidctl(*line, table).status != 1
    assert (table / name).is_symlink()
    assert look(table) == before


@pytest.mark.parametrize("line", EVERY_CHANGE, ids=lambda line: "-".join(line[:2]))
def test_a_run_in_our_folder_is_a_link(acidctl: Acidctl, table: Path, victim: Path, line: tuple[str, ...]) -> None:
    for name in (".acidctl-trash", ".acidctl-backup"):
        (table / name).mkdir()
        (table / name / RUN).symlink_to(victim)
        os.lchown(table / name / RUN, OTHER, OTHER)
    assert acidctl(*line, table).status != 1
    for name in (".acidctl-trash", ".acidctl-backup"):
        assert (table / name / RUN).is_symlink()


@pytest.mark.parametrize("of_root", [False, True], ids=["planted", "in a folder of root's"])
def test_planted_trash_is_neither_restored_nor_purged(acidctl: Acidctl, table: Path, of_root: bool) -> None:
    """It is told, and neither restored nor purged."""
    run = table / ".acidctl-trash" / RUN
    (run / "base_0000009").mkdir(parents=True)
    (run / "base_0000009" / "bucket_00000").write_bytes(b"planted")
    (run / "manifest.json").write_text(manifest("base_0000009"))
    own(run if of_root else table / ".acidctl-trash")
    before = look(table)
    for line in (("restore",), ("purge", "--yes"), ("restore", "--list")):
        done = acidctl(*line, table)
        assert f"it belongs to the user {OTHER}" in done.err + done.out, line
        assert look(table) == before
    if not of_root:
        assert acidctl(*COMPACT, table).status == 0
        done = acidctl(*CLEAN, table)
        assert done.status == 7, done.err
        assert "will not use" in done.err
        assert (table / "delta_0000001_0000001_0000").exists()


@pytest.mark.parametrize("folder", [".acidctl-trash", ".acidctl-backup"])
def test_a_manifest_of_another_user_in_a_run_of_roots(acidctl: Acidctl, table: Path, folder: str) -> None:
    """Whatever let him write there."""
    run = table / folder / RUN
    (run / "base_0000009").mkdir(parents=True)
    step = {"act": "move", "source": "delta_0000001_0000001_0000", "target": f"{folder}/{RUN}/old/x"}
    text = manifest("base_0000009") if folder == ".acidctl-trash" else repair_manifest(step)
    (run / "manifest.json").write_text(text)
    os.chown(run / "manifest.json", OTHER, OTHER)
    before = look(table)
    for line in EVERY_CHANGE[3:5] if folder == ".acidctl-trash" else EVERY_CHANGE[5:]:
        done = acidctl(*line, table)
        assert f"it belongs to the user {OTHER}" in done.err, (line, done.err)
        assert look(table) == before


PLANTED = {
    "a move out of the table": {"act": "move", "source": "../victim/base_0000007", "target": "stolen"},
    "an absolute path": {"act": "move", "source": "/etc", "target": "stolen"},
    "a move between two entries": {"act": "move", "source": "delta_0000001_0000001_0000", "target": "gone"},
    "another folder of ours": {
        "act": "move",
        "source": f".acidctl-backup/{RUN}/old/x",
        "target": ".acidctl-trash/x",
    },
    "a replacement from elsewhere": {
        "act": "replace",
        "source": "delta_0000001_0000001_0000/bucket_00000",
        "target": "delta_0000002_0000002_0000/bucket_00000",
        "kept": f".acidctl-backup/{RUN}/old/x",
        "size": 0,
        "modified": 0,
    },
}


@pytest.mark.parametrize("step", PLANTED.values(), ids=PLANTED)
@pytest.mark.parametrize("of_root", [False, True], ids=["planted", "with a manifest of root's"])
def test_planted_backup_is_not_undone(acidctl: Acidctl, table: Path, step: dict[str, object], of_root: bool) -> None:
    run = table / ".acidctl-backup" / RUN
    (run / "old").mkdir(parents=True)
    (run / "old" / "x").write_bytes(b"x")
    (run / "manifest.json").write_text(repair_manifest(step))
    if not of_root:
        own(table / ".acidctl-backup")
    before = look(table)
    for line in EVERY_CHANGE[-6:]:
        done = acidctl(*line, table)
        assert done.status not in (0, 1), (line, done.out)
        assert look(table) == before


@pytest.mark.parametrize(
    "note",
    [
        {"names": ["../../victim/base_0000007"]},
        {"copies": [["base_0000009/bucket_00000", "../../victim/base_0000007/secret"]]},
        {"copies": [["../../victim/base_0000007/secret", "base_0000009/bucket_00000"]]},
        {"names": ["base_0000009"]},
    ],
    ids=lambda note: next(iter(note)),
)
def test_planted_publication_is_not_finished(acidctl: Acidctl, table: Path, note: dict[str, object]) -> None:
    staging = table / "_tmp_0123456789ab"
    (staging / "delete_delta_0000001_0000001_0000").mkdir(parents=True)
    (staging / "_publish.json").write_text(json.dumps(note))
    (staging / "_owner.json").write_text("{}")
    own(staging)
    before = look(table)
    done = acidctl(*COMPACT, table)
    assert done.status in (0, 7), done.err
    assert {path: what for path, what in look(table).items() if path in before} == before


@pytest.mark.parametrize(
    "line", [COMPACT, ("compact", "--minor", *COMPACT[2:]), CLEAN], ids=["major", "minor", "clean"]
)
@pytest.mark.parametrize("place", ["file", "directory", "original"])
def test_data_that_is_a_link(acidctl: Acidctl, table: Path, victim: Path, line: tuple[str, ...], place: str) -> None:
    theirs = victim / "delta_0000001_0000001_0000"
    link = table / {"file": "delta_0000002_0000002_0000/bucket_00001", "directory": "delta_0000003_0000003_0000"}.get(
        place, "000000_0"
    )
    link.symlink_to(theirs if place == "directory" else theirs / "bucket_00000")
    os.lchown(link, OTHER, OTHER)
    done = acidctl(*line, table)
    assert done.status == 7, done.err
    assert "will not follow the symbolic link" in done.err
    assert not list(table.glob("base_*"))


def test_a_partition_that_is_a_link(acidctl: Acidctl, tmp_path: Path, victim: Path) -> None:
    """The others are compacted, and it is told."""
    top = tmp_path / "parts"
    (top / "p=1").mkdir(parents=True)
    for write_id in (1, 2):
        write_delta(top / "p=1", write_id, ids(write_id))
    own(top)
    (top / "p=2").symlink_to(victim)
    os.lchown(top / "p=2", OTHER, OTHER)
    done = acidctl(*COMPACT, top)
    assert list((top / "p=1").glob("base_*"))
    assert "p=2" in done.err
    assert done.status == 7


def test_the_table_itself_is_a_link(acidctl: Acidctl, tmp_path: Path, victim: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(victim)
    os.lchown(link, OTHER, OTHER)
    for line in EVERY_CHANGE:
        done = acidctl(*line, link)
        assert done.status == 7, (line, done.err)
        assert "will not follow the symbolic link" in done.err


def test_endless_manifest_is_not_read(acidctl: Acidctl, table: Path) -> None:
    run = table / ".acidctl-trash" / RUN
    run.mkdir(parents=True)
    with (run / "manifest.json").open("wb") as file:
        file.truncate(1 << 40)
    done = acidctl("purge", "--yes", table)
    assert "not a manifest of acidctl" in done.err
    assert (run / "manifest.json").exists()


@pytest.mark.sampled(11)
@pytest.mark.parametrize("line", [*EVERY_CHANGE, ("ls",), ("cat",), ("validate",), ("validate", "--deep"), ("why",)])
@pytest.mark.parametrize("name", ["_metadata_acid", "bucket_00000_flush_length", "_orc_acid_version"])
def test_endless_side_file_is_not_read(acidctl: Acidctl, table: Path, line: tuple[str, ...], name: str) -> None:
    """A terabyte that costs its owner nothing; each command says so, or needs none of it."""
    directory = table / ("base_0000002" if name == "_metadata_acid" else "delta_0000003_0000004")
    directory.mkdir()
    (directory / "bucket_00000").write_bytes((table / "delta_0000002_0000002_0000" / "bucket_00000").read_bytes())
    with (directory / name).open("wb") as file:
        file.truncate(1 << 40)
    own(directory)
    done = acidctl(*line, table)
    assert done.status in (0, 3, 4, 7, 14, 15), done.err
    assert (directory / name).stat().st_size == 1 << 40
    if line == COMPACT and name == "_metadata_acid":
        assert "it is a bomb, or larger than any file of its name is" in done.err


@pytest.mark.parametrize("option", ["--metrics-file", "--plan"])
def test_a_link_on_the_way_to_what_is_written(acidctl: Acidctl, table: Path, tmp_path: Path, option: str) -> None:
    """In a directory that everybody may write to somebody made the next one first."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "acidctl").symlink_to(tmp_path / "etc")
    os.lchown(tmp_path / "tmp" / "acidctl", OTHER, OTHER)
    done = acidctl(*CLEAN, option, tmp_path / "tmp" / "acidctl" / "file.json", table)
    assert done.status == 7, done.err
    assert "will not write to" in done.err
    assert not list((tmp_path / "etc").iterdir())
    os.lchown(tmp_path / "tmp" / "acidctl", 0, 0)
    assert acidctl(*CLEAN, option, tmp_path / "tmp" / "acidctl" / "file.json", table).status == 0
    assert list((tmp_path / "etc").iterdir())


def test_a_pipe_that_somebody_put_for_a_plan(acidctl: Acidctl, tmp_path: Path) -> None:
    """Whoever opens it waits for a writer, for ever."""
    os.mkfifo(tmp_path / "plan.json")
    os.chown(tmp_path / "plan.json", OTHER, OTHER)
    done = acidctl("clean", "--yes", "--apply", tmp_path / "plan.json")
    assert (done.status, "a pipe of another user" in done.err) == (7, True)


def test_endless_plan_is_refused(acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acidctl.cleaning.saved._MOST_BYTES", 1 << 20)
    with (tmp_path / "plan.json").open("wb") as file:
        file.truncate(1 << 40)
    done = acidctl("clean", "--yes", "--apply", tmp_path / "plan.json")
    assert done.status == 4
    assert "a bomb, or larger than the limit" in done.err


class TestPlans:
    """What is committed is not taken from a file that somebody else may have written."""

    @pytest.fixture
    def plan(self, acidctl: Acidctl, table: Path, tmp_path: Path) -> Path:
        """To remove a delta whose write id was aborted, as a list says."""
        plan = tmp_path / "plan.json"
        done = acidctl(*CLEAN_NOW, "--snapshot", "t:2:9223372036854775807::2", "--plan", plan, table)
        assert done.status == 0, done.err
        assert "delta_0000002" in plan.read_text()
        return plan

    @pytest.mark.parametrize("how", ["another owner", "others may write"])
    def test_plan_that_others_may_write_is_refused(self, acidctl: Acidctl, table: Path, plan: Path, how: str) -> None:
        if how == "another owner":
            os.chown(plan, OTHER, OTHER)
        else:
            plan.chmod(0o664)
        before = look(table)
        for more in ((), ("--dry-run",)):
            done = acidctl("clean", "--yes", "--unsafe-retention", *more, "--apply", plan)
            assert done.status == 7, done.err
            assert "which transactions are committed" in done.err
        assert look(table) == before

    def test_plan_of_others_is_applied_with_lists_of_today(self, acidctl: Acidctl, table: Path, plan: Path) -> None:
        """The lists of today say that it is committed by now."""
        os.chown(plan, OTHER, OTHER)
        apply = ("clean", "--yes", "--unsafe-retention", "--apply", plan)
        done = acidctl(*apply, "--snapshot", "t:2:9223372036854775807::")
        assert done.status == 9, done.err
        assert (table / "delta_0000002_0000002_0000").exists()
        done = acidctl(*apply, "--snapshot", "other:2:9223372036854775807::2")
        assert done.status == 7, done.err
        done = acidctl(*apply, "--snapshot", "t:2:9223372036854775807::2")
        assert done.status == 0, done.err
        assert not (table / "delta_0000002_0000002_0000").exists()

    def test_plan_of_our_own_is_applied(self, acidctl: Acidctl, table: Path, plan: Path) -> None:
        done = acidctl("clean", "--yes", "--unsafe-retention", "--apply", plan)
        assert done.status == 0, done.err
        assert "what is committed is taken from" in done.err

    def test_plan_is_refused_where_the_table_is_none_any_more(self, acidctl: Acidctl, table: Path, plan: Path) -> None:
        """A plan is for a table, whatever its location was replaced by."""
        (table / "delta_0000001_0000001_0000" / "bucket_00000").rename(table / "delta_0000001_0000001_0000" / "x.csv")
        for marker in table.glob("*/_*"):
            marker.unlink()
        (table / "delta_0000002_0000002_0000" / "bucket_00000").rename(table / "delta_0000002_0000002_0000" / "x.csv")
        done = acidctl("clean", "--yes", "--unsafe-retention", "--apply", plan)
        assert done.status == 7, done.err
        assert "not known to be a transactional table" in done.err

    def test_an_assumption_is_kept(self, acidctl: Acidctl, table: Path, tmp_path: Path) -> None:
        """It is made anew of what is there, by the same age."""
        plan = tmp_path / "assumed.json"
        (table / "base_0000003").mkdir()
        write_delta(table / "base_0000003" / "x", 3, ids(3))
        for file in (table / "base_0000003" / "x" / "delta_0000003_0000003_0000").iterdir():
            file.rename(table / "base_0000003" / file.name)
        (table / "base_0000003" / "x" / "delta_0000003_0000003_0000").rmdir()
        (table / "base_0000003" / "x").rmdir()
        assert acidctl(*CLEAN, "--plan", plan, table).status == 0
        (one,) = json.loads(plan.read_text())["locations"]
        assert one["assumeCommittedSeconds"] == 0
        assert one["writeIds"] is None
        assert acidctl("clean", "--yes", "--unsafe-retention", "--apply", plan).status == 0
        assert {path.name for path in table.glob("[bd]*")} == {"base_0000003"}
