"""A location before it is searched: all that it holds, also what appeared meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from support.files.acid_files import insert, write_acid

from acidctl.erasure.steps import survey
from acidctl.location.find import find
from acidctl.location.snapshot_resolver import SnapshotResolver


def test_a_base_that_appeared_meanwhile_is_searched(
    tmp_path: Path, compacted_meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    bucket = write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, "a")))
    (found,) = find([str(tmp_path)], {}, SnapshotResolver(), looks=False)
    found = replace(found, top=found.fs.list_dir(found.location.path))
    compacted_meanwhile(lambda: shutil.copytree(bucket.parent, tmp_path / "base_0000009"))
    assert {Path(file.path).parent.name for file in survey(found).files} == {bucket.parent.name, "base_0000009"}
