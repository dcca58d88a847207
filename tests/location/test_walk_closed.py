"""Directories of a location that may not be listed: hidden ones are told to who has to know all."""

from __future__ import annotations

from pathlib import Path

from acidctl.acid.listing import Listing
from acidctl.base.errors import AccessError, AcidctlError
from acidctl.location.walk import list_entries
from acidctl.storage.local.filesystem import LocalFileSystem


class Closed(LocalFileSystem):
    """With one directory that nobody may look into."""

    def list_tree(self, path: str, top: Listing | None = None) -> Listing:
        raise AccessError(f"cannot list {path}", "permission denied", "")

    def list_dir(self, path: str) -> Listing:
        if path.endswith("/.acidctl-trash"):
            raise AccessError(f"cannot list {path}", "permission denied", "")
        return super().list_dir(path)


def test_hidden_directories_are_told_where_that_is_asked_for(tmp_path: Path) -> None:
    for name in (".acidctl-trash", "delta_0000001_0000001_0000"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bucket_00000").write_bytes(b"x")
    told: dict[str, AcidctlError] = {}
    listing = list_entries(Closed(), str(tmp_path), None, told.__setitem__)
    assert not told
    list_entries(Closed(), str(tmp_path), None, told.__setitem__, hidden=True)
    assert set(told) == {".acidctl-trash"}
    assert any(entry.path.startswith("delta_") for entry in listing.entries)
