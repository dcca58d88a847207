"""`acidctl doctor`: whether stores can be reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from support.command_line import Result


def test_stores_are_shown_with_whether_they_can_be_reached(acidctl: Callable[..., Result], tmp_path: Path) -> None:
    done = acidctl("doctor", tmp_path)
    assert (done.status, f"location={tmp_path} isReachable=yes" in " ".join(done.out.split())) == (0, True)
    done = acidctl("doctor", tmp_path, tmp_path / "none", "webhdfs://127.0.0.1:1/t", "--set", "storage.retries=0")
    assert done.status == 3
    assert "check that the NameNode runs" in done.out
    found = acidctl("doctor", tmp_path / "none", tmp_path, "-o", "json").json()["stores"]
    assert [one["problem"] and one["problem"]["code"] for one in found] == ["not-found", None]
