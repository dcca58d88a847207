"""`acidctl doctor`: whether stores can be reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from support.command_line import Result


def test_stores_are_shown_with_whether_they_can_be_reached(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    done = acidctl("doctor", tmp_path)
    assert (done.status, f"{tmp_path}: can be reached" in " ".join(done.out.split())) == (0, True)
    done = acidctl("doctor", tmp_path, tmp_path / "none", "webhdfs://127.0.0.1:1/t", "--set", "storage.retries=0")
    assert done.status == 3
    assert "check that the NameNode runs" in done.out
    found = acidctl("doctor", tmp_path / "none", tmp_path, "-o", "json").json()["stores"]
    assert [one["problem"] and one["problem"]["code"] for one in found] == ["not-found", None]


def test_a_label_stands_once_and_no_line_has_keys_of_json(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    lines = acidctl("doctor", tmp_path).out.splitlines()
    labels = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert len(labels) == len(set(labels)), labels
    assert {"configuration", "python", "packages", "store"} <= set(labels)
    assert not any(key in line for line in lines for key in ("isUsed", "isReachable", "file="))
