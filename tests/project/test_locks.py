"""requirements/: each lock has one version with hashes of all that pyproject.toml asks for, within its bounds."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import bounds
import lock
import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from support.paths import REPO

PYPROJECT = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
PYTHONS = ("3.11.5", "3.12.1", "3.13.0", "3.14.0")


def _locked(name: str) -> list[Requirement]:
    text = (REPO / "requirements" / name).read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", line) for line in lines), "every version has a hash"
    return [Requirement(line.partition(" --hash")[0]) for line in lines]


def _asked(extras: tuple[str, ...]) -> Iterator[Requirement]:
    yield from map(Requirement, PROJECT["dependencies"])
    for extra in extras:
        for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
            if requirement.name == PROJECT["name"]:
                yield from _asked(tuple(requirement.extras))
            else:
                yield requirement


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", lock.LOCKS)
def test_a_lock_fits_what_pyproject_asks_for(name: str, python: str) -> None:
    environment = {
        "python_full_version": python,
        "python_version": python.rpartition(".")[0],
        "sys_platform": "linux",
        "platform_machine": "x86_64",
    }
    here = [one for one in _locked(name) if one.marker is None or one.marker.evaluate(environment)]
    chosen = {one.name: Version(next(iter(one.specifier)).version) for one in here}
    assert len(chosen) == len(here), "a package has two versions for one Python"
    for asked in _asked(lock.LOCKS[name]):
        if asked.marker is None or asked.marker.evaluate(environment):
            assert chosen[asked.name.lower()] in asked.specifier, f"{asked}: run python tools/lock.py"


def test_the_builder_is_pinned() -> None:
    assert all(re.fullmatch(r"\w+==[\d.]+", one) for one in PYPROJECT["build-system"]["requires"])


def test_the_tests_of_the_bounds_are_there() -> None:
    assert [name for name in bounds.SMOKE if not (REPO / "tests" / name).is_file()] == []
    assert set(bounds.EXTRAS) == PROJECT["optional-dependencies"].keys() - {"docs", "test", "dev", "kerberos"}
