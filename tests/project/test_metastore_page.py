"""docs/how-to/metastore.md: every setting, and messages that the program has."""

from __future__ import annotations

import re

from make_docs import DATA
from support.paths import REPO

from acidctl.metastore.settings import NAMES

PAGE = (REPO / "docs" / "how-to" / "metastore.md").read_text("utf-8")


def test_every_setting_has_a_meaning_and_stands_on_the_page() -> None:
    assert list(DATA["metastore-settings"]) == list(NAMES)
    table = PAGE.partition("<!-- metastore-settings:begin -->")[2].partition("<!-- metastore-settings:end -->")[0]
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*?) \| .+ \|$", table, re.MULTILINE))
    assert {name: tuple(re.findall(r"`([^`]+)`", keys)) for name, keys in rows.items()} == NAMES


def test_the_page_speaks_of_no_other_setting() -> None:
    said = set(re.findall(r"--set metastore\.([a-z-]+)=", PAGE)) | set(re.findall(r"`([a-z-]+)=[a-zA-Z]+`", PAGE))
    assert said <= set(NAMES)


def test_the_messages_of_the_page_are_those_of_the_program() -> None:
    sources = [*(REPO / "acidctl" / "metastore").rglob("*.py"), REPO / "acidctl" / "hadoop" / "kerberos.py"]
    sources += [REPO / "acidctl" / name for name in ("hadoop/site_files.py", "location/arguments.py")]
    sources += [REPO / "acidctl/cli/options/asked_metastore.py"]
    program = "".join(path.read_text("utf-8") for path in sources)
    table = PAGE.partition("## When it does not work")[2]
    messages = [
        text for cell in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE) for text in re.findall("`([^`]+)`", cell)
    ]
    assert len(messages) > 10
    for message in messages:
        parts = re.split(r"\.\.\.[^ ]*|: Connection refused", message)
        assert all(part.strip() in program for part in parts), message
