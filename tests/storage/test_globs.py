"""Tests of :mod:`acidctl.storage.globs`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.stores import Store, fill

from acidctl.base.errors import NotFoundError
from acidctl.storage import registry
from acidctl.storage.globs import expanded


@pytest.fixture
def matches(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Return what a pattern below the directory of the test means."""
    fill(
        store,
        "sales/dt=1/f",
        "sales/dt=2/f",
        "sales/_tmp/f",
        "stock/dt=2/f",
        "stock/file",
        "hr/k=1/f",
        "odd[1]/k=1/f",
        "top/odd[1]/f",
        "top/odd1/f",
    )
    monkeypatch.setattr("acidctl.storage.globs.open_location", lambda *_: (store.fs, asked[-1]))
    asked: list[str] = []

    def match(pattern: str) -> list[str]:
        asked.append(f"{store.root}/{pattern}")
        start = store.fs.display(store.root) + "/"
        return [found.removeprefix(start) for found in expanded(store.fs.display(asked[-1]), {})]

    return match


def test_wildcards_stand_for_characters_of_one_name(matches: Callable[[str], list[str]]) -> None:
    assert matches("s*") == ["sales", "stock"]
    assert matches("*/dt=2") == ["sales/dt=2", "stock/dt=2"]
    assert matches("sales/*") == ["sales/dt=1", "sales/dt=2"]  # hidden directories are not tables
    assert matches("s[at]*/dt=?") == ["sales/dt=1", "sales/dt=2", "stock/dt=2"]
    assert matches("sales/_t*") == ["sales/_tmp"]
    assert matches("stock/*") == ["stock/dt=2"]


def test_what_exists_as_it_is_written_means_itself(matches: Callable[[str], list[str]]) -> None:
    assert matches("odd[1]") == ["odd[1]"]
    assert matches("odd[1]/*") == ["odd[1]/k=1"]
    assert matches("*/odd[1]") == ["top/odd[1]"]
    assert matches("sales") == ["sales"]


def test_nothing_found_is_an_error_with_near_names(matches: Callable[[str], list[str]]) -> None:
    with pytest.raises(NotFoundError, match=r"nothing matches sale_\* in ") as caught:
        matches("sale_*")
    assert caught.value.hint == "did you mean sales?"
    with pytest.raises(NotFoundError, match="nothing matches"):
        matches("*/dt=7")
    with pytest.raises(NotFoundError):
        matches("none/*")


def test_a_plain_path_asks_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "open_location", None)
    assert expanded("s3://b*cket/t", {}) == ("s3://b*cket/t",)
    assert expanded("/warehouse/t", {}) == ("/warehouse/t",)


def test_commands_take_quoted_patterns(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    for name in ("a/dt=1", "a/dt=2", "b/dt=1"):
        write_acid(tmp_path / name / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)))
    found = acidctl("ls", "-o", "jsonl", f"file://{tmp_path}/*/dt=1")
    assert [line["location"] for line in found.lines()] == [f"{tmp_path}/a/dt=1", f"{tmp_path}/b/dt=1"]
    (tmp_path / "list").write_text(f"{tmp_path}/a/dt=[13]\n{tmp_path}/c*\n")
    found = acidctl("ls", "--tables", tmp_path / "list")
    assert found.status == 3 and "list, line 2: nothing matches c*" in found.err
