"""S3's own corners: keys are not directories, and several clients have left several signs for them."""

from __future__ import annotations

from typing import Any

import fsspec
import pytest

from acidctl.base.errors import AccessError, NotFoundError, StorageError
from acidctl.storage.registry import open_location

pytestmark = pytest.mark.server


@pytest.fixture
def raw(s3_options: dict[str, str]) -> Any:
    return fsspec.filesystem("s3", **s3_options)


def put(raw: Any, bucket: str, *keys: str, body: bytes = b"") -> None:
    for key in keys:
        raw.call_s3("put_object", Bucket=bucket, Key=key, Body=body)


def keys(raw: Any, bucket: str, prefix: str) -> list[str]:
    found = raw.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix)
    return [entry["Key"] for entry in found.get("Contents", [])]


def test_empty_objects_that_mark_directories(raw: Any, bucket: str, s3_options: dict[str, str]) -> None:
    put(raw, bucket, "marked/t/", "marked/t/base_5/", "marked/t/d/", "marked/t/base_5_$folder$", "marked/t/old")
    put(raw, bucket, "marked/t/base_5/bucket_00000", "marked/t/old/x", body=b"data")
    fs, path = open_location(f"s3://{bucket}/marked/t", s3_options)
    entries = fs.list_tree(path).entries
    assert [(entry.path, entry.is_dir) for entry in entries] == [
        *(("base_5", True), ("base_5/bucket_00000", False), ("d", True), ("old", True), ("old/x", False)),
    ]
    fs.remove_tree(f"{path}/base_5")
    fs.remove_tree(f"{path}/d")
    assert keys(raw, bucket, "marked/") == ["marked/t/", "marked/t/base_5_$folder$", "marked/t/old", "marked/t/old/x"]
    assert not fs.exists(f"{path}/base_5")


def test_a_directory_is_not_its_neighbour(raw: Any, bucket: str, s3_options: dict[str, str]) -> None:
    put(raw, bucket, "near/t/x", "near/t2/y", "near/t.z", body=b"data")
    fs, path = open_location(f"s3://{bucket}/near/t", s3_options)
    assert [entry.path for entry in fs.list_tree(path).entries] == ["x"]
    fs.remove_tree(path)
    assert keys(raw, bucket, "near/") == ["near/t.z", "near/t2/y"]


def test_a_bucket_is_never_made(raw: Any, s3_options: dict[str, str]) -> None:
    fs, path = open_location("s3://no-such-bucket/t", s3_options)
    fs.make_dirs(path)
    for call in (fs.list_tree, fs.stat, fs.read_bytes, lambda path: fs.write_bytes(path, b"")):
        with pytest.raises(NotFoundError):
            call(path)
    assert "no-such-bucket" not in raw.ls("")


def test_missing_credentials_are_told(bucket: str, s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/no/such/file")
    fs, path = open_location(f"s3://{bucket}/t", {"endpoint_url": s3_options["endpoint_url"]})
    with pytest.raises(AccessError) as raised:
        fs.list_tree(path)
    assert "credentials" in raised.value.hint


def test_unreachable_endpoint_is_told_with_its_address() -> None:
    options = {"key": "x", "secret": "x", "endpoint_url": "http://127.0.0.1:1"}
    fs, path = open_location("s3://bucket/t", options)
    with pytest.raises(StorageError) as raised:
        fs.list_tree(path)
    assert "127.0.0.1:1" in raised.value.why


def test_keys_that_no_path_leads_to(raw: Any, bucket: str, s3_options: dict[str, str]) -> None:
    """``t//x``, of which a path makes ``t/x``: never a nameless child, which would be the directory itself."""
    put(raw, bucket, "odd/t//", "odd/t///")
    put(raw, bucket, "odd/t//000000_0", "odd/t//delta_1_1/bucket_00000", "odd/t/base_5/bucket_00000", body=b"data")
    fs, path = open_location(f"s3://{bucket}/odd/t", s3_options)
    assert [entry.path for entry in fs.list_tree(path).entries] == ["base_5", "base_5/bucket_00000"]
    assert [entry.path for entry in fs.list_dir(path).entries] == ["base_5"]


def test_a_file_and_a_directory_of_one_name(raw: Any, bucket: str, s3_options: dict[str, str]) -> None:
    put(raw, bucket, "both/t/d/", "both/t/old", "both/t/bucket_00000/")
    put(raw, bucket, "both/t/d/x", "both/t/old/x", "both/t/bucket_00000", "both/t/f", "both/t/f/x", body=b"data")
    fs, path = open_location(f"s3://{bucket}/both/t", s3_options)
    assert [(entry.path, entry.is_dir) for entry in fs.list_tree(path).entries] == [
        *(("bucket_00000", False), ("d", True), ("d/x", False)),
        *(("f", False), ("f", True), ("f/x", False), ("old", True), ("old/x", False)),
    ]
    fs.remove_tree(f"{path}/old")
    before = keys(raw, bucket, "both/")
    assert before == [
        "both/t/bucket_00000",
        "both/t/bucket_00000/",
        "both/t/d/",
        "both/t/d/x",
        "both/t/f",
        "both/t/f/x",
    ]
    with pytest.raises(StorageError, match="cannot remove") as raised:
        fs.remove_tree(f"{path}/f")
    assert raised.value.why == "a file and a directory have this name"
    assert keys(raw, bucket, "both/") == before


def test_success_without_a_listing_is_an_error(
    raw: Any, bucket: str, s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a proxy says whose server has gone: not that the directory is empty, or ends there."""
    import s3fs

    put(raw, bucket, *(f"pages/t/{number}" for number in range(3)), body=b"data")
    call, asked = s3fs.S3FileSystem._call_s3, []

    async def answers(self: Any, method: str, *arguments: Any, **more: Any) -> Any:
        if method != "list_objects_v2":
            return await call(self, method, *arguments, **more)
        asked.append(method)
        if len(asked) > 1:
            return {"ResponseMetadata": {"HTTPStatusCode": 200}}
        return await call(self, method, *arguments, **{**more, "MaxKeys": 2})

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", answers)
    fs, path = open_location(f"s3://{bucket}/pages/t", s3_options | {"timeout": "59"})
    with pytest.raises(StorageError, match="cannot list") as raised:
        fs.list_tree(path)
    assert "without a listing" in raised.value.why
    assert len(asked) == 2
