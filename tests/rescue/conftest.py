"""A metastore that is older than the files of its table, and no pauses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.metastore.fake_hive import FakeHive

from acidctl.location import metastore_state
from acidctl.rescue import carry_out, look


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metastore_state, "_WAIT", 0.0)
    monkeypatch.setattr(look, "_PAUSE", 0.0)
    monkeypatch.setattr(carry_out, "_GAP", 0.0)


@pytest.fixture(params=[3, 4])
def hive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeHive]:
    with FakeHive(request.param) as fake:
        fake.table("d", "t", str(tmp_path / "t"))
        (tmp_path / "t").mkdir()
        yield fake
