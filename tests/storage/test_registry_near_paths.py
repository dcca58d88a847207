"""The error for a path that does not exist suggests similar names, after one listing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.metastore.fake_hive import FakeHive

from acidctl.base.errors import NotFoundError
from acidctl.storage.registry import naming_near, open_location

Acidctl = Callable[..., Result]
CHANGING = ("--assume-committed=0s",)


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("sales.order", "sales.orders?"), ("sale.orders", "sales.orders?"), ("sales.p/dya=1", "day?"),
        ("sales.p/day=2026-11-1", "day=2026-11-01?"), ("sales.zzzz", ""), ("sales.p/day=x", ""),
    ],
)  # fmt: skip
def test_near_names_of_a_metastore(acidctl: Acidctl, tmp_path: Path, typed: str, near: str) -> None:
    with FakeHive(4) as hive:
        hive.table("sales", "orders", f"file:{tmp_path}")
        hive.table("sales", "p", f"file:{tmp_path}/p", ["day"])
        hive.partition("sales", "p", "day=2026-11-01")
        hive.table("other", "orders", f"file:{tmp_path}/o")
        found = acidctl("ls", "--metastore", hive.address, f"hive:{typed}")
    assert found.status == 3
    assert found.err.partition("did you mean ")[2].strip() == near


@pytest.mark.parametrize(
    ("line", "typed", "near"),
    [
        (("ls",), "sales.db/order", "sales.db/orders"),
        (("cat",), "sale.db/orders", "sales.db"),
        (("compact", "--major", *CHANGING), "sales.db/ordres", "sales.db/orders"),
        (("clean",), "sales.db/ORDERS", "sales.db/orders"),
        (("dump",), "sales.db/orders/delta_0000001_0000001_0000/bucket_0000", "bucket_00000"),
        (("meta",), "sales.db/orders/delta_0000001_0000001_000/bucket_00000", "delta_0000001_0000001_0000"),
        (("ls",), "sales.db/gone", ""),
        (("ls",), "sales.db/nothing like it", ""),
        (("ls",), "a/b/c/d/e", ""),
    ],
)
def test_near_names_of_the_nearest_parent(
    acidctl: Acidctl, tmp_path: Path, line: tuple[str, ...], typed: str, near: str
) -> None:
    assert acidctl("demo", tmp_path / "sales.db" / "orders").status == 0
    (tmp_path / "sales.db" / "odd name?").mkdir()
    (tmp_path / "sales.db" / "gone").symlink_to("/nothing/there")
    found = acidctl(*line, tmp_path / typed)
    assert found.status == 3
    assert ("did you mean" in found.err) == bool(near)
    assert near in found.err.partition("did you mean")[2]


def test_nothing_is_listed_for_what_is_there_nor_on_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    fs, inner = open_location("memory://bucket/none")
    monkeypatch.setattr(type(fs), "list_dir", None)
    for path, renames in ((inner, False), ("/", True)):
        monkeypatch.setattr(fs, "can_rename", renames, raising=False)
        with pytest.raises(NotFoundError) as raised, naming_near(fs, path):
            raise NotFoundError("cannot list it", "", "check the spelling")
        assert raised.value.hint == "check the spelling"
