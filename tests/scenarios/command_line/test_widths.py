"""Whatever tells the width, a terminal or COLUMNS, every command keeps to it; what names something is never cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.tables import age, make

Acidctl = Callable[..., Result]

LONG = "a_table_with_a_name_that_is_as_long_as_people_like_to_have_them_in_their_warehouses"
COMPACT = ("compact", "--assume-committed=0s", "--engine", "local")


@pytest.fixture
def warehouse(acidctl: Acidctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table as a compaction leaves it, one with a long name, and one with many partitions."""
    warehouse = tmp_path / "w.db"
    monkeypatch.delenv("COLUMNS", raising=False)
    for name in ("t", LONG):
        assert acidctl("demo", warehouse / name).status == 0
    assert acidctl(*COMPACT, "--major", warehouse / "t").status == 0
    for day in range(8):
        make(warehouse / "orders" / f"day={day}", "base_5", "delta_4_4_0", *(f"delta_{n}_{n}_0" for n in range(6, 18)))
        age(warehouse / "orders" / f"day={day}", 48)
    return warehouse


LINES: tuple[tuple[str, ...], ...] = (
    ("ls",), ("ls", "-v"), ("ls", "t"), ("ls", LONG), ("status",),
    (*COMPACT, "-n", "--auto"), (*COMPACT, "-n", "--major", "-v", LONG),
    ("clean", "-n"), ("clean", "-n", "-v"), ("clean", "-n", "t"), ("clean", "-n", "orders/day=1"),
    ("nightly", "-n", "--assume-committed=0s", "--engine", "local"), ("erasure", "--where", "id = 3", "t"),
    ("log",), ("log", "t"), ("history", "t"), ("why", "t"), ("why", "orders/day=1", "delta_4_4_0"),
    ("validate",), ("purge", "-n"), ("restore", "--list"), ("explain", "V19"), ("explain",),
    ("explain", "rules"),
)  # fmt: skip


def placed(line: tuple[str, ...], warehouse: Path) -> list[str | Path]:
    """The words, with the last one as a path where it names one; where none does, the warehouse."""
    *words, last = line
    if "explain" in line:
        return list(line)
    return [*words, warehouse / last] if (warehouse / last).exists() else [*line, warehouse]


@pytest.mark.sampled
@pytest.mark.parametrize("columns", [80, 120, 200])
def test_no_line_is_wider_but_by_a_name(
    acidctl: Acidctl, warehouse: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    for line in LINES:
        words = placed(line, warehouse)
        monkeypatch.delenv("COLUMNS", raising=False)
        whole = acidctl(*words)
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = acidctl(*words)
        assert (shown.status, "…" in shown.out) == (whole.status, False), line
        for one in shown.out.splitlines():
            is_name = len(one.split()) <= 2 or str(warehouse) in one.split()[0]
            assert len(one) <= columns or (is_name and "  " not in one.strip()), (line, one)
        paths = {word.rstrip(":,") for word in whole.out.split() if word.startswith(str(warehouse))}
        assert paths <= {word.rstrip(":,") for word in shown.out.split()}, line


def test_a_table_in_a_pipe_has_a_line_for_each_row(acidctl: Acidctl, warehouse: Path) -> None:
    shown = acidctl("ls", warehouse / "t").out.splitlines()
    assert len(shown) == 2 + 5 + 1
    assert len({line.index("_000000") < 20 for line in shown[2:-1]}) == 1
    assert {line.rstrip()[-12:] for line in shown[3:-1]} == {"base_0000003"}
