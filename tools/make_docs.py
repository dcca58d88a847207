"""``python tools/make_docs.py [--check]``: the man pages, the completion scripts, the tables of the pages.

Everything is made from what the program itself uses (the commands' options and examples, the error classes), and from
tables beside it which tests hold to it, so that no page can say something else than ``--help``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from inspect import cleandoc
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete
from conformance_page import conformance_table
from evidence import evidence_page
from interface_stub import PATH as INTERFACE_STUB
from interface_stub import stub as interface_stub
from json_schemas import schema_files

from acidctl import __version__
from acidctl.acid.reasons import Code
from acidctl.base.errors import ExitStatus
from acidctl.cli.check.explain import texts
from acidctl.cli.command_table import GROUPS, SECTIONS, SUMMARIES
from acidctl.cli.main import cli
from acidctl.cli.options.help_pages import examples_of
from acidctl.metastore.settings import NAMES
from acidctl.orc.limits import LIMITS
from acidctl.validation.checks import RULES
from acidctl.validation.findings import Depth
from acidctl.wording import example, next_step, text_of

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "python tools/make_docs.py"
COMPLETIONS: dict[str, type[ShellComplete]] = {
    "completions/acidctl.bash": BashComplete,
    "completions/_acidctl": ZshComplete,
    "completions/acidctl.fish": FishComplete,
}

DATA: dict[str, Any] = tomllib.loads((ROOT / "tools" / "tables.toml").read_text("utf-8"))
"""The tables that the program itself does not have."""

LIMIT_VARIABLES = {
    limit.variable: f"{limit.meaning} Above {limit.shown(limit.default)} a file is refused; "
    "8G, for example, allows more."
    for limit in LIMITS
}

# --- roff --------------------------------------------------------------------------------------------------------

_SPECIAL = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", '"': r"\(dq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
)
_SENTENCE = re.compile(r"(?<=[.?!]) +(?=[A-Z`])")


def roff(text: str) -> str:
    """Text in which roff sees nothing special; it may stand at the beginning of a line or in a macro's argument."""
    escaped = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text.translate(_SPECIAL))
    return rf"\&{escaped}" if escaped.startswith(".") else escaped


def _bold(text: str) -> str:
    return rf"\fB{roff(text)}\fR"


def _italic(text: str) -> str:
    return rf"\fI{roff(text)}\fR"


def _prose(text: str, metavars: Iterable[str] = ()) -> list[str]:
    """A paragraph, one sentence per line: `code` and --options bold, the names of arguments in italics."""
    places = "|".join([r"`(?P<code>[^`]+)`", r"(?P<option>(?<![\w-])--[a-z][a-z-]+)"])
    if names := sorted(metavars, key=len, reverse=True):
        places += rf"|(?P<name>\b(?:{'|'.join(map(re.escape, names))})\b)"
    lines = []
    for sentence in _SENTENCE.split(" ".join(text.split())):
        line, end = "", 0
        for match in re.finditer(places, sentence):
            line += roff(sentence[end : match.start()])
            if match.lastgroup == "name":
                line += _italic(match[0])
            else:
                line += _bold(match["code"] or match[0])
            end = match.end()
        lines.append(line + roff(sentence[end:]))
    return lines


def _items(pairs: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """A list of (tag in roff, lines in roff)."""
    return [line for tag, lines in pairs for line in (".TP", tag, *lines)]


def _verbatim(lines: Iterable[str]) -> list[str]:
    return [".PP", ".RS 4", ".EX", *(roff(line) for line in lines), ".EE", ".RE"]


def _metavar(text: str) -> str:
    """``[PATH...]`` with the names in italics."""
    return "".join(_italic(part) if part.isupper() else roff(part) for part in re.split(r"([A-Z][A-Z-]*)", text))


# --- what the commands say -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """A command with what it is called with: `click.Context` knows its path and its help option."""

    context: click.Context

    @property
    def command(self) -> click.Command:
        return self.context.command

    @property
    def name(self) -> str:
        return self.context.command_path.replace(" ", "-")

    @property
    def options(self) -> list[click.Option]:
        parameters = self.command.get_params(self.context)
        return [p for p in parameters if isinstance(p, click.Option) and not p.hidden]

    @property
    def path(self) -> list[str]:
        """The words behind the program's name."""
        return self.context.command_path.split()[1:]

    @property
    def metavars(self) -> set[str]:
        """The names of the arguments."""
        arguments = [p for p in self.command.params if isinstance(p, click.Argument)]
        return {name for p in arguments for name in re.findall(r"[A-Z]{2,}", p.make_metavar(self.context))}

    def examples(self) -> list[tuple[str, str]]:
        """(command line, remark or nothing) of every example, in the help text of the program or in the file."""
        found = [(call, "") for call in examples_of(" ".join(self.path))]
        for verbatim, lines in _paragraphs(self.command.help):
            if verbatim and lines[0] == "Examples:":
                for line in lines[1:]:
                    call, *remark = re.split(r" {3,}", line.strip(), maxsplit=1)
                    found.append((call, remark[0] if remark else ""))
        return found


def pages() -> list[Page]:
    """The program's page, then one a command, each group's before those of its commands."""
    return list(_pages(cli, "acidctl", None))


def _pages(command: click.Command, name: str, parent: click.Context | None) -> Iterator[Page]:
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    yield Page(context)
    if isinstance(command, click.Group):
        for part, below in command.commands.items():
            yield from _pages(below, part, context)


def line_of(path: Sequence[str]) -> str:
    """The line of a command in the table of commands; empty for one that has none."""
    *groups, name = path
    if not groups:
        return SUMMARIES.get(name, "")
    return GROUPS.get(groups[0], {}).get(name, "") if len(groups) == 1 else ""


def _paragraphs(text: str | None) -> Iterator[tuple[bool, list[str]]]:
    r"""(verbatim, lines) of every paragraph of a help text; a verbatim one begins with ``\b``."""
    for paragraph in re.split(r"\n[ \t]*\n", cleandoc((text or "").partition("\f")[0])):
        lines = paragraph.splitlines()
        verbatim = bool(lines) and lines[0].strip() == "\b"
        if lines:
            yield verbatim, lines[1:] if verbatim else lines


def _describe(page: Page) -> list[str]:
    out: list[str] = []
    for verbatim, lines in _paragraphs(page.command.help):
        if not verbatim:
            out += [".PP", *_prose(" ".join(lines), page.metavars)]
        elif lines[0] != "Examples:":
            out += _verbatim(lines)
    return out[1:]  # the heading begins a paragraph already


def _names(option: click.Option) -> list[str]:
    """Its spellings; those that say no to a flag come last, with a slash before them in print."""
    # Short names first: in which order click keeps the names of --help depends on its version.
    return sorted(option.opts, key=lambda name: name.startswith("--"))


def _value(option: click.Option, context: click.Context) -> str | tuple[str, ...]:
    """What is typed behind its name: nothing, a name in capitals, or the choices."""
    if option.is_flag or option.count:
        return ""
    kind = option.type
    if option.metavar:
        return option.metavar
    if isinstance(kind, click.Choice):
        return tuple(map(str, kind.choices))
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        return kind.get_metavar(option, context) or "N"
    return option.make_metavar(context)


def _facts(option: click.Option, context: click.Context) -> str:
    """Its help text, and what else is known of it."""
    facts = option.help or ""
    if option.multiple and "repeat" not in facts.lower():
        facts += " Repeatable."
    if isinstance(option.type, click.IntRange):
        facts += _range(option.type)
    default = option.get_default(context)
    if not option.is_flag and isinstance(default, str | int | float) and default != "":
        facts += f" The default is {default}."
    return f"{facts} Required." if option.required else facts


def _variables(option: click.Option) -> list[str]:
    """The variables of the environment that stand for it."""
    if not option.envvar:
        return []
    return [option.envvar] if isinstance(option.envvar, str) else list(option.envvar)


def _option(option: click.Option, context: click.Context) -> tuple[str, list[str]]:
    tag = ", ".join(map(_bold, _names(option)))
    if option.secondary_opts:
        tag += " / " + ", ".join(map(_bold, option.secondary_opts))
    value = _value(option, context)
    if isinstance(value, tuple):
        tag += " {" + "|".join(map(_bold, value)) + "}"
    elif value:
        tag += " " + _metavar(value)
    lines = _prose(_facts(option, context))
    if names := _variables(option):
        lines.append("Environment: " + ", ".join(map(_bold, names)) + ".")
    return tag, lines


def _range(kind: click.IntRange) -> str:
    """What a user would not guess: nothing of a number that only must not be negative."""
    if kind.max is None:
        return f" At least {kind.min}." if kind.min else ""
    return f" At most {kind.max}." if kind.min is None else f" From {kind.min} to {kind.max}."


def _synopsis(page: Page) -> list[str]:
    pieces = [_metavar(piece) for piece in page.command.collect_usage_pieces(page.context)]
    return [" ".join([_bold(page.context.command_path), *pieces])]


def _examples(page: Page) -> list[str]:
    calls = page.examples()
    if not any(remark for _, remark in calls):
        return _verbatim(call for call, _ in calls)[1:]
    return _items((_bold(call), _prose(remark[:1].upper() + remark[1:] + ".")) for call, remark in calls)


def _see_also(page: Page) -> list[str]:
    """Return the pages above this one; no page lists its siblings, which a new command would change."""
    parents: list[str] = []
    above = page.context.parent
    while above:
        parents.append(above.command_path.replace(" ", "-"))
        above = above.parent
    return [f".BR {roff(name)} (1){',' if name != parents[-1] else ''}" for name in parents]


def _of_the_program(page: Page) -> Iterator[tuple[str, list[str]]]:
    """The sections that only the program's own page has."""
    commands: list[str] = []
    for title, section in SECTIONS.items():
        commands += [f".SS {roff(title)}"]
        commands += _items((f".BR {roff(f'acidctl-{name}')} (1)", _prose(text)) for name, text in section.items())
    yield "COMMANDS", commands
    yield "STATES", _items((_bold(state), _prose(text)) for state, text in texts()["states"].items())
    yield "TERMS", _items((_bold(term["name"]), _prose(term["what"])) for term in texts()["terms"])
    forms = [".PP", *_prose("How each type of Hive is written in JSON, by `acidctl cat` and `acidctl dump`:")]
    for form in DATA["json-forms"]:
        example = "Example: " + _bold(form["example"])
        forms += _items([(_bold(form["hive-type"]), [*_prose(form["form"]), ".br", example])])
    yield "JSON FORMS OF TYPES", forms[1:]
    options = [(str(o.envvar), f"When set, as {o.opts[0]}.") for o in page.options if o.envvar]
    variables = (*options, *DATA["environment"].items(), *LIMIT_VARIABLES.items())
    yield "ENVIRONMENT", _items((_bold(name), _prose(text)) for name, text in variables)
    yield "FILES", _items((_italic(name), _prose(text)) for name, text in DATA["files"].items())


def _parts(page: Page, group: click.Group) -> list[str]:
    """The commands of a group, each with the first sentence of its help."""
    return _items(
        (f".BR {roff(f'{page.name}-{name}')} (1)", _prose(command.get_short_help_str(200)))
        for name, command in group.commands.items()
    )


def _rules() -> list[str]:
    """The registry of rules, in a section for everybody's and one for those of ``--for``."""
    out: list[str] = []
    for title, chosen in (
        ("Everywhere", [rule for rule in RULES.values() if not rule.readers]),
        ("For one reader, with --for", [rule for rule in RULES.values() if rule.readers]),
    ):
        out.append(f".SS {roff(title)}")
        for rule in chosen:
            tag = f"{_bold(rule.id)} {_italic(rule.severity.value)}"
            facts = f"Needs --{rule.depth.value}." if rule.depth is not Depth.LISTING else ""
            readers = f"Readers: {', '.join(rule.readers)}." if rule.readers else ""
            out += _items([(tag, _prose(" ".join([rule.what, rule.why, rule.hint, facts, readers])))])
    return out


def man_page(page: Page) -> str:
    """The roff source of a page."""
    summary = line_of(page.path) if page.path else ""
    summary = summary or (page.command.help or "").splitlines()[0]
    summary = summary[:1].lower() + summary[1:].rstrip(".")
    sections: list[tuple[str, list[str]]] = [
        ("NAME", [rf"{roff(page.name)} \- {roff(summary)}"]),
        ("SYNOPSIS", _synopsis(page)),
        ("DESCRIPTION", _describe(page)),
        ("OPTIONS", _items(_option(option, page.context) for option in page.options)),
    ]
    if page.context.parent is None:
        sections += _of_the_program(page)
    if page.context.parent and isinstance(page.command, click.Group):
        sections.insert(3, ("COMMANDS", _parts(page, page.command)))
    if page.command.name == "validate":
        sections.append(("RULES", _rules()))
    sections += [
        ("EXIT STATUS", _items((_bold(str(status.value)), _prose(status.meaning)) for status in ExitStatus)),
        ("EXAMPLES", _examples(page)),
    ]
    if page.context.parent:
        sections.append(("SEE ALSO", _see_also(page)))
    lines = [
        rf".\" Made by `{COMMAND}` from the program itself: do not edit.",
        f'.TH {roff(page.name.upper())} 1 "" "acidctl {roff(__version__)}" "acidctl"',
        ".nh",  # names and options are not to be broken,
        ".ad l",  # which leaves lines too uneven to justify
    ]
    for title, body in sections:
        lines += [f".SH {title}", *body]
    return "\n".join(lines) + "\n"


# --- completion scripts ----------------------------------------------------------------------------------------------


def completion(shell: type[ShellComplete]) -> str:
    """A shell's script, by click, with a line that names click's version: another version writes another script."""
    # ShellComplete's own `source`: BashComplete's would start bash to look at its version.
    first, rest = ShellComplete.source(shell(cli, {}, "acidctl", "_ACIDCTL_COMPLETE")).split("\n", 1)
    made = f"# Made with click {version('click')} by `{COMMAND}`: do not edit."
    # zsh wants #compdef in the first line.
    lines = [first, made] if first.startswith("#compdef") else [made, first]
    return "\n".join([*lines, rest])


def _made_with(script: str) -> str | None:
    match = re.search(r"^# Made with click (\S+)", script, re.MULTILINE)
    return match[1] if match else None


# --- the tables of README and docs/ ---------------------------------------------------------------------------------

_CODE = re.compile(r"(`[^`]*`)")
_SPECIAL_HERE = re.compile(r"[<*\[\]]|(?<!\w)_")


def _escaped(text: str) -> str:
    """Text in which Markdown sees nothing special, but for what stands in back quotes."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if part.startswith("`") else _SPECIAL_HERE.sub(r"\\\g<0>", part) for part in parts)


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _two_columns(header: Sequence[str], pairs: Iterable[tuple[str, str]]) -> str:
    """A table of things that are typed, and what they mean."""
    return _markdown(header, ((f"`{name}`", _escaped(text)) for name, text in pairs))


def exit_status_table() -> str:
    """Markdown."""
    rows = ((str(status.value), status.meaning, texts()["statuses"][str(status.value)]) for status in ExitStatus)
    return _markdown(("status", "meaning", "what to do"), rows)


def reason_table() -> str:
    """Markdown."""
    rows = ((f"`{code}`", text_of(example(code)), next_step(code)) for code in Code)
    return _markdown(("code", "a sentence of it", "what to do next"), rows)


def json_form_table() -> str:
    """Markdown."""
    rows = ((f"`{form['hive-type']}`", form["form"], f"`{form['example']}`") for form in DATA["json-forms"])
    return _markdown(("Hive type", "JSON form", "example"), rows)


def command_table() -> str:
    """Markdown: every command with what it is called with, and its line."""
    by_name = {page.name: page for page in pages()}
    lines: dict[str, str] = {}
    for name, text in SUMMARIES.items():
        lines |= {f"{name}-{part}": line for part, line in GROUPS[name].items()} if name in GROUPS else {name: text}
    calls = ((_call(by_name[f"acidctl-{name}"]), text.rstrip(".")) for name, text in lines.items())
    return _two_columns(("command", "what it does"), calls)


def _call(page: Page) -> str:
    """``acidctl ls [PATH...]``; of a group its commands."""
    if isinstance(page.command, click.Group):
        pieces = ["|".join(page.command.commands)]
    else:
        pieces = [piece for piece in page.command.collect_usage_pieces(page.context) if piece != "[OPTIONS]"]
    return " ".join([page.context.command_path, *pieces])


def limit_table() -> str:
    """Markdown: what one file may cost."""
    rows = (
        (f"`{limit.name}`", limit.shown(limit.default), f"`{limit.variable}`", _escaped(limit.meaning))
        for limit in LIMITS
    )
    return _markdown(("limit", "default", "variable", "what is counted"), rows)


def metastore_table() -> str:
    """Markdown: the settings of the metastore, with the properties of Hive that say them."""
    rows = (
        (f"`{name}`", ", ".join(f"`{key}`" for key in keys), DATA["metastore-settings"][name])
        for name, keys in NAMES.items()
    )
    return _markdown(("setting", "Hive's property", "meaning"), rows)


def environment_table() -> str:
    """Markdown: what the program reads of its environment."""
    options = [(name, f"When set, as `{o.opts[0]}`.") for o in pages()[0].options for name in _variables(o)]
    return _two_columns(("variable", "meaning"), [*options, *DATA["environment"].items()])


def rule_table() -> str:
    """Markdown: a heading for every rule of `validate`, and what it says."""
    out = []
    for rule in RULES.values():
        needs = f" Needs `--{rule.depth.value}`." if rule.depth is not Depth.LISTING else ""
        readers = f" Readers, of `--for`: {', '.join(rule.readers)}." if rule.readers else ""
        lines = [
            f"{rule.what} {rule.why}",
            f"To do: {rule.hint}",
            f"Severity: {rule.severity.value}.{needs}{readers}",
        ]
        out.append("\n\n".join([f"### {rule.id}", *map(_escaped, lines)]) + "\n")
    return "\n" + "\n".join(out) + "\n"


def command_reference() -> str:
    """Markdown: every command with its description, its options and its examples."""
    return "\n" + "\n".join(_command_section(page) for page in pages()) + "\n"


def _command_section(page: Page) -> str:
    path = page.context.command_path
    usage = " ".join([path, *page.command.collect_usage_pieces(page.context)])
    prose = [
        _escaped(" ".join(lines)) if not verbatim else "```text\n" + "\n".join(lines) + "\n```"
        for verbatim, lines in _paragraphs(page.command.help)
        if not verbatim or lines[0] != "Examples:"
    ]
    examples = [call + (f"   # {remark}" if remark else "") for call, remark in page.examples()]
    options = _markdown(("option", "meaning"), (_option_row(option, page.context) for option in page.options))
    shown = [f"## {path}", f"```text\n{usage}\n```", *prose, options.rstrip()]
    if examples:
        shown.append("```sh\n" + "\n".join(examples) + "\n```")
    return "\n\n".join(shown) + "\n"


def _option_row(option: click.Option, context: click.Context) -> tuple[str, str]:
    value = _value(option, context)
    typed = "{" + "|".join(value) + "}" if isinstance(value, tuple) else value
    names = ", ".join(_names(option)) + "".join(f" / {name}" for name in option.secondary_opts)
    variables = "".join(f" Environment: `{name}`." for name in _variables(option))
    return f"`{f'{names} {typed}'.rstrip()}`", _escaped(_facts(option, context)) + variables


TABLES: dict[str, Callable[[], str]] = {
    "reasons": reason_table,
    "command-pages": command_reference,
    "commands": command_table,
    "conformance": conformance_table,
    "environment": environment_table,
    "evidence": evidence_page,
    "exit-statuses": exit_status_table,
    "files": lambda: _two_columns(("path", "what it is"), DATA["files"].items()),
    "json-forms": json_form_table,
    "limits": limit_table,
    "metastore-settings": metastore_table,
    "rules": rule_table,
    "states": lambda: _two_columns(("state", "meaning"), texts()["states"].items()),
    "terms": lambda: _markdown(("term", "meaning"), ((t["name"], _escaped(t["what"])) for t in texts()["terms"])),
}


def with_tables(page: str) -> str:
    """A page with every table between its markers made anew; tables without markers are left out."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if found and closed:
            page = f"{before}{begin}\n{table()}{end}{after}"
    return page


# --- files -----------------------------------------------------------------------------------------------------------


def generate(root: Path = ROOT) -> dict[str, str]:
    """Every generated file: path below `root` -> text. README.md and pages of docs/ are among them as they stand."""
    files = {f"man/{page.name}.1": man_page(page) for page in pages()}
    files |= {path: completion(shell) for path, shell in COMPLETIONS.items()}
    files |= dict(schema_files())
    files[INTERFACE_STUB] = interface_stub()
    for page in markdown_pages(root):
        files[page] = with_tables((root / page).read_text("utf-8"))
    return files


def markdown_pages(root: Path = ROOT) -> list[str]:
    """README.md and the pages of docs/: paths below `root`."""
    found = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [str(path.relative_to(root)) for path in found if path.is_file()]


def stale(root: Path = ROOT) -> list[str]:
    """Paths of generated files that are missing, old, or of a command that is no more.

    A completion script that another version of click made is not old: it would flip with every version installed.
    """
    found = []
    expected = generate(root)
    for path, text in expected.items():
        file = root / path
        present = file.read_text("utf-8") if file.is_file() else None
        same_click = present is None or path not in COMPLETIONS or _made_with(present) in (None, version("click"))
        if present != text and same_click:
            found.append(path)
    return found + _surplus(root, expected)


def write(root: Path = ROOT) -> list[str]:
    """Bring every generated file up to date; the paths that changed."""
    expected = generate(root)
    changed = stale(root)
    for path in changed:
        file = root / path
        if path in expected:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(expected[path], "utf-8")
        else:
            file.unlink()
    return changed


def _surplus(root: Path, expected: dict[str, str]) -> list[str]:
    on_disk = (f"man/{file.name}" for file in sorted((root / "man").glob("acidctl*.1")))
    return [path for path in on_disk if path not in expected]


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; fail when a file is not up to date.")
def command(check: bool) -> None:
    """Write the man pages, the completion scripts and the tables of README and docs/."""
    if not (ROOT / "pyproject.toml").is_file():
        raise click.ClickException(f"{ROOT} is not acidctl's source tree: the generated files live there")
    changed = stale() if check else write()
    for path in changed:
        click.echo(path)
    if check and changed:
        raise click.ClickException(f"not up to date: run `{COMMAND}`")


def main() -> NoReturn:
    """Run :data:`command`."""
    command.main(prog_name=COMMAND)


if __name__ == "__main__":
    main()
