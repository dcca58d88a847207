"""Hadoop's delegation tokens, in the files that Hadoop writes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from support.files.token_files import NEW_FORMAT, OLD_FORMAT, SERVICE

from acidctl.base.errors import UsageProblem
from acidctl.hadoop.tokens import Token, tokens_of_job


def tokens(file: Path, data: bytes) -> list[Token]:
    file.write_bytes(data)
    return tokens_of_job({"HADOOP_TOKEN_FILE_LOCATION": str(file)})


@pytest.mark.parametrize("data", [OLD_FORMAT, NEW_FORMAT], ids=["old", "new"])
def test_both_formats_are_read(tmp_path: Path, data: bytes) -> None:
    found = tokens(tmp_path / "tokens", data)
    assert [(one.kind, one.service) for one in found] == [("HDFS_DELEGATION_TOKEN", name) for name in ("x", SERVICE)]
    assert all(b"root@TEST.LOCAL" in one.identifier and len(one.password) == 20 for one in found)
    assert [Token.of_text(one.as_text()) for one in found] == found
    assert "password" not in repr(found[0])


@pytest.mark.parametrize("data", [OLD_FORMAT, NEW_FORMAT], ids=["old", "new"])
def test_a_file_that_was_cut_is_told(tmp_path: Path, data: bytes) -> None:
    for size in range(len(data) - 1):
        with suppress(UsageProblem):
            assert len(tokens(tmp_path / "tokens", data[:size])) < 2


def test_without_the_variable_there_are_none_and_a_missing_file_is_told(tmp_path: Path) -> None:
    assert tokens_of_job({}) == []
    with pytest.raises(UsageProblem, match="No such file"):
        tokens_of_job({"HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "none")})


@pytest.mark.parametrize("text", ["", "x", "AAAA", "////"])
def test_what_is_no_token_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        Token.of_text(text)
