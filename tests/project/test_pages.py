"""README and docs/: no dead link, no page that nobody finds, and names that the program has."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator

import pytest
from support.paths import REPO

from acidctl.acid.reasons import Code
from acidctl.base import errors
from acidctl.cli.command_table import walk
from acidctl.cli.config.settings import options_of
from acidctl.cli.report import metrics
from acidctl.hive.stuck import Cause
from acidctl.spark.datasource.load_options import METASTORE, NAMES, STORAGE

PAGES = sorted(
    str(path.relative_to(REPO))
    for path in (*(REPO / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG")),
                 *(REPO / "docs").rglob("*.md"))
)  # fmt: skip

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_TITLE = re.compile(r"^(#{1,6}) +(.+?)\s*$", re.MULTILINE)


def text_of(page: str) -> str:
    """A page without its fenced blocks."""
    return _FENCED.sub("", (REPO / page).read_text("utf-8"))


def links(text: str) -> Iterator[tuple[str, str]]:
    """(path, fragment) of every relative link; what stands in back quotes is not one."""
    for target in _LINK.findall(re.sub(r"`[^`\n]*`", "`code`", text)):
        if not re.match(r"[a-z][a-z0-9+.-]*:", target):
            path, _, fragment = target.partition("#")
            yield path, fragment


def fragments(text: str) -> set[str]:
    """What a link may have behind ``#``: the titles as GitHub spells them."""
    found: set[str] = set()
    for _, title in _TITLE.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        again = 1
        while (name if again == 1 else f"{name}-{again - 1}") in found:
            again += 1
        found.add(name if again == 1 else f"{name}-{again - 1}")
    return found


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (REPO / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


def table_names(page: str) -> set[str]:
    """What stands in back quotes in the first cells of a page's tables."""
    cells = re.findall(r"^\| (`[^|]*) \|", text_of(page), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


# --- the shape of the pages ---


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_exist(page: str) -> None:
    wrong = []
    for path, fragment in links(text_of(page)):
        target = ((REPO / page).parent / path).resolve() if path else REPO / page
        inside = target.is_relative_to(REPO) and target.exists()
        if not inside or (fragment and fragment not in fragments(text_of(str(target.relative_to(REPO))))):
            wrong.append(f"{path}#{fragment}")
    assert not wrong


def test_every_page_can_be_reached_from_the_readme() -> None:
    found, open_ends = {"README.md"}, ["README.md"]
    while open_ends:
        page = open_ends.pop()
        for path, _ in links(text_of(page)):
            target = ((REPO / page).parent / path).resolve()
            name = str(target.relative_to(REPO)) if target.is_relative_to(REPO) else ""
            if name in PAGES and name not in found:
                found.add(name)
                open_ends.append(name)
    assert set(PAGES) <= found


def test_the_index_lists_every_page_of_docs() -> None:
    listed = {f"docs/{path}" for path, _ in links(text_of("docs/index.md"))}
    assert {page for page in PAGES if page.startswith("docs/")} - listed == {"docs/index.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_a_page_has_one_title_and_a_purpose_below_it(page: str) -> None:
    found = _TITLE.findall(text_of(page))
    assert [level for level, _ in found].count("#") == 1
    assert found[0][0] == "#"
    below = text_of(page).partition(f"# {found[0][1]}\n")[2].lstrip("\n")
    assert re.match(r"[A-Z`\[]", below)


def test_dead_links_are_found() -> None:
    text = "[a](b.md#c) `[x](y)` [d](https://x.example/y) [e](#f)"
    assert list(links(text)) == [("b.md", "c"), ("", "f")]
    assert fragments("# `ls -o json`\n## A, [b](c.md): *d*\n## X\n## X\n") == {"ls--o-json", "a-b-d", "x", "x-1"}


# --- what the pages say ---


@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_toml_json_and_python_can_be_read(page: str) -> None:
    for block in blocks(page, "toml"):
        tomllib.loads(block)
    for block in blocks(page, "json"):
        json.loads(block)
    for block in blocks(page, "python"):
        ast.parse(block)


def test_the_list_of_typed_options_is_whole() -> None:
    page = text_of("docs/reference/configuration.md")
    listed = page.partition("Only typed count")[2].partition("\n## ")[0]
    names = set(re.findall(r"`--([a-z-]+)`", listed))
    typed = set().union(*(options_of(command, typed_only=True) for _, command in walk()))
    assert names == typed | {"config", "profile", "help", "version"}  # which say where to look, or what to print


def test_every_error_of_the_api_is_listed_with_its_code() -> None:
    page = text_of("docs/reference/python-api.md")
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.AcidctlError)]
    for one in classes:
        assert one is errors.AcidctlError or f"| `{one.__name__}` | `{one.code}` |" in page


def test_every_cause_of_a_stuck_compaction_has_a_way_out() -> None:
    page = text_of("docs/how-to/blocked.md").partition("## A compaction that is stuck")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z-]+)`", page)) >= {cause.value for cause in Cause}


def test_every_series_of_metrics_is_listed_with_its_labels() -> None:
    page = text_of("docs/reference/metrics.md")
    for name in metrics._HELP:
        labels = ", ".join(f"`{label}`" for label in metrics._LABELS.get(name, ()))
        assert f"| `{name}` | {labels}{' ' if labels else ''}|" in page


def test_every_option_of_the_spark_source_is_listed() -> None:
    listed = table_names("docs/reference/spark-source.md")
    assert {name for name in listed if name[0].islower() and " " not in name} == {
        *NAMES, f"{STORAGE}NAME", f"{METASTORE}NAME",
    }  # fmt: skip


def test_the_codes_of_states_are_those_of_reasons() -> None:
    rows = r"^\| `([a-z-]+)` \| (?:current|obsolete|aborted|ignored) \|"
    listed = re.findall(rows, text_of("docs/reference/states.md"), re.MULTILINE)
    assert len(listed) > 10
    assert {*listed} <= {*Code}
