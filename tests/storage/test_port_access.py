"""Owners, modes and ACLs: what takes the place of several files grants nothing that one of them did not."""

from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.files.acid_files import write_delta
from support.servers.hdfs_server import HdfsServer
from support.tables import CLEAN_NOW
from support.terminals import require_python_for_everybody

from acidctl.base.errors import StorageError
from acidctl.storage.options import StorageOptions
from acidctl.storage.port import Access, narrowest
from acidctl.storage.registry import open_location

OTHER = 65534
COMPACT = ("compact", "--assume-committed=0s", "--engine", "local")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def may(access: Access, owner: str, groups: frozenset[str]) -> int:
    """The rights of a user, without ACLs: by POSIX, the first class that fits decides."""
    if owner == access.owner:
        return access.mode >> 6 & 7
    return access.mode >> 3 & 7 if access.group in groups else access.mode & 7


ENTRIES = st.builds(Access, st.sampled_from("ab"), st.sampled_from("gh"), st.integers(0, 0o777))


@given(st.lists(ENTRIES, min_size=1, max_size=4), ENTRIES, st.booleans())
def test_narrowest_access_grants_nobody_more(found: list[Access], place: Access, is_dir: bool) -> None:
    """Whoever owns one of them may change its mode anyway; but not that of the others."""
    made = narrowest(found, place, is_dir=is_dir)
    for user, groups in product("abc", (frozenset(), frozenset("g"), frozenset("h"), frozenset("gh"))):
        for access in found:
            if user == made.owner:
                assert may(access, user, groups) & 4 or user == access.owner
            elif not any(user == other.owner for other in found):
                assert may(made, user, groups) & ~may(access, user, groups) == 0


def test_of_several_owners_who_may_read_all_gets_it() -> None:
    place = Access("hive", "hadoop", 0o750)
    open_to_all = [Access("a", "g", 0o644), Access("b", "g", 0o664)]
    assert narrowest(open_to_all, place, is_dir=False) == Access("hive", "g", 0o644)
    one_is_private = [Access("a", "g", 0o644), Access("b", "g", 0o600)]
    assert narrowest(one_is_private, place, is_dir=False) == Access("b", "g", 0o600)
    both_are = [Access("a", "g", 0o640), Access("b", "g", 0o660)]
    assert narrowest(both_are, place, is_dir=False) == Access("", "g", 0o640)
    found = [Access("a", "g", 0o755), Access("b", "g", 0o744)]
    assert narrowest(found, place, is_dir=True) == Access("b", "g", 0o744 | 0o700)
    assert narrowest([Access("a", "g", 0o640), Access("a", "h", 0o664)], place, is_dir=False) == Access(
        "a", "hadoop", 0o600
    )
    assert narrowest([], place, is_dir=True) == place


def test_unlike_acls_are_no_acl() -> None:
    place = Access("a", "g", 0o755)
    acl = ("user:bob:rw-",)
    both = [Access("a", "g", 0o660, acl), Access("a", "g", 0o660)]
    assert narrowest(both, place, is_dir=False) == Access("a", "g", 0o600)
    assert narrowest(both[:1] * 2, place, is_dir=False) == Access("a", "g", 0o660, acl)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    from support.files.acid_files import ids

    table = tmp_path / "t"
    table.mkdir()
    for write_id in (1, 2, 3):
        write_delta(table, write_id, ids(write_id))
    return table


@pytest.mark.parametrize("kind", ["--major", "--minor"])
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_compaction_is_as_narrow_as_its_narrowest_input(acidctl, table: Path, kind: str, umask: int) -> None:  # type: ignore[no-untyped-def]
    for directory in table.iterdir():
        directory.chmod(0o770)
        for file in directory.iterdir():
            file.chmod(0o664)
    secret = table / "delta_0000002_0000002_0000"
    secret.chmod(0o750)
    (secret / "bucket_00000").chmod(0o640)
    old = os.umask(umask)
    try:
        done = acidctl(*COMPACT, kind, "-o", "json", table)
    finally:
        os.umask(old)
    assert done.status == 0, done.err
    (name,) = done.one()["outputs"]
    assert mode(table / name) == 0o750
    assert {mode(file) for file in (table / name).iterdir()} == {0o640}


@needs_root
def test_compaction_keeps_owner_and_mode(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    for path in (table, *table.rglob("*")):
        os.chown(path, OTHER, OTHER)
    (table / "delta_0000001_0000001_0000").chmod(0o2770)
    done = acidctl(*COMPACT, "--major", table)
    assert done.status == 0, done.err
    (base,) = table.glob("base_*")
    assert {(path.stat().st_uid, path.stat().st_gid) for path in (base, *base.iterdir())} == {(OTHER, OTHER)}


@needs_root
def test_the_owner_of_the_table_does_not_get_to_read_what_another_hid_in_it(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    for path in (table, *table.rglob("*")):
        os.chown(path, OTHER, OTHER)
    private = [table / "delta_0000001_0000001_0000" / "bucket_00000", table / "delta_0000002_0000002_0000"]
    for path, owner in zip(private, (4711, 4712), strict=True):
        os.chown(path, owner, owner)
        path.chmod(0o600 if path.is_file() else 0o700)
    done = acidctl(*COMPACT, "--major", table)
    assert done.status == 0, done.err
    (base,) = table.glob("base_*")
    assert (base.stat().st_uid, mode(base)) == (4712, 0o700)
    assert {(file.stat().st_uid, mode(file)) for file in base.iterdir()} == {(4711, 0o600)}


@needs_root
@pytest.mark.parametrize("how", ["another's file", "a second name", "others may write beside it"])
def test_what_was_put_in_the_place_of_a_new_file_is_not_given_away(tmp_path: Path, how: str) -> None:
    fs, path = open_location(str(tmp_path), StorageOptions(own_links=True))
    fs.make_dirs(f"{path}/new")
    fs.write_bytes(f"{path}/new/file", b"secret")
    made = tmp_path / "new" / "file"
    if how == "another's file":
        os.chown(made, OTHER - 1, 0)
    elif how == "a second name":
        os.link(made, tmp_path / "second")
    else:
        made.parent.chmod(0o775)
    before = made.stat()
    with pytest.raises(StorageError, match="exchanged meanwhile"):
        fs.set_access(str(made), Access(str(OTHER), "0", 0o644))
    assert (made.stat().st_uid, made.stat().st_mode) == (before.st_uid, before.st_mode)


@needs_root
def test_a_default_acl_lets_nobody_into_what_acidctl_makes(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    try:
        os.setxattr(table, "system.posix_acl_default", EVERYTHING_FOR_BOB)
    except OSError:
        pytest.skip("this disk keeps no ACLs")
    assert acidctl(*COMPACT, "--major", table).status == 0
    assert acidctl(*CLEAN_NOW, "--assume-committed=0s", table).status == 0
    for path in (trash := table / ".acidctl-trash", *trash.glob("*"), *trash.glob("*/manifest.json")):
        assert mode(path) & 0o022 == 0, path  # with an ACL the group's bits are the most that it grants


@needs_root
def test_a_repair_keeps_what_the_file_had(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    marker = table / "delta_0000001_0000001_0000" / "_orc_acid_version"
    data = marker.with_name("bucket_00000")
    os.chown(data, OTHER, OTHER)
    data.chmod(0o600)
    marker.unlink(missing_ok=True)
    done = acidctl("repair", "--only", "version-file", "--yes", "--force", table)
    assert done.status == 0, done.err
    assert (marker.stat().st_uid, marker.stat().st_gid, mode(marker)) == (OTHER, OTHER, 0o600)


def acl_of(*entries: tuple[int, int, int]) -> bytes:
    """The kernel's form of a POSIX ACL: tags, rights, ids."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


BOB = acl_of((1, 6, 0xFFFFFFFF), (2, 4, 1234), (4, 0, 0xFFFFFFFF), (0x10, 4, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF))
EVERYTHING_FOR_BOB = acl_of(
    (1, 7, 0xFFFFFFFF), (2, 7, 1234), (4, 7, 0xFFFFFFFF), (0x10, 7, 0xFFFFFFFF), (0x20, 5, 0xFFFFFFFF)
)
ACL = "system.posix_acl_access"


def test_acls_of_the_local_disk(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    files = [path for path in table.rglob("*") if path.is_file()]
    try:
        for file in files:
            os.setxattr(file, ACL, BOB)
    except OSError:
        pytest.skip("this disk keeps no ACLs")
    copy = table.parent / "copy"
    subprocess.run(["cp", "-a", table, copy], check=True)
    os.removexattr(copy / "delta_0000002_0000002_0000" / "bucket_00000", ACL)
    for location in (table, copy):
        assert acidctl(*COMPACT, "--major", location).status == 0
    (whole,), (mixed,) = table.glob("base_*/bucket_00000"), copy.glob("base_*/bucket_00000")
    assert os.getxattr(whole, ACL) == BOB
    assert mode(mixed) == 0o600
    with pytest.raises(OSError):
        os.getxattr(mixed, ACL)


def test_default_acls_of_the_table_widen_nothing(acidctl, table: Path) -> None:  # type: ignore[no-untyped-def]
    for file in table.rglob("bucket_00000"):
        file.chmod(0o600)
    try:
        os.setxattr(table, "system.posix_acl_default", BOB)
    except OSError:
        pytest.skip("this disk keeps no ACLs")
    assert acidctl(*COMPACT, "--major", table).status == 0
    (made,) = table.glob("base_*/bucket_00000")
    assert mode(made) == 0o600
    with pytest.raises(OSError):
        os.getxattr(made, ACL)


@needs_root
def test_what_cannot_be_given_away_grants_its_group_nothing(tmp_path: Path) -> None:
    """Run by a user who is not root: files stay his, and what the other group might do is nobody's."""
    code = (
        "import os, sys\n"
        f"os.setgroups([]); os.setgid({OTHER}); os.setuid({OTHER})\n"
        "from acidctl.storage.port import Access\n"
        "from acidctl.storage.registry import open_location\n"
        "fs, path = open_location(sys.argv[1])\n"
        "fs.set_access(path, Access('0', '0', 0o664))\n"
        f"fs.set_access(path + '2', Access('0', '{OTHER}', 0o664))\n"
    )
    place = Path("/tmp") / f"acidctl-access-{os.getpid()}"
    place.mkdir()
    try:
        for name in ("f", "f2"):
            (place / name).touch()
            os.chown(place / name, OTHER, OTHER)
        subprocess.run(["python3", "-c", code, str(place / "f")], check=True, env=reading_this())
        assert [mode(place / name) for name in ("f", "f2")] == [0o604, 0o664]
        assert (place / "f").stat().st_uid == OTHER
    finally:
        shutil.rmtree(place)


def reading_this() -> dict[str, str]:
    import sys

    import acidctl as package

    require_python_for_everybody()
    return os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(Path(package.__file__).parent.parent)])}


@pytest.mark.server
@pytest.mark.parametrize("kind", ["webhdfs", "hdfs"])
@pytest.mark.sampled(3)
def test_compaction_on_hdfs_keeps_owner_and_mode(acidctl, hdfs: HdfsServer, kind: str) -> None:  # type: ignore[no-untyped-def]
    if kind == "hdfs":
        pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    authority = hdfs.authority if kind == "webhdfs" else hdfs.rpc_authority
    url = f"{kind}://root@{authority}/access-{kind}/orders"
    assert acidctl("demo", url).status == 0
    fs, path = open_location(url)
    for name in ("delta_0000001_0000001_0000", "delta_0000002_0000002_0000"):
        fs.set_access(f"{path}/{name}", Access("etl", "finance", 0o750))
        fs.set_access(f"{path}/{name}/bucket_00000", Access("etl", "finance", 0o640))
    for name in ("delete_delta_0000002_0000002_0000", "delete_delta_0000003_0000003_0000"):
        fs.set_access(f"{path}/{name}", Access("etl", "finance", 0o770))
        fs.set_access(f"{path}/{name}/bucket_00000", Access("etl", "finance", 0o660))
    done = acidctl(*COMPACT, "--major", url)
    assert done.status == 0, done.err
    (base,) = [entry.path for entry in fs.list_dir(path).entries if entry.path.startswith("base_")]
    found = fs.access(f"{path}/{base}")
    assert found is not None
    assert (found.owner, found.group, found.mode, found.is_own) == ("etl", "finance", 0o750, False)
    for name, access in fs.access_below(f"{path}/{base}").items():
        assert (access.owner, access.group, access.mode) == ("etl", "finance", 0o640), name
    alice, _ = open_location(url.replace("root@", "alice@")) if kind == "webhdfs" else (fs, path)
    seen = alice.access(f"{path}/.acidctl-lock" if alice.exists(f"{path}/.acidctl-lock") else path)
    assert seen is not None
    assert seen.is_own  # of the superuser
