"""`validate` on every kind of store: worker processes open it again from its spec."""

from __future__ import annotations

from pathlib import Path

from support.files.acid_files import delete, write_by_pyorc
from support.stores import Store
from support.validating import QUIET, found, healthy

from acidctl.validation.findings import Depth
from acidctl.validation.report import CheckOptions, LocationToCheck
from acidctl.validation.run import check_locations


def test_a_fault_is_found(store: Store, tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    table: Path = healthy(tmp_path_factory.mktemp("made") / "t")
    write_by_pyorc(table / "delete_delta_0000003_0000003_0000", [delete(1, 9, 3)])
    root = f"{store.root}/t"
    for path in sorted(table.rglob("*")):
        target = f"{root}/{path.relative_to(table)}"
        store.fs.make_dirs(target if path.is_dir() else target.rpartition("/")[0])
        if path.is_file():
            store.fs.write_bytes(target, path.read_bytes())
    (report,) = check_locations([LocationToCheck(store.fs, root)], CheckOptions(Depth.DEEP, processes=2, ignored=QUIET))
    assert [str(one.error) for one in report.unchecked] == []
    assert found(report) == {"V33"}
    assert report.rows == 6
