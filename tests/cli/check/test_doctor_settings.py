"""Settings from files and the environment: their order, what is refused, and what `doctor` shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.terminals import Terminals

from acidctl.base.errors import StorageError, UsageProblem
from acidctl.cli import main as program
from acidctl.cli.command_table import SECTIONS, command_named, walk
from acidctl.cli.config.setting_files import user_path
from acidctl.cli.config.settings import SettingsFile, options_of, settings_of, variable_of
from acidctl.cli.main import cli, with_program_options_first
from acidctl.storage.options import StorageOptions
from acidctl.storage.port import FileSystemSpec

Acidctl = Callable[..., Any]


@pytest.fixture(autouse=True)
def own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but those of the test."""
    for name in [name for name in os.environ if name.startswith("ACIDCTL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "project/delta_0000001_0000001_0000").mkdir(parents=True)  # that `ls` finds a table
    monkeypatch.chdir(tmp_path / "project")
    # Which Java there is is another test's question, and takes its time.
    monkeypatch.setattr("acidctl.spark.probe.gather", lambda: {"python": "3", "environment": []})


@pytest.fixture
def user(tmp_path: Path) -> Callable[[str], Path]:
    """Write the user's file."""

    def write(text: str) -> Path:
        path = tmp_path / "home" / "acidctl" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
        return path

    return write


def shown(acidctl: Acidctl, *options: str) -> dict[str, tuple[Any, str]]:
    """What `doctor` says: value and origin by name."""
    found = acidctl("doctor", "-o", "json", *options)
    assert found.status == 0, found.err
    settings = found.json()["configuration"]["settings"]
    return {one["name"]: (one["value"], one["origin"]) for one in settings}


def test_settings_of_file_and_environment_are_shown(
    acidctl: Acidctl, user: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = user("[clean]\njobs = 3\nleftovers = true")
    monkeypatch.setenv("ACIDCTL_CLEAN_JOBS", "5")
    found = shown(acidctl)
    assert found["clean.jobs"] == ("3", f"user file {path}")
    assert found["ACIDCTL_CLEAN_JOBS"] == ("5", "environment")
    assert found["clean.leftovers"] == (True, f"user file {path}")
    assert "clean.output" not in found


def test_settings_count_unless_typed_otherwise(
    acidctl: Acidctl, user: Callable[[str], Path], crud: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user("[ls]\noutput = 'json'")
    assert acidctl("ls", crud).one()["schema_version"] == 1
    monkeypatch.setenv("ACIDCTL_LS_OUTPUT", "jsonl")
    assert len(acidctl("ls", crud).out.splitlines()) == len(acidctl("ls", "-o", "jsonl", crud).out.splitlines())
    assert acidctl("ls", "-o", "table", crud).out.startswith(str(crud))


def test_flags_lists_and_pairs_are_taken_from_files(acidctl: Acidctl, user: Callable[[str], Path], crud: Path) -> None:
    user("[validate]\ndeep = true\nignore = ['V13', 'V1']\n[compact]\nconf = ['spark.a.b=4', 'x=y z']")
    found = shown(acidctl)
    assert found["validate.deep"][0] is True
    assert found["validate.ignore"][0] == ["V13", "V1"]
    assert found["compact.conf"][0] == ["spark.a.b=4", "x=y z"]
    assert acidctl("validate", crud).status == 0


def test_several_values_from_the_environment(acidctl: Acidctl, crud: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACIDCTL_VALIDATE_FOR", "trino nobody")
    found = acidctl("validate", crud)
    assert found.status == 2
    assert "'nobody'" in found.err
    assert "it is from the environment: ACIDCTL_VALIDATE_FOR" in found.err
    monkeypatch.setenv("ACIDCTL_VALIDATE_FOR", "trino impala")
    assert acidctl("validate", crud).status == 0


def test_profile_adds_its_settings_where_it_is_chosen(
    acidctl: Acidctl, user: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    user("[clean]\njobs = 2\n[profile.prod.clean]\njobs = 9\n[profile.prod.storage.'s3://b']\nuser = 'u'")
    assert shown(acidctl)["clean.jobs"][0] == "2"
    assert shown(acidctl, "--profile", "prod")["clean.jobs"][0] == "9"
    assert 'storage."s3://b".user' in shown(acidctl, "--profile=prod")
    monkeypatch.setenv("ACIDCTL_PROFILE", "prod")
    assert shown(acidctl)["clean.jobs"][0] == "9"
    wrong = acidctl("ls", "--profile", "prd", ".")
    assert wrong.status == 2
    assert "did you mean prod?" in wrong.err


def test_a_mark_of_the_byte_order_and_windows_ends_of_lines(acidctl: Acidctl, user: Callable[[str], Path]) -> None:
    user("\ufeff[clean]\r\nolder-than = '36h'\r\n")
    assert "36h" in acidctl("doctor").out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[clan]\njobs = 1", ("clan cannot be used", "did you mean clean?")),
        ("[clean]\nolder_than = '1d'", ("clean.older_than cannot be used", "did you mean older-than?")),
        ("[clean]\nyes = true", ("clean.yes cannot be used", "--yes counts on the command line only")),
        ("[repair]\nforce = true", ("repair.force cannot be used", "command line only")),
        ("[profile.p.clean]\nunsafe-retention = true", ("profile.p.clean.unsafe-retention cannot be used",)),
        ("[profile.p.profile.q]\n", ("profile.p.profile cannot be used",)),
        ("[compact]\nauto = true", ("compact.auto cannot be used", "command line only")),
        ("[validate]\ndeep = 'yes'", ("validate.deep cannot be used", "write true or false")),
        ("[validate]\nignore = 'V13'", ("validate.ignore cannot be used", "write a list")),
        ("[ls]\noutput = ['json']", ("ls.output cannot be used", "it takes one value")),
        ("clean = 5", ("clean cannot be used", "it is not a table")),
        ("[storage.nn]\nuser = 'u'", ("storage.nn cannot be used", "beginning of a URL")),
        ("[storage.'s3://k:pw@b']\nuser = 'u'", ("must not hold a password",)),
        ("[clean]\njobs = ]", ("is not TOML", "line 2")),
    ],
)
def test_faulty_files_are_refused_with_path_and_hint(
    acidctl: Acidctl, user: Callable[[str], Path], text: str, said: tuple[str, ...]
) -> None:
    path = user(text)
    for command in (("ls", "."), ("doctor",)):
        found = acidctl(*command)
        assert found.status == 2, found.err
        assert str(path) in found.err
        assert all(part in found.err for part in said), found.err
        assert "k:pw" not in found.err
    assert acidctl("ls", "--help").status == 0, "help is there to mend it"


def test_a_bad_value_names_its_file(acidctl: Acidctl, user: Callable[[str], Path]) -> None:
    path = user("[clean]\nolder-than = 48")
    found = acidctl("clean", ".")
    assert found.status == 2
    assert "'48' is not a duration" in found.err, "a number has no unit"
    assert str(path) in found.err


@pytest.mark.parametrize("name", ["ACIDCTL_CLEAN_YES", "ACIDCTL_CLEAN_OLDR_THAN", "ACIDCTL_CLEAN_OPTION_NOBODY_HAS"])
def test_variables_of_typed_options_are_refused(
    acidctl: Acidctl, name: str, monkeypatch: pytest.MonkeyPatch, crud: Path
) -> None:
    monkeypatch.setenv(name, "1")
    found = acidctl("clean", crud)
    assert found.status == 2
    assert name in found.err
    assert acidctl("ls", crud).status == 0, "other commands have nothing to do with it"
    monkeypatch.setenv(name, "")
    assert acidctl("clean", "--dry-run", crud).status == 0


def test_completion_is_not_stopped_by_a_variable() -> None:
    env = os.environ | {
        "ACIDCTL_CLEAN_YES": "1",
        "_ACIDCTL_COMPLETE": "bash_complete",
        "COMP_WORDS": "acidctl clean --older",
        "COMP_CWORD": "2",
    }
    done = subprocess.run([sys.executable, "-m", "acidctl"], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("plain,--older-than\n", "")


ONLY_TYPED = {
    "yes", "force", "accept-fewer", "no-trash", "unsafe-retention", "break-lock", "offline", "assume-committed",
    "snapshot", "table-type", "visibility-txn",
    "apply-all-deletes", "major", "minor", "auto", "plan", "apply", "run", "list", "rebalance",
    "order-by", "tables", "take-over", "hdfs-trash", "set", "where", "overwrite", "keys", "once",
    "like", "partitioned-by", "clustered-by", "location", "comment", "proof", "cut-over", "back",
    "discard-snapshots", "open", "aborted", "aside", "write",
}  # fmt: skip
MAY_BE_SET = {
    "all", "blocking", "catch-up", "checksum", "count", "decode", "deep", "deleted",
    "dry-run", "exit-code", "footers", "if-not-exists", "leftovers", "lock", "no-headers", "partitions",
    "prove", "read-lock", "record", "recursive", "row-id", "rows", "sizes", "skip-bad-files", "spark",
    "standby", "stuck", "waiting",
}  # fmt: skip
"""Switches that files and the environment may set: none of them waives a safeguard."""


def test_no_dangerous_option_may_be_set() -> None:
    """Every option that waives a safeguard is one of those that count on the command line only."""
    found = {}
    typed: set[str] = set()
    switches: set[str] = set()
    for path, command in walk():
        options = options_of(command)
        found[path] = set(options)
        typed.update(options_of(command, typed_only=True))
        switches.update(name for name, option in options.items() if option.is_flag)
    names = set().union(*found.values())
    assert typed == ONLY_TYPED
    assert not names & ONLY_TYPED, "the same word in another command"
    assert switches <= MAY_BE_SET, "a new switch: define it with typed_option, or name it there"
    dangerous = ("yes", "force", "unsafe", "break", "accept", "no-trash", "offline", "assume", "snapshot")
    assert not [name for name in names if any(word in name for word in dangerous)]
    # Two options with one variable would both be set by it.
    variables = [variable_of(path, name) for path, options in found.items() for name in options]
    assert len(variables) == len(set(variables))


# --- whose file it is ---


def test_the_working_directory_sets_nothing(acidctl: Acidctl, tmp_path: Path) -> None:
    for name in (".acidctl.toml", "acidctl.toml", "config.toml", "acidctl/config.toml"):
        path = tmp_path / "project" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("[clean]\njobs = 3")
    assert shown(acidctl) == {}


def test_files_that_others_may_have_written(acidctl: Acidctl, user: Callable[[str], Path]) -> None:
    own = user("[clean]\njobs = 3")
    own.chmod(0o602)
    found = acidctl("ls", ".")
    assert found.status == 7
    assert "everybody can write it" in found.err
    own.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(own, 65534, 65534)
        found = acidctl("ls", ".")
        assert found.status == 7
        assert "belongs to another user" in found.err


def test_without_a_home_no_file_is_read(acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    path = Path("~/.config/acidctl")
    path.mkdir(parents=True)
    (path / "config.toml").write_text("[clean]\njobs = 3")
    assert shown(acidctl) == {}


@pytest.mark.parametrize("folder", ["/a/b", "rel", "", "  ", None])
def test_the_users_file_is_where_linux_has_it(monkeypatch: pytest.MonkeyPatch, folder: str | None) -> None:
    if folder is None:
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CONFIG_HOME", folder)
    assert user_path() == Path(folder if folder == "/a/b" else Path.home() / ".config", "acidctl", "config.toml")


def test_file_of_config_takes_the_place_of_all_others(
    acidctl: Acidctl, user: Callable[[str], Path], tmp_path: Path
) -> None:
    user("[clean]\njobs = 2")
    other = tmp_path / "other.toml"
    other.write_text("[clean]\njobs = 8")
    assert shown(acidctl, "--config", str(other))["clean.jobs"][0] == "8"
    assert shown(acidctl, "--config", "/dev/null") == {}
    missing = acidctl("ls", f"--config={tmp_path}/none.toml", ".")
    assert missing.status == 3
    assert acidctl("ls", "--config", tmp_path, ".").status == 3


# --- options of stores ---


def test_options_of_stores_go_to_their_store_only() -> None:
    options = StorageOptions(
        {"timeout": "5"},
        {
            "webhdfs://nn:98": {"user": "wrong"},
            "webhdfs://nn:9870": {"user": "hive", "timeout": "60"},
            "webhdfs://nn:9870/secure": {"token": "t"},
            "s3://": {"anon": "true"},
        },
    )
    assert options.of("webhdfs://nn:9870/warehouse") == {"user": "hive", "timeout": "5"}
    assert options.of("webhdfs://me@nn:9870") == {"user": "hive", "timeout": "5"}
    assert options.of("WebHDFS://nn:9870/secure/x") == {"user": "hive", "token": "t", "timeout": "5"}
    assert options.of("webhdfs://nn:9870/secured") == {"user": "hive", "timeout": "5"}
    assert options.of("webhdfs://nn:9870.evil.example/x") == {"timeout": "5"}
    assert options.of("s3a://bucket/x") == {"anon": "true", "timeout": "5"}
    assert options.of("/plain") == {"timeout": "5"}


NEEDED = {
    "compact": ("--assume-committed=0s", "--major", "--engine", "local"),
    "nightly": ("--assume-committed=1h", "--dry-run", "--engine", "local"),
    "why": ("base_1",),
    "blame": ("1:1:1",),
    "diff": ("--from", "1"),
    "erasure": ("--where", "a = 1"),
    "migrate": ("--to", "copy", "--assume-committed=0s"),
}
"""What a command wants beside a location."""


def with_stores() -> Iterator[tuple[str, ...]]:
    """Every command that has storage to name."""
    for path, command in walk():
        # Those of hive, and those that change rows, have their URLs from a metastore.
        places = {param.name for param in command.params if isinstance(param, click.Argument)}
        if places & {"location", "locations", "paths", "files"} and path[0] not in ("hive", *SECTIONS["Change rows"]):
            yield path


@pytest.mark.parametrize("path", list(with_stores()), ids="-".join)
def test_options_of_stores_reach_them(
    acidctl: Acidctl, path: tuple[str, ...], user: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class SeenError(StorageError):  # no class of its own: those are what the README's table is made of
        exit_status = 99

    def seen(spec: FileSystemSpec) -> None:
        raise SeenError(f"{dict(spec.options)}")

    monkeypatch.setattr("acidctl.storage.registry.open_file_system", seen)
    user("[storage.'s3://there']\nendpoint_url = 'mine'\n")
    found = acidctl(*path, "s3://there/x", *NEEDED.get(path[0], ()), "--set", "storage.anon=true")
    assert "SeenError" not in found.err
    assert "{'anon': 'true', 'endpoint_url': 'mine'}" in found.err, found.err


# --- what is shown ---


def test_secrets_are_not_shown(acidctl: Acidctl, user: Callable[[str], Path]) -> None:
    user(
        "[storage.'webhdfs://nn']\ntoken = 'hushhush1'\nuser = 'hive'\nkeytab = '/k.tab'\n"
        "[compact]\nconf = ['spark.hadoop.fs.s3a.secret.key=hushhush2', 'a=b']\n"
        "[profile.p.storage.'s3://b']\nclient_kwargs = {aws_secret_access_key = 'hushhush3'}\n"
    )
    for form in ("table", "json"):
        found = acidctl("doctor", "--profile", "p", "-o", form)
        assert found.status == 0
        assert "hushhush" not in found.out + found.err
        assert all(text in found.out for text in ("***", "hive", "/k.tab", "a=b"))


SECRETS = (
    "[storage.'s3://b']\nsecret = 'hushhush1'",
    "[storage.'s3://b'.client_kwargs]\naws_session_token = 'hushhush1'",
    "[profile.unused.storage.'s3://b']\ntoken = 'hushhush1'",
    "[compact]\nconf = ['spark.hadoop.fs.s3a.secret.key=hushhush1']",
    "[profile.p.compact]\nconf = ['spark.hadoop.fs.s3a.secret.key=hushhush1']",
)


@pytest.mark.parametrize("text", SECRETS)
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_credentials_that_others_can_read(acidctl: Acidctl, user: Callable[[str], Path], text: str, mode: int) -> None:
    path = user(text)
    assert acidctl("ls", ".").status == 0
    path.chmod(mode)
    for command in (("ls", "."), ("ls", ".", "--config", path), ("doctor",)):
        found = acidctl(*command)
        assert found.status == 7
        assert "is a credential that others can read" in found.err
        assert f"chmod 600 {path}" in found.err
        assert "hushhush" not in found.out + found.err
    assert acidctl("ls", "--help").status == 0
    path.write_text("[storage.'s3://b']\nendpoint_url = 'x'\nkeytab = '/k'\n[diff]\nkey = 'id'")
    assert acidctl("ls", ".").status == 0, "what is not a credential may be read"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_credentials_that_a_group_may_read_are_taken(
    terminal: Terminals, acidctl: Acidctl, user: Callable[[str], Path], tmp_path: Path
) -> None:
    """A service reads root's file by its group: a file of its own it can close to everybody else."""
    path = user(SECRETS[0])
    for parent in (path, *path.parents):
        if len(parent.parts) > 2:
            os.chmod(parent, 0o755)  # noqa: PTH101
    os.chown(path, 0, 65534)
    assert acidctl("ls", ".").status == 7, "of root, who is not a service"
    for mode, status in ((0o640, 0), (0o644, 7)):
        path.chmod(mode)
        found, shown = terminal.run("ls", "--debug", "--config", path, tmp_path / "project", nobody=True)
        assert found == status, shown


def test_doctor_hides_credentials_inside_of_values(acidctl: Acidctl, user: Callable[[str], Path]) -> None:
    url, query = "http://bob:pw123456@proxy:3128", "x?token=abcdefghijk"
    user(f"[storage.'s3://b'.proxies]\nhttp = '{url}'\n[storage.'hdfs://n']\ndoas = '{query}'").chmod(0o600)
    values = {name: value for name, (value, _) in shown(acidctl).items()}
    assert values['storage."s3://b"."proxies.http"'] == "http://***@proxy:3128"
    assert values['storage."hdfs://n".doas'] == "x?token=***"


def test_doctor_says_whether_the_file_is_used(acidctl: Acidctl, user: Callable[[str], Path]) -> None:
    def used() -> tuple[str, bool, int]:
        found = acidctl("doctor", "-o", "json").json()["configuration"]
        return found["file"], found["isUsed"], int(found["problem"] is not None)

    assert used()[1:] == (False, 0)
    path = user("")
    assert used() == (str(path), True, 0)
    path.chmod(0o602)
    assert used() == (str(path), False, 1)


# --- pure parts ---


def test_options_of_the_program_stand_anywhere() -> None:
    assert with_program_options_first(["ls", "--profile", "p", "x", "--color=always"]) == [
        "--profile",
        "p",
        "--color=always",
        "ls",
        "x",
    ]
    assert with_program_options_first(["ls", "--", "--profile", "p"]) == ["ls", "--", "--profile", "p"]
    assert with_program_options_first(["ls", "--config"]) == ["--config", "ls"]
    assert with_program_options_first(["clean", "-nv", "a", "-yq"]) == ["-v", "-q", "clean", "-n", "a", "-y"]
    assert with_program_options_first(["clean", "-qn", "a"]) == ["-q", "clean", "-n", "a"]
    assert with_program_options_first(["ls", "-vq"]) == ["-v", "-q", "ls"]
    # Words of these letters are names: a table called ivy must not turn into --yes.
    for left in (
        ["clean", "orders", "ivy"],
        ["purge", "navy", "gravy"],
        ["ls", "--exclude", "envy"],
        ["ls", "-ojsonl"],
        ["ls", "-ra"],
        ["x", "-", "-1"],
        ["ls", "--", "-nv"],
    ):
        assert with_program_options_first(left) == left


KEYS = ["jobs", "older-than", "metrics-file", "output"]
TABLES = st.dictionaries(st.sampled_from(KEYS), st.text(max_size=3))


@given(TABLES, st.dictionaries(st.sampled_from("pq"), TABLES), st.sampled_from("pq"))
def test_the_profile_goes_before_the_rest(
    base: dict[str, str], profiles: dict[str, dict[str, str]], profile: str
) -> None:
    tables = {"clean": base, "profile": {name: {"clean": table} for name, table in profiles.items()}}
    file = SettingsFile("f", tables)
    if profile not in profiles:
        with pytest.raises(UsageProblem):
            settings_of(file, profile)
        return
    chosen = {key: (value, f"f, profile {profile}") for key, value in profiles[profile].items()}
    expected = {key: (value, "f") for key, value in base.items()} | chosen
    merged = settings_of(file, profile)
    assert {key: tuple(value) for key, value in merged.below("clean").items()} == expected
    names = options_of(command_named("clean"))  # type: ignore[arg-type]
    made = merged.default_map().get("clean", {})
    assert made == {names[key].name: value for key, (value, _) in expected.items()}


def test_nothing_is_loaded_where_there_is_no_file(tmp_path: Path) -> None:
    env = os.environ | {"XDG_CONFIG_HOME": str(tmp_path)}
    of_metastores = {"thrift", "gssapi", "acidctl.metastore", "xml.etree.ElementTree"}
    for args, absent in (
        (["--help"], of_metastores),
        (["ls", "."], of_metastores),
        (["--help"], {"tomllib", "acidctl.cli.config.settings", "prometheus_client"}),
        (["ls", "."], {"tomllib", "prometheus_client", "difflib"}),
    ):
        program = f"import sys, json\nfrom acidctl.cli.main import main\ntry: main({args})\nexcept SystemExit: pass\n"
        program += "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        assert not absent & set(json.loads(done.stderr.splitlines()[-1])), args


def test_options_of_a_group_s_command_stand_below_both(
    acidctl: Acidctl, user: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    user('[hive.txns]\nuser = "etl"\n[hive.abort.txn]\ndry-run = true\n')
    monkeypatch.setenv("ACIDCTL_HIVE_TXNS_LIMIT", "7")
    values = {name: value for name, (value, _) in shown(acidctl).items() if name.startswith("hive.")}
    assert values == {"hive.txns.user": "etl", "hive.abort.txn.dry-run": True}
    monkeypatch.setenv("ACIDCTL_HIVE_TXNS_LIMTI", "7")
    found = acidctl("hive", "txns")
    assert (found.status, "did you mean ACIDCTL_HIVE_TXNS_LIMIT" in found.err) == (2, True)
    monkeypatch.delenv("ACIDCTL_HIVE_TXNS_LIMTI")
    user("[hive.txns]\nusr = 'etl'\n")
    found = acidctl("hive", "txns")
    assert (found.status, "hive.txns.usr cannot be used" in found.err) == (2, True)


def test_the_letters_of_flags_are_all_known() -> None:
    """A cluster of them is taken apart; no command has one of these letters for an option with a value of text."""
    letters = {
        name[1]: isinstance(option.type, click.types.StringParamType | click.Choice)
        for _, command in [((), cli), *walk()]
        for option in command.params
        for name in option.opts
        if isinstance(option, click.Option) and len(name) == 2
    }
    assert {letter for letter, takes_text in letters.items() if not takes_text} | {"h", "v", "q"} == program.FLAGS


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("storage.user=x", ("explain", "14")),
        ("metastore.auth=none", ("explain", "14")),
        ("metastore.auth=none", ("meta", "f.orc")),
        ("storage.user=x", ("hive", "tables")),
        ("storage.user=x", ("hive", "abort", "txn", "3")),
        ("storage.user=x", ("completion", "bash")),
    ],
)
def test_a_setting_without_a_use_is_refused(
    acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch, setting: str, line: tuple[str, ...]
) -> None:
    found = acidctl(*line, "--set", setting)
    assert found.status == 2
    assert f"--set {setting.partition('.')[0]}.* has no effect on `acidctl {line[0]}" in found.err
    words = [word for word in line if word in ("explain", "meta", "hive", "tables", "abort", "completion")]
    assert f"`acidctl {' '.join(words)} --help`" in found.err, "it is the command's own help"
    assert acidctl(*line, "--help", "--set", setting).status == 0
    monkeypatch.setenv("ACIDCTL_SET", setting)
    assert "has no effect" not in acidctl(*line).err


def test_the_variable_of_settings_is_named_as_their_origin(acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACIDCTL_SET", "storage.user=hive storage.token=abcdefghij metastore.auth=none")
    found = acidctl("doctor", "-o", "json", "--metastore", "thrift://127.0.0.1:1").json()
    origin = "environment: ACIDCTL_SET"
    (one,) = found["configuration"]["settings"]
    assert (one["name"], "abcdefghij" in one["value"]) == ("ACIDCTL_SET", False)
    assert {"name": "auth", "value": "none", "origin": origin} in found["metastore"]["settings"]
