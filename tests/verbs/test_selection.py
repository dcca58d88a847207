"""Locations that an earlier verb of the same run found are not looked for again."""

from __future__ import annotations

from pathlib import Path

from acidctl.location.find import find
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.verbs.events import Events
from acidctl.verbs.selection import Selection


def test_known_locations_need_nobody_who_resolves_their_names(tmp_path: Path) -> None:
    """As in a nightly run over names of tables."""
    (tmp_path / "t" / "delta_1_1_0").mkdir(parents=True)
    known = tuple(find([str(tmp_path / "t")], {}, SnapshotResolver()))
    selection = Selection(("hive:db.t", "hive:db.u"), known=known)
    assert [found.location.path for found in selection.trashes(Events(), changes=True)] == [str(tmp_path / "t")]
