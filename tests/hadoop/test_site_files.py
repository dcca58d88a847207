"""Hadoop's configuration files, as others may leave them: broken, unreadable, hostile."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from acidctl.base.errors import AccessError, UsageProblem
from acidctl.hadoop.site_files import SiteFiles

BOMB = (
    '<?xml version="1.0"?><!DOCTYPE c [<!ENTITY a "' + "ha" * 500 + '">'
    + "".join(f'<!ENTITY {one} "{f"&{before};" * 50}">' for before, one in zip("abcde", "bcdef", strict=True))
    + "]><configuration><property><name>a</name><value>&f;</value></property></configuration>"
)  # fmt: skip
OUTSIDE = (
    '<?xml version="1.0"?><!DOCTYPE c [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    "<configuration><property><name>a</name><value>&e;</value></property></configuration>"
)


def properties(**pairs: str) -> str:
    """A configuration."""
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in pairs.items())
    return f'<?xml version="1.0"?><configuration>{"".join(lines)}</configuration>'


def read(folder: Path) -> SiteFiles:
    return SiteFiles.read(str(folder), ("core-site.xml", "hive-site.xml"), "HIVE_CONF_DIR")


def test_of_two_files_the_later_counts_and_each_property_knows_its_file(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text(properties(a="1", b="2"))
    (tmp_path / "hive-site.xml").write_text(properties(b="3"))
    found = read(tmp_path)
    assert (found.get("a"), found.get("b"), found.get("c", "4")) == ("1", "3", "4")
    assert found.files == {"a": str(tmp_path / "core-site.xml"), "b": str(tmp_path / "hive-site.xml")}
    assert read(tmp_path / "not-there") == SiteFiles()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not XML",
        "<configuration><property>",
        "<a>\0</a>",
        '<?xml version="1.0" encoding="klingon"?><a/>',
        BOMB,
        OUTSIDE,
    ],
    ids=["empty", "text", "cut", "nul", "encoding", "bomb", "external entity"],
)
def test_what_is_no_configuration_is_told_with_its_path(tmp_path: Path, content: str) -> None:
    (tmp_path / "hive-site.xml").write_text(content)
    tracemalloc.start()
    try:
        with pytest.raises(UsageProblem, match=r"cannot read .*hive-site\.xml") as raised:
            read(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    assert "HIVE_CONF_DIR" in raised.value.hint
    assert "root:" not in str(raised.value)


def test_what_is_no_file_or_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "hive-site.xml"
    os.mkfifo(path)
    with pytest.raises(UsageProblem, match="not a file"):
        read(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageProblem, match="cannot read"):
        read(tmp_path)
    path.rmdir()
    path.symlink_to("/dev/zero")
    with pytest.raises(UsageProblem, match="not a file"):
        read(tmp_path)
    path.unlink()
    path.write_text(" " * (9 << 20))
    with pytest.raises(UsageProblem, match="larger"):
        read(tmp_path)
    with pytest.raises(UsageProblem, match="Not a directory"):
        read(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_others_is_a_question_of_access(tmp_path: Path) -> None:
    path = tmp_path / "hive-site.xml"
    path.write_text(properties(a="1"))
    path.chmod(0)
    with pytest.raises(AccessError, match="may not read"):
        read(tmp_path)


def test_values_name_others_without_end_and_without_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REALM", "ACME.COM")
    loops = {
        "me": "${me}x",
        "one": "${two}",
        "two": "${one}",
        "user": "hive/_HOST@${env.REALM}",
        "odd": "${nobody}/${user}",
    }
    wide = {f"w{at}": f"${{w{at + 1}}}" * 1000 for at in range(30)}
    (tmp_path / "hive-site.xml").write_text(properties(**loops, **wide))
    found = read(tmp_path)
    assert found.get("user") == "hive/_HOST@ACME.COM"
    assert found.get("me").endswith("xxx")
    assert found.get("odd") == "${nobody}/${user}", "Hadoop ends at the first that it does not know, too"
    assert found.get("one") in ("${one}", "${two}")
    assert len(found.get("w0")) < 1 << 20


def test_a_thousand_levels_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "hive-site.xml").write_text("<a>" * 100_000 + properties(a="1").partition("?>")[2] + "</a>" * 100_000)
    assert read(tmp_path).get("a") == "1"
