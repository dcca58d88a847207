"""Cleaning where nothing can be renamed: no trash, locks by conditional writes, and a word on both."""

from __future__ import annotations

import uuid

import pytest
from support.cleaning import apply_plan
from support.trouble.locks import locked

from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED
from acidctl.base.errors import ConflictError, RefusedError
from acidctl.cleaning.apply import How
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import AT_ONCE
from acidctl.location.change.lock import LOCK
from acidctl.location.snapshot import take_snapshot
from acidctl.storage.registry import open_location

pytestmark = pytest.mark.server


@pytest.mark.parametrize("stray", ["/", "/000000_0", "/bucket_00000"])
def test_a_stray_key_never_stands_for_the_table(bucket: str, s3_options: dict[str, str], stray: str) -> None:
    """``t//`` has the empty name in ``t``: what is removed by that name is all of it."""
    fs, path = open_location(f"s3://{bucket}/test-{uuid.uuid4().hex}/t", s3_options)
    raw = fs._fs  # type: ignore[attr-defined]
    for name in ("base_5", "delta_2_2_0"):
        fs.write_bytes(f"{path}/{name}/bucket_00000", b"x")
        fs.write_bytes(f"{path}/{name}/_metadata_acid", METADATA_ACID_COMPACTED)
    raw.call_s3("put_object", Bucket=bucket, Key=f"{path[1:]}/{stray}", Body=b"" if stray == "/" else b"x")
    plan = plan_cleaning(take_snapshot(fs, path), AT_ONCE)
    assert plan.names == ("delta_2_2_0",)
    with locked(fs, path):
        apply_plan(plan, How.DELETE)
    left = raw.call_s3("list_objects_v2", Bucket=bucket, Prefix=f"{path[1:]}/")["Contents"]
    assert [entry["Key"].removeprefix(f"{path[1:]}/") for entry in left] == [
        *(stray, "base_5/_metadata_acid", "base_5/bucket_00000"),
    ]


def test_table_on_s3_is_cleaned_without_trash(bucket: str, s3_options: dict[str, str]) -> None:
    fs, path = open_location(f"s3://{bucket}/test-{uuid.uuid4().hex}/t", s3_options)
    for name in ("base_5", "base_3", "delta_2_2_0"):
        fs.write_bytes(f"{path}/{name}/bucket_00000", b"x")
        fs.write_bytes(f"{path}/{name}/_metadata_acid", METADATA_ACID_COMPACTED)
    plan = plan_cleaning(take_snapshot(fs, path), AT_ONCE)
    assert plan.names == ("delta_2_2_0", "base_3")
    assert plan_cleaning(take_snapshot(fs, path)).removals == ()
    with pytest.raises(RefusedError, match="can have no trash") as refused:
        apply_plan(plan)
    assert "--no-trash" in refused.value.hint
    with locked(fs, path):
        with pytest.raises(ConflictError, match="is locked"), locked(fs, path):
            raise AssertionError
        assert len(apply_plan(plan, How.DELETE).removed) == 2
    assert {entry.path for entry in fs.list_dir(path).entries} == {"base_5"}
    fs.create_exclusive(f"{path}/{LOCK}", b"torn")
    with pytest.raises(ConflictError, match="is locked"), locked(fs, path, break_stale=True):
        raise AssertionError
