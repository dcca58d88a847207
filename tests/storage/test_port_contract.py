"""What every store promises, asked of every store."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.cleaning import apply_plan
from support.stores import Store, fill, paths

from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED
from acidctl.base.errors import ConflictError, NotFoundError, RefusedError, StorageError
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import AT_ONCE
from acidctl.cleaning.trash import restore, trash_runs
from acidctl.location.snapshot import take_snapshot
from acidctl.storage.port import join
from acidctl.storage.registry import open_file_system

MISSING: dict[str, Callable[[Store, str], object]] = {
    "list_tree": lambda store, path: store.fs.list_tree(path),
    "list_dir": lambda store, path: store.fs.list_dir(path),
    "stat": lambda store, path: store.fs.stat(path),
    "open_input": lambda store, path: store.fs.open_input(path),
    "read_bytes": lambda store, path: store.fs.read_bytes(path),
    "read nothing": lambda store, path: store.fs.read_bytes(path, 0, 0),
    "read a range": lambda store, path: store.fs.read_bytes(path, 5, 5),
    "read the end": lambda store, path: store.fs.read_bytes(path, -5),
    "remove_tree": lambda store, path: store.fs.remove_tree(path),
}

NAMES = [
    "a b",
    " lead",
    "trail ",
    "100%",
    "p=a%3Ab",
    "%41",
    "%2F%%",
    "#1",
    "x#LATEST",
    "a+b",
    "a&b=c",
    "what?",
    "a;b,c",
    "ü",
    "日本 語",
    "😀",
    "'\"`",
    "[x]{y}*",
    "back\\slash",
    "~",
    "$HOME",
    "new\nline",
    "tab\tand\x01more",
    "-rf",
]


def test_a_file_comes_back_as_it_was_written(store: Store) -> None:
    path = join(store.root, "file")
    store.fs.write_bytes(path, b"0123456789")
    assert store.fs.exists(path)
    assert store.fs.read_bytes(path) == b"0123456789"
    entry = store.fs.stat(path)
    assert (entry.path, entry.size, entry.is_dir) == ("file", 10, False)
    assert entry.modified is not None


def test_ranges_are_cut_as_slices_are(store: Store) -> None:
    data = b"0123456789"
    path = join(store.root, "file")
    store.fs.write_bytes(path, data)
    for offset in (0, 3, 9, 10, 11, -1, -4, -10, -99):
        for length in (None, 0, 1, 4, 99):
            tail = data[offset:] if offset < 0 else data[min(offset, 10) :]
            expected = tail if length is None else tail[:length]
            assert store.fs.read_bytes(path, offset, length) == expected, (offset, length)


def test_empty_file_is_written_and_read(store: Store) -> None:
    path = join(store.root, "empty")
    store.fs.write_bytes(path, b"")
    assert store.fs.stat(path).size == 0
    assert store.fs.read_bytes(path) == store.fs.read_bytes(path, 0, 7) == store.fs.read_bytes(path, -7, 7) == b""
    with store.fs.open_input(path) as source:
        assert source.read() == b""
        assert source.read(5) == b""


def test_file_is_read_at_any_place(store: Store) -> None:
    data = bytes(range(256)) * 20_000
    path = join(store.root, "big")
    with store.fs.open_output(path) as output:
        for start in range(0, len(data), 700_001):
            output.write(data[start : start + 700_001])
    assert store.fs.stat(path).size == len(data)
    with store.fs.open_input(path) as source:
        assert source.seekable()
        assert source.readable()
        assert source.seek(-10, 2) == len(data) - 10
        assert source.read() == data[-10:]
        assert source.read(1) == b""
        for start, size in [(0, 3), (4_000_000, 100), (3_999_990, 1_100_000), (17, 0), (5_000_000, 5_000_000), (1, 1)]:
            source.seek(start)
            assert source.read(size) == data[start : start + size]
            assert source.tell() == min(len(data), start + size)
        source.seek(0)
        assert source.read(3) + source.read(2_000_000) + source.read() == data
        buffer = bytearray(11)
        source.seek(255)
        assert source.readinto(buffer) == 11  # type: ignore[attr-defined]
        assert bytes(buffer) == data[255:266]


def test_two_readers_do_not_share_a_position(store: Store) -> None:
    fill(store, "file", data=b"0123456789")
    with store.fs.open_input(join(store.root, "file")) as one, store.fs.open_input(join(store.root, "file")) as two:
        assert one.read(4) == b"0123"
        assert two.read(2) == b"01"
        assert one.read(1) == b"4"


def test_a_tree_is_listed_whole_and_sorted(store: Store) -> None:
    fill(store, "b/2", "b/1", "a", "_hidden/x", ".crc", "b/c/d/e", "b.x")
    listing = store.fs.list_tree(store.root)
    assert listing.location == store.root
    assert [(entry.path, entry.is_dir) for entry in listing.entries] == [
        (".crc", False),
        ("_hidden", True),
        ("_hidden/x", False),
        ("a", False),
        ("b", True),
        ("b.x", False),
        ("b/1", False),
        ("b/2", False),
        ("b/c", True),
        ("b/c/d", True),
        ("b/c/d/e", False),
    ]
    assert {entry.size for entry in listing.entries if not entry.is_dir} == {4}
    assert [entry.path for entry in store.fs.list_dir(store.root).entries] == [".crc", "_hidden", "a", "b", "b.x"]
    assert [entry.path for entry in store.fs.list_dir(join(store.root, "b")).entries] == ["1", "2", "c"]


def test_a_listing_is_never_an_old_one(store: Store) -> None:
    fill(store, "d/1")
    assert paths(store) == ["d", "d/1"]
    fill(store, "d/2")
    assert paths(store) == ["d", "d/1", "d/2"]
    store.fs.remove_tree(join(store.root, "d/1"))
    assert paths(store) == ["d", "d/2"]
    assert not store.fs.exists(join(store.root, "d/1"))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", NAMES)
def test_names_are_taken_literally(store: Store, name: str) -> None:
    if store.kind == "s3" and "\n" in name:
        pytest.skip("moto's routes do not match a newline")
    fill(store, f"{name}/{name}", data=b"0123456789")
    path = join(store.root, name, name)
    assert paths(store) == [name, f"{name}/{name}"]
    assert [entry.path for entry in store.fs.list_dir(join(store.root, name)).entries] == [name]
    assert store.fs.stat(path).path == name
    assert store.fs.read_bytes(path, 2, 3) == b"234"
    with store.fs.open_input(path) as source:
        assert source.read() == b"0123456789"
    with store.fs.open_output(join(store.root, name, "out")) as output:
        output.write(b"x")
    if store.fs.can_rename:
        store.fs.rename(join(store.root, name), join(store.root, name + name))
        assert paths(store) == sorted([name * 2, f"{name * 2}/{name}", f"{name * 2}/out"])
        store.fs.remove_tree(join(store.root, name + name))
    else:
        store.fs.remove_tree(join(store.root, name))
    assert paths_or_none(store) == []


def paths_or_none(store: Store) -> list[str]:
    """Stores without directories forget an empty one."""
    return paths(store) if store.has_directories else []


@pytest.mark.parametrize("call", MISSING)
def test_what_is_missing_is_not_found_and_named(store: Store, call: str) -> None:
    path = join(store.root, "no-such")
    assert not store.fs.exists(path)
    assert not store.fs.exists(join(path, "below"))
    for missing in (path, join(path, "below")):
        with pytest.raises(NotFoundError) as raised:
            MISSING[call](store, missing)
        assert store.fs.display(missing) in raised.value.what
        assert raised.value.hint


@pytest.mark.parametrize("call", ["list_tree", "list_dir"])
def test_a_file_cannot_be_listed(store: Store, call: str) -> None:
    fill(store, "file")
    with pytest.raises(NotFoundError) as raised:
        MISSING[call](store, join(store.root, "file"))
    assert "file, not a directory" in raised.value.why


@pytest.mark.parametrize("call", ["open_input", "read_bytes", "read nothing", "read a range", "read the end"])
def test_a_directory_cannot_be_read(store: Store, call: str) -> None:
    fill(store, "dir/file")
    with pytest.raises(NotFoundError):
        MISSING[call](store, join(store.root, "dir"))


@pytest.mark.parametrize("call", ["write_bytes", "create_exclusive", "open_output"])
def test_nothing_is_ever_overwritten(store: Store, call: str) -> None:
    fill(store, "file", "dir/file", data=b"old")
    for name in ("file", "dir"):
        with pytest.raises(ConflictError) as raised:
            if call == "open_output":
                store.fs.open_output(join(store.root, name)).close()
            else:
                getattr(store.fs, call)(join(store.root, name), b"new")
        assert name in raised.value.what
    assert store.fs.read_bytes(join(store.root, "file")) == b"old"
    assert paths(store) == ["dir", "dir/file", "file"]


def test_an_output_of_nothing_is_an_empty_file(store: Store) -> None:
    store.fs.open_output(join(store.root, "empty")).close()
    assert store.fs.stat(join(store.root, "empty")).size == 0
    output = store.fs.open_output(join(store.root, "also"))
    output.write(b"")
    output.close()
    output.close()
    assert output.closed
    assert paths(store) == ["also", "empty"]


def test_make_dirs_makes_parents_and_may_be_repeated(store: Store) -> None:
    if not store.has_directories:
        pytest.skip("this store has no directories")
    path = join(store.root, "a/b/c")
    store.fs.make_dirs(path)
    store.fs.make_dirs(path)
    assert store.fs.stat(path).is_dir
    assert store.fs.list_tree(path).entries == store.fs.list_dir(path).entries == ()
    fill(store, "file")
    with pytest.raises(ConflictError):
        store.fs.make_dirs(join(store.root, "file"))
    with pytest.raises((NotFoundError, ConflictError)):
        store.fs.make_dirs(join(store.root, "file/below"))


def test_a_location_that_is_gone_is_not_made_again(store: Store) -> None:
    if not store.has_directories:
        pytest.skip("this store has no directories")
    location = join(store.root, "t/day=1")
    store.fs.make_dirs(location)
    store.fs.make_dirs(join(location, "a/b"), below=location)
    assert paths(store) == ["t", "t/day=1", "t/day=1/a", "t/day=1/a/b"]
    store.fs.remove_tree(location)
    for path in ("a", "a/b/c"):
        with pytest.raises(NotFoundError):
            store.fs.make_dirs(join(location, path), below=location)
    store.fs.remove_tree(join(store.root, "t"))
    with pytest.raises(NotFoundError):
        store.fs.make_dirs(join(location, "a"), below=location)
    assert paths(store) == []


def test_remove_takes_everything_below(store: Store) -> None:
    fill(store, "d/1", "d/e/2", "d/e/f/g/[3]", "d.x", "dd/1")
    store.fs.remove_tree(join(store.root, "d"))
    assert paths(store) == ["d.x", "dd", "dd/1"]
    store.fs.remove_tree(join(store.root, "d.x"))
    assert paths(store) == ["dd", "dd/1"]


def test_only_an_empty_directory_is_removed(store: Store) -> None:
    fill(store, "d/1")
    store.fs.make_dirs(join(store.root, "e"))
    for name in ("d", "e", "none"):
        store.fs.remove_empty(join(store.root, name))
    assert paths(store) == ["d", "d/1"]


def test_the_root_cannot_be_removed(store: Store) -> None:
    with pytest.raises(RefusedError):
        store.fs.remove_tree("/")


class TestRename:
    @pytest.fixture(autouse=True)
    def _can_rename(self, store: Store) -> None:
        if not store.fs.can_rename:
            pytest.skip("this store cannot rename")

    def test_a_directory_moves_with_all_it_holds(self, store: Store) -> None:
        fill(store, "_tmp/base_5/bucket_00000", "_tmp/base_5/sub/x", "_tmp/base_55/y")
        store.fs.rename(join(store.root, "_tmp/base_5"), join(store.root, "base_5"))
        assert paths(store) == [
            "_tmp",
            "_tmp/base_55",
            "_tmp/base_55/y",
            "base_5",
            "base_5/bucket_00000",
            "base_5/sub",
            "base_5/sub/x",
        ]

    def test_rename_moves_a_file(self, store: Store) -> None:
        fill(store, "a", data=b"A")
        store.fs.rename(join(store.root, "a"), join(store.root, "b"))
        assert paths(store) == ["b"]
        assert store.fs.read_bytes(join(store.root, "b")) == b"A"

    @pytest.mark.parametrize("source", ["dir", "file"])
    @pytest.mark.parametrize("target", ["full", "empty", "other"])
    def test_an_existing_target_is_a_conflict_and_nothing_moves(self, store: Store, source: str, target: str) -> None:
        fill(store, "dir/x", "file", "full/y", "other", data=b"old")
        store.fs.make_dirs(join(store.root, "empty"))
        before = paths(store)
        with pytest.raises(ConflictError) as raised:
            store.fs.rename(join(store.root, source), join(store.root, target))
        assert target in raised.value.what
        assert paths(store) == before

    def test_rename_of_a_missing_source_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFoundError):
            store.fs.rename(join(store.root, "no"), join(store.root, "new"))
        assert paths(store) == []

    def test_a_missing_parent_of_the_target(self, store: Store) -> None:
        fill(store, "dir/x")
        with pytest.raises(NotFoundError):
            store.fs.rename(join(store.root, "dir"), join(store.root, "no/new"))
        assert paths(store) == ["dir", "dir/x"]

    def test_rename_into_itself_is_refused(self, store: Store) -> None:
        fill(store, "dir/x")
        with pytest.raises((ConflictError, StorageError)):
            store.fs.rename(join(store.root, "dir"), join(store.root, "dir/new"))
        assert paths(store) == ["dir", "dir/x"]

    def test_of_eight_at_once_one_wins(self, store: Store) -> None:
        for index in range(8):
            fill(store, f"_tmp/{index}/mine-{index}")

        def race(index: int) -> int | None:
            try:
                store.fs.rename(join(store.root, f"_tmp/{index}"), join(store.root, "base_7"))
            except ConflictError:
                return None
            return index

        with ThreadPoolExecutor(8) as pool:
            winners = [index for index in pool.map(race, range(8)) if index is not None]
        assert len(winners) == 1
        assert paths(store, "base_7") == [f"mine-{winners[0]}"]
        assert len(paths(store, "_tmp")) == 14


def test_a_store_without_rename_says_so(store: Store) -> None:
    if store.fs.can_rename:
        pytest.skip("this store can rename")
    fill(store, "dir/x")
    with pytest.raises(StorageError) as raised:
        store.fs.rename(join(store.root, "dir"), join(store.root, "new"))
    assert raised.value.hint
    assert paths(store) == ["dir", "dir/x"]


class TestCopy:
    @pytest.fixture(autouse=True)
    def _can_copy(self, store: Store) -> None:
        if not store.fs.can_copy:
            pytest.skip("this store cannot copy")

    def test_a_file_is_there_twice(self, store: Store) -> None:
        fill(store, "_tmp/a", data=b"A" * 100_000)
        store.fs.make_dirs(join(store.root, "base_5"))
        store.fs.copy(join(store.root, "_tmp/a"), join(store.root, "base_5/b"))
        assert paths(store) == ["_tmp", "_tmp/a", "base_5", "base_5/b"]
        assert store.fs.read_bytes(join(store.root, "base_5/b")) == b"A" * 100_000

    def test_copy_replaces_nothing(self, store: Store) -> None:
        fill(store, "a", data=b"new")
        fill(store, "file", "dir/file", data=b"old")
        for name in ("file", "dir"):
            with pytest.raises(ConflictError) as raised:
                store.fs.copy(join(store.root, "a"), join(store.root, name))
            assert name in raised.value.what
        assert store.fs.read_bytes(join(store.root, "file")) == b"old"
        assert paths(store) == ["a", "dir", "dir/file", "file"]

    def test_copy_of_what_is_no_file_is_not_found(self, store: Store) -> None:
        fill(store, "dir/x")
        for name in ("no", "dir"):
            with pytest.raises(NotFoundError) as raised:
                store.fs.copy(join(store.root, name), join(store.root, "new"))
            assert name in raised.value.what
        assert paths(store) == ["dir", "dir/x"]

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("name", NAMES)
    def test_names_are_taken_literally(self, store: Store, name: str) -> None:
        if store.kind == "s3" and "\n" in name:
            pytest.skip("moto's routes do not match a newline")
        fill(store, name)
        store.fs.copy(join(store.root, name), join(store.root, name + name))
        assert paths(store) == sorted([name, name * 2])


def test_a_store_without_copies_says_so(store: Store) -> None:
    if store.fs.can_copy:
        pytest.skip("this store can copy")
    fill(store, "x")
    with pytest.raises(StorageError) as raised:
        store.fs.copy(join(store.root, "x"), join(store.root, "new"))
    assert raised.value.hint
    assert paths(store) == ["x"]


def test_of_eight_creators_one_wins(store: Store) -> None:
    path = join(store.root, "lock")

    def race(index: int) -> bytes | None:
        try:
            store.fs.create_exclusive(path, b"%d" % index)
        except ConflictError:
            return None
        return b"%d" % index

    with ThreadPoolExecutor(8) as pool:
        winners = [mine for mine in pool.map(race, range(8)) if mine is not None]
    assert len(winners) == 1
    assert store.fs.read_bytes(path) == winners[0]


def test_pickled_store_reconnects(store: Store) -> None:
    fill(store, "file", data=b"x")
    for again in (pickle.loads(pickle.dumps(store.fs)), open_file_system(pickle.loads(pickle.dumps(store.fs.spec)))):
        assert again.read_bytes(join(store.root, "file")) == b"x"
        assert again.spec == store.fs.spec
        assert again.url == store.fs.url


def test_only_the_local_disk_has_local_paths(store: Store) -> None:
    fill(store, "file")
    path = join(store.root, "file")
    assert store.fs.local_path(path) == (path if store.kind == "local" else None)
    assert store.fs.display(path).endswith(path)


def test_what_vanishes_after_it_was_listed_is_not_found_and_named(store: Store) -> None:
    fill(store, "d/1", "d/2")
    store.fs.list_tree(store.root)
    store.fs.remove_tree(join(store.root, "d/1"))
    for read in (store.fs.read_bytes, lambda path: store.fs.read_bytes(path, 0, 4)):
        with pytest.raises(NotFoundError) as raised:
            read(join(store.root, "d/1"))
        assert "d/1" in raised.value.what
    assert paths(store) == ["d", "d/2"]


def test_the_end_of_a_file_that_was_written_again_is_the_new_one(store: Store) -> None:
    path = join(store.root, "d/f")
    for data in (b"old one", b"new"):
        fill(store, "d/f", data=data)
        store.fs.list_tree(store.root)
        assert store.fs.read_bytes(path, len(data) - 2, 2) == data[-2:]
        store.fs.remove_tree(path)


def test_what_is_moved_to_the_trash_comes_back(store: Store) -> None:
    fill(store, "base_0000005/bucket_00000", "delta_0000003_0000003_0000/bucket_00000")
    fill(store, "base_0000005/_metadata_acid", data=METADATA_ACID_COMPACTED)
    before = paths(store)
    plan = plan_cleaning(take_snapshot(store.fs, store.root), AT_ONCE)
    if not store.fs.can_rename:
        with pytest.raises(RefusedError, match="no trash"):
            apply_plan(plan)
        assert paths(store) == before
        return
    apply_plan(plan)
    assert [path for path in paths(store) if path[0] != "."] == [
        "base_0000005", "base_0000005/_metadata_acid", "base_0000005/bucket_00000",
    ]  # fmt: skip
    (run,) = trash_runs(store.fs, store.root)
    assert restore(store.fs, run) == ("delta_0000003_0000003_0000",)
    assert paths(store) == before
