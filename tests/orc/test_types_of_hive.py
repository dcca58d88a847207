"""Types as the metastore writes them."""

from __future__ import annotations

import pytest

from acidctl.base.errors import BadDataError
from acidctl.orc.types import parse_type

LOCAL = "timestamp with local time zone"


@pytest.mark.parametrize("text", [LOCAL, f"{LOCAL}('Asia/Kolkata')", f"{LOCAL}( 'UTC' )"])
def test_a_local_timestamp_may_name_the_zone_of_its_session(text: str) -> None:
    assert parse_type(text).kind == LOCAL
    nested = parse_type(f"map<string,struct<at:{text},n:int>>").children[1]
    assert nested.names == ("at", "n")
    assert [child.kind for child in nested.children] == [LOCAL, "int"]


@pytest.mark.parametrize("text", [f"{LOCAL}(3)", f"{LOCAL}('UTC", f"{LOCAL}('a')b", "timestamp('UTC')", "int('UTC')"])
def test_no_other_type_has_a_zone(text: str) -> None:
    with pytest.raises(BadDataError):
        parse_type(text)
