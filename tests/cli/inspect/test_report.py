"""`report`: its figures are those of the commands that know them, in every form, whatever tables are called."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.metastore.fake_hive import FakeHive
from support.tables import CLEAN_NOW, age, make
from support.terminals import Terminals

from acidctl.acid.listing import Listing
from acidctl.cli.inspect.report import LARGEST, WORST
from acidctl.storage.local.filesystem import LocalFileSystem

Acidctl = Callable[..., Result]
TEN = [f"delta_{n:07d}_{n:07d}_0000" for n in range(1, 11)]
BASE = "base_0000010"
HOSTILE = ('<script>alert("1")<', "\x1b[31mred", "\u202egnp", "x" * 200, "`|*[a](b)", "a&amp;'\"")


class Shown(HTMLParser):
    """The tags, the ids and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href", "action")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Tables in all kinds of states."""
    tree = tmp_path / "sales.db"
    age(make(tree / "old", BASE, *TEN), 48)
    make(tree / "young", BASE, *TEN)
    make(tree / "worn" / "day=1", *TEN, "delta_0000011_0000011_0000", "_tmp_1/x")
    make(tree / "worn" / "day=2", *TEN[:2])
    return tree


def report_of(acidctl: Acidctl, *words: str | Path) -> Any:
    found = acidctl("report", "-o", "json", *words)
    assert found.status == 0, found.err
    return found.json()


def test_the_figures_are_those_of_status_and_ls(acidctl: Acidctl, tree: Path) -> None:
    found = report_of(acidctl, tree)
    status = acidctl("status", "-o", "json", tree).json()
    assert {key: found[key] for key in status if key != "lastNightly"} == {
        k: v for k, v in status.items() if k != "lastNightly"
    }
    listed = acidctl("ls", "-o", "json", tree).json()
    tables = {Path(one["table"]).name: one for one in found["largest"]}
    assert set(tables) == {"old", "young", "worn"}
    for name, table in tables.items():
        mine = [one for one in listed if f"/{name}" in one["location"]]
        assert table["locations"] == len(mine)
        assert table["deltas"] == sum(one["deltas"] for one in mine)
        for state in ("current", "obsolete", "aborted", "ignored"):
            assert (table[state], table[f"{state}Bytes"]) == tuple(
                sum(one[key] for one in mine) for key in (state, f"{state}Bytes")
            )
        assert table["bytes"] == sum(one["bytes"] for one in mine)
    for name in ("old", "young"):
        (mine,) = (one for one in listed if one["location"].endswith(f"/{name}"))
        assert {key: value for key, value in tables[name].items() if key != "table"}.items() <= mine.items()
    assert found["whole"]["bytes"] == sum(table["bytes"] for table in tables.values())
    assert found["worst"][0]["table"] == str(tree / "worn")
    assert found["sources"] == {"everything": 4}


def test_trash_is_a_use_of_its_own(acidctl: Acidctl, tree: Path) -> None:
    assert acidctl(*CLEAN_NOW, tree / "old").status == 0
    (old,) = (one for one in report_of(acidctl, tree)["largest"] if one["table"].endswith("/old"))
    assert old["trashBytes"] > 0 == old["obsoleteBytes"]


def test_nothing_else_is_replaced(acidctl: Acidctl, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("my notes")
    for target, status in (
        (tmp_path / "notes.txt", 7), (tree / "old" / "report.html", 7), (tmp_path, 3), (tmp_path / "no" / "x", 3),
    ):  # fmt: skip
        found = acidctl("report", "--out", target, tree)
        assert found.status == status, (target, found.err)
        assert found.out == ""
    assert (tmp_path / "notes.txt").read_text() == "my notes"
    assert {path.name for path in tmp_path.iterdir()} == {"sales.db", "notes.txt"}


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_a_report_takes_the_place_of_the_one_before(acidctl: Acidctl, tree: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"report.{form}"
    for _ in range(2):
        found = acidctl("report", "-o", form, "--out", out, tree)
        assert (found.status, found.out) == (0, ""), found.err
    assert "sales.db" in out.read_text()


def test_each_location_is_listed_once(acidctl: Acidctl, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    real = LocalFileSystem.list_tree

    def counted(self: LocalFileSystem, path: str, top: Listing | None = None) -> Listing:
        listed.append(path)
        return real(self, path, top)

    monkeypatch.setattr(LocalFileSystem, "list_tree", counted)
    report_of(acidctl, tree)
    inside = sorted(path for path in listed if path not in (str(tree), str(tree / "worn")))
    assert inside == sorted(str(tree / name) for name in ("old", "young", "worn/day=1", "worn/day=2"))


def test_a_location_that_cannot_be_read_is_said_and_the_rest_is_told(acidctl: Acidctl, tree: Path) -> None:
    bad = make(tree / "bad", "base_0000001")
    (bad / "base_0000001" / "_metadata_acid").write_text("no JSON")
    found = acidctl("report", "-o", "json", tree)
    assert found.status == 4
    assert (found.json()["failed"], found.json()["verdict"], found.json()["locations"]) == (1, "trouble", 4)
    assert "1 location could not be read" in Shown(acidctl("report", tree).out).text


def test_nothing_at_all_is_a_page_too(acidctl: Acidctl, tmp_path: Path) -> None:
    (tmp_path / "empty.db").mkdir()
    for form in ("html", "md"):
        assert acidctl("report", "-o", form, tmp_path / "empty.db").status == 17


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Tables with names that would be markup, or act on a terminal."""
    for name in HOSTILE:
        make(tmp_path / "w" / name, *TEN, "delta_0000011_0000011_0000")
    make(tmp_path / os.fsdecode(b"w/\xff"), BASE, *TEN)
    return tmp_path / "w"


def test_no_name_is_markup_in_a_page(acidctl: Acidctl, hostile: Path) -> None:
    page = acidctl("report", hostile).out
    found = Shown(page)
    assert not {"script", "img", "iframe", "object", "link", "form", "base"} & set(found.tags)
    assert all(link.startswith("#") for link in found.links)
    assert len(found.ids) == len(set(found.ids))
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert '<script>alert("1")<' in found.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", page)
    assert "http" not in re.sub(r'http-equiv="[^"]*"', "", page)


def test_no_name_is_markup_in_markdown_or_a_control_in_json(acidctl: Acidctl, hostile: Path) -> None:
    text = acidctl("report", "-o", "md", hostile).out
    assert "<script" not in text.replace(r"\<script", "")
    assert r"\`\|\*\[a\](b)" in text
    rows = [line for line in text.splitlines() if line.startswith("| /")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows if "→" not in row and "UTC" not in row}) == 1
    for form in ("md", "json"):
        out = acidctl("report", "-o", form, hostile).out
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", out)


# --- large, and with a metastore -------------------------------------------------------------------------------------


def test_a_page_of_many_tables_is_bounded(acidctl: Acidctl, tmp_path: Path) -> None:
    for number in range(300):
        make(tmp_path / f"t{number}", *TEN[: 2 + number % 3])
    found = report_of(acidctl, tmp_path)
    assert (len(found["largest"]), len(found["worst"]), found["others"]["tables"]) == (LARGEST, WORST, 300 - LARGEST)
    assert sum(one["bytes"] for one in found["largest"]) + found["others"]["bytes"] == found["whole"]["bytes"]
    page = acidctl("report", tmp_path).out
    assert len(page) < 200_000
    assert "260 smaller tables" in page


@pytest.fixture
def fake() -> Iterator[FakeHive]:
    with FakeHive(4) as one:
        yield one


def test_who_holds_back_cleaning_is_named(acidctl: Acidctl, fake: FakeHive, tmp_path: Path) -> None:
    table = age_made(tmp_path)
    fake.table("db", "t", f"file:{table}")
    fake.write_ids["db.t"] = list(range(1, 11))
    txn = fake.begin(ago=90_000, query="<b>select</b>", user="<i>eve</i>")
    fake.entry("db", "t", "ready for cleaning", committed=9000, next_txn=txn + 1)
    words = ("--metastore", fake.address, "hive:db.t")
    found = acidctl("report", "-o", "json", *words).json()
    assert found["largest"][0]["table"] == "db.t"
    assert found["blocked"]["count"] == 1
    text = Shown(acidctl("report", *words).out).text
    assert f"transaction {txn} of <i>eve</i>@" in text
    assert f"transaction {txn} of" in acidctl("report", "-o", "md", *words).out


def age_made(tmp_path: Path) -> Path:
    table = make(tmp_path / "t", BASE, *TEN)
    age(table, 48)
    return table


def test_a_page_is_not_thrown_at_a_terminal(terminal: Terminals, tmp_path: Path) -> None:
    make(tmp_path / "t", *TEN)
    status, shown = terminal.run("report", tmp_path / "t")
    assert (status, "--out FILE" in shown) == (2, True)
    status, shown = terminal.run("report", "-o", "md", tmp_path / "t")
    assert (status, "## At a glance" in shown) == (0, True)
