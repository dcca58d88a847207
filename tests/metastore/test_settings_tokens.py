"""Hadoop's delegation tokens, as text and in files: those of Hadoop, and whatever else lies where they should be."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acidctl.base.errors import UsageProblem
from acidctl.hadoop.tokens import VARIABLE, Token
from acidctl.metastore.settings import token_of_file
from acidctl.metastore.transport.sasl_digest import token_of_text

TOKENS = st.builds(
    Token,
    st.binary(max_size=300),
    st.binary(max_size=40),
    st.sampled_from(["HIVE_DELEGATION_TOKEN", "", "é"]),
    st.text(st.characters(codec="utf-8"), max_size=10),
)


@given(TOKENS)
def test_a_token_comes_back_from_its_text(token: Token) -> None:
    assert Token.of_text(token.as_text()) == token
    assert Token.of_text(f" {token.as_text()}==\n") == token


def test_its_text_is_each_part_with_its_length_before_it() -> None:
    token = Token(b"id", b"pw", "HIVE_DELEGATION_TOKEN", "svc")
    assert token.as_text() == "AmlkAnB3FUhJVkVfREVMRUdBVElPTl9UT0tFTgNzdmM"


def test_a_token_is_never_shown() -> None:
    token = Token(b"identifier", b"password", "HIVE_DELEGATION_TOKEN")
    assert "identifier" not in repr(token)
    assert "password" not in repr(token)


@given(st.binary(max_size=60) | st.text(max_size=40))
def test_any_text_is_a_token_or_told_without_being_repeated(given_: bytes | str) -> None:
    text = given_ if isinstance(given_, str) else urlsafe_b64encode(given_).decode()
    try:
        token_of_text(text)
    except UsageProblem as error:
        assert len(text) < 8 or text not in str(error)


def writable(number: int) -> bytes:
    if number < 128:
        return bytes([number])
    size = (number.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + number.to_bytes(size, "big")


def part(data: bytes) -> bytes:
    return writable(len(data)) + data


def old_file(*tokens: Token) -> bytes:
    """Hadoop's own form."""
    body = b"".join(
        part(b"alias")
        + part(one.identifier)
        + part(one.password)
        + part(one.kind.encode())
        + part(one.service.encode())
        for one in tokens
    )
    return b"HDTS\0" + writable(len(tokens)) + body + writable(0)


def varint(number: int) -> bytes:
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def message(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def new_file(*tokens: Token) -> bytes:
    """That of protobuf."""
    body = b""
    for one in tokens:
        fields = (one.identifier, one.password, one.kind.encode(), one.service.encode())
        token = b"".join(message(at, data) for at, data in enumerate(fields, 1))
        body += message(1, message(1, b"alias") + message(2, token))
    return b"HDTS\1" + varint(len(body)) + body


@pytest.mark.parametrize("form", [old_file, new_file])
def test_the_token_of_a_file_is_hives_and_of_the_service(form: object, tmp_path: Path) -> None:
    kind = "HIVE_DELEGATION_TOKEN"
    hdfs, server2 = Token(b"h", b"p", "HDFS_DELEGATION_TOKEN"), Token(b"s", b"p", kind, "hiveserver2ClientToken")
    plain, named = Token(b"m" * 200, b"p", kind), Token(b"n", b"p", kind, "other")
    path = tmp_path / "tokens"

    def found(signature: str, *tokens: Token) -> Token | None:
        path.write_bytes(form(*tokens))  # type: ignore[operator]
        return token_of_file({VARIABLE: str(path)}, signature)

    assert found("", hdfs, server2, named, plain) == plain
    assert found("", hdfs, named) == named
    assert found("other", plain, named) == named
    assert found("third", plain, named) is None
    assert found("", hdfs, server2) is None
    assert token_of_file({}, "") is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.sampled_from([old_file, new_file]), st.integers(0, 200), st.binary(max_size=30))
def test_a_file_of_anything_is_told(tmp_path: Path, form: object, at: int, data: bytes) -> None:
    whole = form(Token(b"id", b"pw", "HIVE_DELEGATION_TOKEN", "s"))  # type: ignore[operator]
    path = tmp_path / "tokens"
    path.write_bytes(whole[: at % len(whole)] + data)
    with suppress(UsageProblem):
        token_of_file({VARIABLE: str(path)}, "")


def test_a_file_that_is_not_there_or_is_a_folder_or_is_huge(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UsageProblem, match="cannot read"):
            token_of_file({VARIABLE: str(path)}, "")
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 30)
    assert token_of_file({VARIABLE: str(huge)}, "") is None
