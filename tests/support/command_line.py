"""Calling acidctl in this process, as a shell would."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from acidctl.cli.main import main
from acidctl.cli.output.terminal import VERBOSITY
from support.terminals import Terminals, terminals


@dataclass(frozen=True)
class Result:
    """What a shell would see."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def one(self) -> Any:
        """The only object of an array."""
        (found,) = self.json()
        return found

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def acidctl(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Result]:
    """``acidctl("ls", path)`` -> Result."""

    def call(*args: str | Path) -> Result:
        capfdbinary.readouterr()
        try:
            with pytest.raises(SystemExit) as stop:
                main([str(arg) for arg in args])
        finally:
            VERBOSITY.set()  # of that process, not of this one
        captured = capfdbinary.readouterr()
        return Result(int(stop.value.code or 0), captured.out.decode(), captured.err.decode())

    return call


def redirected(target: Path, *args: str | Path) -> None:
    """``acidctl ARGS > target``, for output that is not text."""
    with target.open("wb") as out:
        subprocess.run([sys.executable, "-m", "acidctl", *map(str, args)], stdout=out, check=True)


@pytest.fixture
def crud(acidctl: Callable[..., Result], tmp_path: Path) -> Path:
    """The walk-through table."""
    table = tmp_path / "crud_table"
    assert acidctl("demo", table).status == 0
    return table


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminals]:
    """``terminal.run("ls", path)`` -> the exit status, and what a terminal shows."""
    with terminals() as server:
        yield server
