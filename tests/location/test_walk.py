"""From a path to its locations."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory_store import MemoryFileSystem
from support.stores import Store, fill
from support.trouble.retries import asked_again_at_once  # noqa: F401  (the fixture)

from acidctl.acid.names import unescape
from acidctl.base.errors import AccessError, AcidctlError, GoneError, NotFoundError
from acidctl.location.walk import Observer, WalkedLocation, list_entries, walk_locations
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.port import join
from acidctl.storage.registry import open_location

NUMBER = itertools.count()


def tree(*paths: str) -> tuple[MemoryFileSystem, str]:
    """A memory store with these files; a path that ends in `/` is an empty directory."""
    fs, root = open_location(f"memory://walk-{next(NUMBER)}")
    assert isinstance(fs, MemoryFileSystem)
    fs.make_dirs(root)
    for path in paths:
        if path.endswith("/"):
            fs.make_dirs(join(root, path[:-1]))
        else:
            fs.write_bytes(join(root, path), b"x")
    return fs, root


def found(paths: Iterable[str], start: str = "") -> list[str]:
    fs, root = tree(*paths)
    return [
        location.path.removeprefix(root).lstrip("/")
        for location, _ in walk_locations(fs, join(root, start) if start else root)
    ]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        pytest.param(["base_5/bucket_00000"], [""], id="one acid table"),
        pytest.param(["delta_1_1/", "_tmp/x/y"], [""], id="an empty delta"),
        pytest.param(["000000_0", "000001_0_copy_1"], [""], id="original files"),
        pytest.param(["000000_0", "HIVE_UNION_SUBDIR_1/000000_0", "sub/x"], [""], id="original subdirectories"),
        pytest.param(["000000_0", "HIVE_UNION_SUBDIR_1/000000_0", "sub/base_6/x"], ["sub"], id="a table below files"),
        pytest.param(
            ["notes.txt", "a/delta_1_1/f", "b/p=1/delta_2_2/f", "c/x"], ["a", "b/p=1", "c"], id="a stray file"
        ),
        pytest.param(["delta_1_1/f", "a/delta_1_1/f", "x"], ["", "a"], id="a location with a table below"),
        pytest.param(["a/_delta_log/0.json", "a/base_5/f", "b/delta_1_1/f"], ["b"], id="Delta Lake"),
        pytest.param(["a/.hoodie/x", "a/p=1/base_5/f", "b/delta_1_1/f"], ["b"], id="Hudi"),
        pytest.param(["a/metadata/v1.metadata.json", "a/data/base_5/f", "b/delta_1_1/f"], ["b"], id="Iceberg"),
        pytest.param(["a/metadata/base_5/f", "b/delta_1_1/f"], ["a/metadata", "b"], id="a table called metadata"),
        pytest.param(["a/_spark_metadata/0", "a/delta_1_1/f", "b/delta_1_1/f"], ["b"], id="a Spark stream"),
        pytest.param(["a/instance", "a/wals/x", "a/delta_1_1/f", "b/delta_1_1/f"], ["b"], id="Kudu"),
        pytest.param(["a/hbase.version", "a/data/delta_1_1/f", "b/delta_1_1/f"], ["b"], id="HBase"),
        pytest.param(["x", "a/_delta_log/0.json", "a/t/base_5/f"], [""], id="Delta Lake beside a file"),
        pytest.param(
            ["HIVE_UNION_SUBDIR_1/000000_0", "HIVE_UNION_SUBDIR_2/000000_0"], [""], id="a union, no own files"
        ),
        pytest.param([], [""], id="an empty directory"),
        pytest.param(["_SUCCESS", ".hive-staging_1/base_1/x", "_tmp_9/delta_1_1/y"], [""], id="only hidden ones"),
        pytest.param(["p=1/delta_1_1/f", "p=2/000000_0", "p=3/"], ["p=1", "p=2", "p=3"], id="partitions"),
        pytest.param(
            ["p=1/q=a/delta_1_1/f", "p=1/q=b/x", "p=2/q=a/y"], ["p=1/q=a", "p=1/q=b", "p=2/q=a"], id="two levels"
        ),
        pytest.param(["p=1/sub/000000_0"], ["p=1"], id="originals below a partition"),
        pytest.param(["p=1/x", "_p=2/x", ".p=3/x"], ["p=1"], id="hidden partitions"),
        pytest.param(["base_1/x", "p=1/x", "p=2/delta_1_1/x"], ["", "p=1", "p=2"], id="table level and partitions"),
        pytest.param(["000000_0", "p=1/000000_0"], ["", "p=1"], id="files and partitions"),
        pytest.param(
            ["a.db/t/base_1/x", "a.db/u/p=1/x", "b.db/v/x"], ["a.db/t", "a.db/u/p=1", "b.db/v"], id="warehouse"
        ),
        pytest.param(["t/base_1/x", "u/delta_1_1/x", "empty/"], ["empty", "t", "u"], id="a database"),
        pytest.param(["a.db/", "b.db/t/x"], ["b.db/t"], id="an empty database"),
        pytest.param(["README", "a.db/t/x"], ["a.db/t"], id="a stray file beside databases"),
        pytest.param(["a.db/README", "a.db/t/x"], ["a.db/t"], id="a stray file in a database"),
        pytest.param(["a.db/000000_0"], ["a.db"], id="a table called .db"),
        pytest.param(["a.db/base_1/bucket_00000"], ["a.db"], id="an acid table called .db"),
        pytest.param(
            ["base_customers/base_1/x", "delta_x/x"], ["base_customers", "delta_x"], id="tables like directories"
        ),
        pytest.param(
            ["base_2023/base_1/x", "base_2024/base_2/x"], ["base_2023", "base_2024"], id="tables called base_2023"
        ),
        pytest.param(
            ["base_2022/", "base_2023/p=1/x", "t/x"], ["base_2022", "base_2023/p=1", "t"], id="and partitioned"
        ),
        pytest.param(["base_1/HIVE_UNION_SUBDIR_1/000000_0"], [""], id="insert-only with subdirectories"),
        pytest.param(["p=1/base_2023/p=2/x"], ["p=1"], id="inside a partition nothing is a table"),
        pytest.param(["=1/x"], ["=1"], id="without a key it is not a partition"),
        pytest.param(["p=/x"], ["p="], id="no value is one"),
    ],
)
def test_directories_with_acid_names_or_files_are_locations(paths: list[str], expected: list[str]) -> None:
    assert found(paths) == [path for path in expected if path != "=1" or "p=" not in expected] or expected == [
        "=1",
        "p=",
    ]


def test_the_listing_of_the_walk_is_gone_on_from() -> None:
    fs, root = tree("t/p=1/000000_0", "t/p=2/delta_1_1/x", "t/p=3/_tmp/x", "t/p=4/", "t/p=5/x", "t/p=5/p=6/y")
    for location, top in walk_locations(fs, root):
        assert top == fs.list_dir(location.path)
        assert list_entries(fs, location.path, top) == list_entries(fs, location.path)
    whole = fs.list_dir(f"{root}/t/p=1")
    assert list_entries(fs, f"{root}/gone", whole) is whole  # nothing below it to be listed


def test_a_location_is_listed_without_the_partitions_beside_it() -> None:
    fs, root = tree("base_1/x", "p=1/y", "sub/p=2/z", "_tmp/q=1/w", "000000_0")
    paths = [entry.path for entry in list_entries(fs, root).entries]
    assert paths == ["000000_0", "_tmp", "_tmp/q=1", "_tmp/q=1/w", "base_1", "base_1/x", "sub", "sub/p=2", "sub/p=2/z"]
    assert list_entries(fs, f"{root}/base_1") == fs.list_tree(f"{root}/base_1")


@pytest.mark.parametrize(
    ("path", "table", "partition"),
    [
        ("wh/sales.db/t", "sales.t", ()),
        ("wh/sales.db/t/p=1/q=2", "sales.t", (("p", "1"), ("q", "2"))),
        ("t/p=a%3Ab%2Fc/q=100%25/r=50%", "t", (("p", "a:b/c"), ("q", "100%"), ("r", "50%"))),
        ("t/p=__HIVE_DEFAULT_PARTITION__", "t", (("p", "__HIVE_DEFAULT_PARTITION__"),)),
        ("t/p=a=b", "t", (("p", "a=b"),)),
        ("t/a%20b=%C3%A9", "t", (("a b", "Ã©"),)),
        ("run=5/t", "t", ()),
        ("run=5/t/p=ü 日本", "t", (("p", "ü 日本"),)),
    ],
)
def test_table_and_partition_come_from_the_path(path: str, table: str, partition: tuple[tuple[str, str], ...]) -> None:
    fs, root = tree(f"{path}/000000_0")
    expected = WalkedLocation(join(root, path), table, partition)
    assert [location for location, _ in walk_locations(fs, join(root, path))] == [expected]
    if not path.startswith("run="):
        assert [location for location, _ in walk_locations(fs, root)] == [expected]


def test_partition_names_are_unescaped_as_hive_does() -> None:
    for text, expected in (("%41", "A"), ("%4", "%4"), ("%", "%"), ("%zz", "%zz"), ("%%41", "%A"), ("%2541", "%41")):
        assert unescape(text) == expected
    assert unescape("%0A%7f") == "\n\x7f"
    assert unescape("%+1%-1") == "%+1%-1"


def test_the_root_of_a_store_is_walked_too() -> None:
    fs, root = tree("t/p=1/x")
    assert WalkedLocation(f"{root}/t/p=1", "t", (("p", "1"),)) in [location for location, _ in walk_locations(fs, "/")]


def test_what_is_missing_or_a_file_is_not_found() -> None:
    fs, root = tree("f")
    for path in ("no", "f", "f/x"):
        with pytest.raises(NotFoundError):
            list(walk_locations(fs, join(root, path)))


def test_what_cannot_be_listed_stops_the_walk_or_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fs, root = tree("t/p=1/x", "t/p=2/x", "t/p=3/x", "u/x")
    real = fs.list_dir

    def list_dir(path: str) -> object:
        if path.endswith("p=2"):
            raise AccessError(f"cannot list {path}", "permission denied")
        if path.endswith("p=3"):
            raise NotFoundError(f"cannot list {path}", "dropped meanwhile")
        return real(path)

    monkeypatch.setattr(fs, "list_dir", list_dir)
    with pytest.raises(AccessError):
        list(walk_locations(fs, root))
    problems: list[AcidctlError] = []
    walked = [location.path.removeprefix(root) for location, _ in walk_locations(fs, root, Observer(problems.append))]
    assert walked == ["/t/p=1", "/u"]
    assert [type(problem) for problem in problems] == [AccessError, GoneError]
    with pytest.raises(AccessError):
        list(walk_locations(fs, f"{root}/t/p=2", Observer(problems.append)))


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    (tmp_path / "t" / "p=1").mkdir(parents=True)
    (tmp_path / "t" / "p=1" / "000000_0").touch()
    (tmp_path / "t" / "p=2").symlink_to("p=1")
    (tmp_path / "t" / "p=3").symlink_to("..")
    (tmp_path / "u").symlink_to(".")
    (tmp_path / "v" / "q=1").mkdir(parents=True)
    (tmp_path / "v" / "q=1" / "r=1").symlink_to("../q=2")
    (tmp_path / "v" / "q=2").mkdir(parents=True)
    (tmp_path / "v" / "q=2" / "r=1").symlink_to("../q=1")
    walked = [
        location.path.removeprefix(f"{tmp_path}/") for location, _ in walk_locations(LocalFileSystem(), str(tmp_path))
    ]
    assert walked == ["t/p=1", "t/p=2"]


VALUES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=6)
KEYS = st.sampled_from(["a", "b", "ds"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, tuple[tuple[str, str], ...]], list[str]]:
    """The locations of a random partitioned table with their values, and the files that make it up."""
    depth = draw(st.integers(0, 3))
    keys = [f"{draw(KEYS)}{level}" for level in range(depth)]
    rows = draw(st.lists(st.tuples(*[VALUES] * depth), min_size=1, max_size=6, unique=True))
    locations = {}
    files = []
    for row in rows:
        partition = tuple(zip(keys, row, strict=True))
        path = "/".join(f"{key}={escape(value)}" for key, value in partition)
        locations[path] = partition
        content = draw(st.sampled_from(["000000_0", "delta_1_1/bucket_00000", "base_2/f", "_tmp/x", "sub/000000_0"]))
        if not path and content == "sub/000000_0":  # at table level, that is a database
            content = "HIVE_UNION_SUBDIR_1/000000_0"
        files.append(f"{path}/{content}".lstrip("/"))
    return locations, files


def escape(value: str) -> str:
    special = "\"#%'*/:=?\\\x7f{[]^" + "".join(map(chr, range(1, 32)))
    return "".join(f"%{ord(char):02X}" if char in special else char for char in value)


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from(["t", "x.db/t", "deep/er/t"]))
def test_a_random_table_is_found_exactly(
    table: tuple[dict[str, tuple[tuple[str, str], ...]], list[str]], place: str
) -> None:
    locations, files = table
    fs, root = tree(*(f"{place}/{file}" for file in files))
    walked = [location for location, _ in walk_locations(fs, root)]
    base = f"{root}/{place}"
    name = "x.t" if place == "x.db/t" else "t"
    expected = {
        WalkedLocation(f"{base}/{path}" if path else base, name, partition) for path, partition in locations.items()
    }
    assert set(walked) == expected
    assert len(walked) == len(expected)
    assert walked == sorted(walked, key=lambda location: location.path.split("/"))
    fs.remove_tree(root)


def test_every_store_is_walked_alike(store: Store) -> None:
    fill(store, "a.db/t/p=a%3Ab/delta_1_1/f", "a.db/t/p=c d/000000_0", "a.db/u/base_1/f", "_hidden/v/x")
    walked = [(location.table, location.partition) for location, _ in walk_locations(store.fs, store.root)]
    assert walked == [("a.t", (("p", "a:b"),)), ("a.t", (("p", "c d"),)), ("a.u", ())]


def test_a_link_to_nothing_beside_tables_is_told(tmp_path: Path) -> None:
    """A table on a disk that is not there must not be passed over."""
    for name in ("a", "b"):
        (tmp_path / "sales.db" / name / "delta_0000001_0000001_0000").mkdir(parents=True)
    (tmp_path / "sales.db" / "items").symlink_to(tmp_path / "gone" / "items")
    problems: list[AcidctlError] = []
    fs, root = open_location(str(tmp_path / "sales.db"))
    walked = [location.path.removeprefix(root) for location, _ in walk_locations(fs, root, Observer(problems.append))]
    assert walked == ["/a", "/b"]
    (problem,) = problems
    assert "items" in problem.what
