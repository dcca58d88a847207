"""Man pages, completion scripts, README, docs/ and help texts: up to date, complete, and with examples that work."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import make_docs as docs
import pytest
from support.paths import REPO

from acidctl.acid.state import State
from acidctl.base.errors import AcidctlError, ExitStatus
from acidctl.cli.command_table import GROUPS, SUMMARIES
from acidctl.cli.main import cli, with_program_options_first
from acidctl.validation.checks import RULES

PAGES = {" ".join(page.path) or "cli": page for page in docs.pages()}
COMMANDS = sorted([*SUMMARIES, *(f"{group} {name}" for group, lines in GROUPS.items() for name in lines)])


@pytest.fixture
def readme() -> str:
    path = REPO / "README.md"
    if not path.is_file():
        pytest.skip("there is no README.md")
    return path.read_text("utf-8")


# --- generated files -----------------------------------------------------------------------------------------------


def test_generating_twice_gives_the_same() -> None:
    assert docs.generate(REPO) == docs.generate(REPO)
    assert set(docs.generate(REPO)) >= {f"man/acidctl-{name.replace(' ', '-')}.1" for name in COMMANDS} | {
        "man/acidctl.1"
    }


def test_write_makes_a_tree_current(tmp_path: Path) -> None:
    (tmp_path / "man").mkdir()
    (tmp_path / "man" / "acidctl-gone.1").write_text("of a command that is no more")
    (tmp_path / "README.md").write_text("a\n<!-- exit-statuses:begin -->\nstale words\n<!-- exit-statuses:end -->\nz\n")
    assert {"man/acidctl-gone.1", "README.md", "completions/acidctl.fish"} <= set(docs.stale(tmp_path))
    docs.write(tmp_path)
    assert docs.stale(tmp_path) == []
    assert not (tmp_path / "man" / "acidctl-gone.1").exists()
    readme = (tmp_path / "README.md").read_text()
    assert readme.startswith("a\n<!-- exit-statuses:begin -->\n| status | meaning | what to do |\n")
    assert readme.endswith("|\n<!-- exit-statuses:end -->\nz\n")
    assert "stale words" not in readme
    page = tmp_path / "man" / "acidctl-ls.1"
    page.write_text(page.read_text() + "x")
    assert docs.stale(tmp_path) == ["man/acidctl-ls.1"]


def test_a_script_of_another_click_is_not_old(tmp_path: Path) -> None:
    docs.write(tmp_path)
    script = tmp_path / "completions" / "acidctl.bash"
    text = script.read_text()
    script.write_text(text + "echo changed\n")
    assert docs.stale(tmp_path) == ["completions/acidctl.bash"]
    script.write_text(re.sub(r"with click \S+", "with click 8.2.0", text) + "echo changed\n")
    assert docs.stale(tmp_path) == []


# --- man pages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, *COMMANDS], ids=lambda name: name or "acidctl")
def test_every_page_has_every_section(name: str | None) -> None:
    page = PAGES[name or "cli"]
    text = docs.man_page(page)
    wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", *["SEE ALSO"] * bool(name)]
    headings = re.findall(r"^\.SH (.+)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading in wanted] == wanted
    for option in page.options:
        for form in (*option.opts, *option.secondary_opts):
            assert docs.roff(form) in text
    for status in ExitStatus:
        assert rf"\fB{status.value}\fR" in text
        assert docs.roff(status.meaning.partition("-")[0].split("--")[0]) in text


def test_defaults_choices_and_ranges_are_said() -> None:
    worker, compact, ls, top = (docs.man_page(PAGES[name]) for name in ("hive worker", "compact", "ls", "cli"))
    assert "The default is 25s." in worker
    assert "From 1 to 4096." in compact
    assert r"\fBcurrent\fR|\fBobsolete\fR|\fBaborted\fR|\fBignored\fR" in ls
    assert r"\fBACIDCTL_DEBUG\fR" in top


def test_the_program_s_page_has_its_tables() -> None:
    from acidctl.spark.probe import VARIABLES

    text = docs.man_page(PAGES["cli"])
    assert all(docs.roff(form[key]) in text for form in docs.DATA["json-forms"] for key in ("hive-type", "example"))
    assert set(docs.texts()["states"]) == set(State)
    assert all(name in text for name in VARIABLES)
    assert all(docs.roff(f"acidctl-{name}") in text for name in SUMMARIES)


@pytest.mark.parametrize(
    ("plain", "escaped"),
    [
        (".acidctl-trash", r"\&.acidctl\-trash"),
        ("'quoted' \"twice\"", r"\(aqquoted\(aq \(dqtwice\(dq"),
        (r"a\tb", r"a\etb"),
        ("~ ^ `", r"\(ti \(ha \(ga"),
        ("é█", r"\[u00E9]\[u2588]"),
    ],
)
def test_roff_sees_nothing_special(plain: str, escaped: str) -> None:
    assert docs.roff(plain) == escaped


def test_groff_has_nothing_to_say(tmp_path: Path) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    for page in PAGES.values():
        source = tmp_path / f"{page.name}.1"
        source.write_text(docs.man_page(page))
        ran = subprocess.run([groff, "-man", "-Tascii", "-ww", source], capture_output=True, text=True, check=True)
        assert ran.stderr == ""
    page = tmp_path / "acidctl-completion.1"
    shown = subprocess.run([groff, "-man", "-Tascii", "-P-cbou", page], capture_output=True, text=True, check=True)
    assert "acidctl completion fish" in shown.stdout


# --- help texts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name: str) -> None:
    for option in PAGES[name].options:
        assert option.help, f"{name} {option.opts[-1]} has no help text"
        assert option.help.rstrip()[-1] in ".])", f"{name} {option.opts[-1]}: end the sentence"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does(name: str) -> None:
    assert PAGES[name].command.help
    assert docs.line_of(name.split()).endswith(".")


@pytest.mark.parametrize("name", [None, *COMMANDS], ids=lambda name: name or "acidctl")
def test_every_command_has_examples(name: str | None) -> None:
    calls = [call for call, _ in PAGES[name or "cli"].examples()]
    assert len(calls) >= 2
    assert all(call.startswith(f"acidctl {name or ''}".rstrip() + " ") or call == f"acidctl {name}" for call in calls)


# --- examples --------------------------------------------------------------------------------------------------------


def commands_of(line: str) -> Iterator[list[str]]:
    """The words of every call of acidctl in a line of shell, without redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    skip = False
    for token in [*lexer, ";"]:
        if set(token) <= set("|&;()"):
            if words[:1] == ["acidctl"]:
                yield words[1:]
            words = []
        elif set(token) <= set("<>"):
            skip = True
        elif skip:
            skip = False
        else:
            words.append(token)


def parse(words: list[str]) -> None:
    """Parse a call as the program would, and run nothing."""
    from acidctl.location.snapshot_resolver import SnapshotSpec

    context: click.Context = cli.make_context("acidctl", with_program_options_first(words))
    while isinstance(group := context.command, click.Group):
        name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    given = context.params
    if (snapshot := given.get("snapshot")) and snapshot[0] not in "@-":
        SnapshotSpec.parse(snapshot)


def problem(line: str) -> str | None:
    """What is wrong with a line, or None."""
    calls = list(commands_of(line))
    if not calls:
        return f"{line}: there is no call of acidctl"
    for words in calls:
        try:
            parse(words)
        except click.ClickException as error:
            return f"{line}: {error.format_message()}"
        except AcidctlError as error:
            return f"{line}: {error}"
    return None


@pytest.mark.parametrize("name", [None, *COMMANDS], ids=lambda name: name or "acidctl")
def test_examples_of_help_are_valid_calls(name: str | None) -> None:
    assert [problem(call) for call, _ in PAGES[name or "cli"].examples() if problem(call)] == []


@pytest.mark.parametrize(
    "line",
    [
        "acidctl ls --sortt size t",
        "acidctl ls --state sise t",
        "acidctl lst t",
        "acidctl repair --only key-indx t",
        "acidctl repair --dry-rnu t",
        "acidctl --profil prod doctor",
        "acidctl restore",
        "acidctl ls --snapshot 12 t",
        "jq . x.json",
    ],
)
def test_a_wrong_example_is_found(line: str) -> None:
    assert problem(line) is not None


def test_a_line_of_shell_is_taken_apart() -> None:
    line = "cd t && acidctl ls -o jsonl 'a b' 2>/dev/null | jq .x > out; acidctl doctor"
    assert list(commands_of(line)) == [["ls", "-o", "jsonl", "a b", "2"], ["doctor"]]


# --- README and docs/ ------------------------------------------------------------------------------------------------

PLACES = {
    "reasons": "docs/reference/reasons.md",
    "command-pages": "docs/reference/commands.md",
    "commands": "README.md",
    "conformance": "docs/reference/conformance.md",
    "environment": "docs/reference/configuration.md",
    "evidence": "docs/reference/evidence.md",
    "exit-statuses": "docs/reference/exit-statuses.md",
    "files": "docs/reference/configuration.md",
    "json-forms": "docs/reference/types.md",
    "limits": "docs/reference/limits.md",
    "metastore-settings": "docs/how-to/metastore.md",
    "rules": "docs/reference/rules.md",
    "states": "docs/reference/states.md",
    "terms": "docs/reference/states.md",
}
"""Where each generated table stands."""


def test_the_readme_lists_every_command(readme: str) -> None:
    listed = re.findall(r"^\| `acidctl ((?:hive )?[a-z-]+)", readme, re.MULTILINE)
    assert sorted(listed) == [name for name in COMMANDS if name not in GROUPS]


def test_every_generated_table_has_a_place() -> None:
    assert set(PLACES) == set(docs.TABLES)


@pytest.mark.parametrize("table", sorted(PLACES))
def test_every_generated_table_stands_in_its_place(table: str) -> None:
    """That it is up to date is another test's claim."""
    page = (REPO / PLACES[table]).read_text("utf-8")
    assert page.count(f"<!-- {table}:begin -->") == 1
    assert "|" in page.partition(f"<!-- {table}:begin -->")[2].partition(f"<!-- {table}:end -->")[0] or table == "rules"


def test_the_reference_has_every_option_and_rule() -> None:
    commands = (REPO / PLACES["command-pages"]).read_text("utf-8")
    for page in PAGES.values():
        section = commands.partition(f"\n## {page.context.command_path}\n")[2].partition("\n## ")[0]
        names = {name for option in page.options for name in (*option.opts, *option.secondary_opts)}
        assert names <= set(re.findall(r"(?<=[` ])-[-\w]+", section)), page.name
    rules = (REPO / PLACES["rules"]).read_text("utf-8")
    assert re.findall(r"^### (\w+)$", rules, re.MULTILINE) == list(RULES)


def test_markdown_sees_nothing_special_in_texts() -> None:
    assert docs._escaped("a <b> of *_tmp_*, [x] and `_<c>_*`") == r"a \<b> of \*\_tmp_\*, \[x\] and `_<c>_*`"


def calls_of(page: str) -> Iterator[str]:
    """Every line of shell with a call of acidctl in a page's fenced blocks."""
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", "").splitlines():
            shell = line.removeprefix("$ ")
            if language == "cron":
                shell = re.sub(r"^(\S+ +){5}\S*/", "", shell)
            elif language == "ini" and line.startswith("ExecStart="):
                shell = re.sub(r"^ExecStart=\S*/", "", line)
            elif shell == line and language not in ("sh", "bash"):
                continue
            if list(commands_of(shell)):
                yield shell


@pytest.mark.parametrize("page", docs.markdown_pages(REPO))
def test_the_commands_of_a_page_parse(page: str) -> None:
    found = [problem(call) for call in calls_of((REPO / page).read_text("utf-8"))]
    assert [wrong for wrong in found if wrong] == []


def test_calls_are_found_in_all_kinds_of_blocks() -> None:
    counts = {page: len(list(calls_of((REPO / page).read_text("utf-8")))) for page in docs.markdown_pages(REPO)}
    assert counts["README.md"] == 2
    assert counts["docs/how-to/schedule.md"] == 3
    assert counts["docs/how-to/nightly.md"] == 5
    assert counts["docs/reference/commands.md"] > 50
    assert sum(counts.values()) > 120
    page = "```text\n$ acidctl lst\nacidctl no command\n```\n```sh\nacidctl ls --no\n```\n"
    assert [problem(call) is not None for call in calls_of(page)] == [True, True]


# --- completions -----------------------------------------------------------------------------------------------------


def complete(words: str, shell: str = "bash") -> list[str]:
    """What the program answers to a shell; the last word is completed, a blank at the end means an empty one."""
    environment = {**os.environ, "_ACIDCTL_COMPLETE": f"{shell}_complete", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(words.count(" "))
    call = [sys.executable, "-m", "acidctl"]
    ran = subprocess.run(call, env=environment, cwd=REPO, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_commands_options_and_choices_are_completed() -> None:
    assert complete("acidctl cl") == ["plain,clean"]
    assert sorted(complete("acidctl ")) == [f"plain,{name}" for name in sorted(SUMMARIES)]
    assert complete("acidctl hive c") == ["plain,compactions", "plain,cleaner"]
    assert complete("acidctl ls --so") == ["plain,--sort"]
    assert complete("acidctl ls -o ") == ["plain,table", "plain,json", "plain,jsonl", "plain,csv"]


@pytest.mark.parametrize(
    "name",
    [name for name in COMMANDS if any(PAGES[name].metavars) and name not in ("hive tables", "hive abort", "explain")],
)
def test_paths_are_left_to_the_shell_to_complete(name: str) -> None:
    """The shell completes them itself when the program answers with their kind; these two take none."""
    from click.shell_completion import BashComplete

    found = BashComplete(cli, {}, "acidctl", "_ACIDCTL_COMPLETE").get_completions(name.split(), "ware")
    assert [(item.type, item.value) for item in found] in ([("file", "ware")], [("dir", "ware")])


@pytest.fixture
def on_path(tmp_path: Path) -> dict[str, str]:
    """An environment in which `acidctl` is this program."""
    program = tmp_path / "bin" / "acidctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m acidctl "$@"\n')
    program.chmod(0o755)
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, **home, "PATH": path, "PYTHONPATH": str(REPO)}


SHELLS = {
    "bash": "source completions/acidctl.bash; COMP_WORDS=(acidctl cl); COMP_CWORD=1; _acidctl_completion acidctl; "
    "echo ${COMPREPLY[@]}",
    "fish": "source completions/acidctl.fish; complete -C 'acidctl cl' | cut -f 1",
    # What zsh itself would do with the answers needs a terminal: these stand-ins print them.
    "zsh": "compdef() { : }; _describe() { print -r ${completions_with_descriptions%%:*} }; "
    "source completions/_acidctl; words=(acidctl cl); CURRENT=2; _acidctl_completion",
}


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_the_scripts_work_in_their_shells(shell: str, on_path: dict[str, str]) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    call = [program, "-c", SHELLS[shell]]
    ran = subprocess.run(call, env=on_path, cwd=REPO, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.split(), ran.stderr) == (0, ["clean"], "")
