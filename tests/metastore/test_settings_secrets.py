"""Where a metastore is and who one is to it; what is secret stays so, wherever something is said."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command_line import Result
from support.metastore.fake_hive import FakeHive
from support.metastore.fake_metastore import Failed
from support.paths import PYTHONPATH

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import NAMES, Login, Protection, find_settings

SECRET = "s3cr3t-w0rd-of-a11ce"
TOKEN = "ey.t0k3n.of-a11ce"


def test_without_an_address_there_is_no_metastore() -> None:
    assert find_settings({}, {}) is None
    assert find_settings({"uris": ""}, {}) is None


@given(st.dictionaries(st.sampled_from([name for name in NAMES if name != "uris"]), st.text(max_size=12), max_size=3))
def test_a_setting_is_taken_or_told(values: dict[str, str]) -> None:
    try:
        found = find_settings({"uris": "thrift://here:9083", **values}, {})
    except UsageProblem as error:
        for name in ("password", "token", "headers"):
            secret = values.get(name, "")
            others = " ".join(value for key, value in values.items() if key != name)  # which may be the same word
            assert len(secret) < 4 or secret in others or secret not in str(error)
        return
    assert found


@given(st.text(max_size=40))
def test_an_address_is_one_or_told(uri: str) -> None:
    try:
        found = find_settings({"uris": uri}, {})
    except UsageProblem:
        return
    assert found is None or all(address.host and 0 <= address.port <= 65535 for address in found.addresses)


@pytest.mark.parametrize(
    "uri",
    [
        "thrift://u:pw@h:1",
        "thrift://u@h",
        "ftp://h",
        "thrift://",
        "thrift://h:99999",
        "thrift://h:x",
        "thrift://[::1",
        "://",
    ],
)
def test_what_is_no_address_is_refused_and_a_password_in_it_never_repeated(uri: str) -> None:
    with pytest.raises(UsageProblem) as refused:
        find_settings({"uris": uri}, {})
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    "values",
    [
        {"timeout": "0"}, {"timeout": "-1"}, {"timeout": "1e9"}, {"timeout": "100000000"}, {"timeout": "5 parsecs"},
        {"tls": "perhaps"}, {"auth": "ntlm"}, {"protection": "some"}, {"selection": "BEST"},
        {"nonsense": "1"}, {"headers": "x"},
    ],
)  # fmt: skip
def test_a_value_that_is_none_is_told(values: dict[str, str]) -> None:
    with pytest.raises(UsageProblem):
        find_settings({"uris": "thrift://here:9083", **values}, {})


def test_the_login_follows_from_what_is_given() -> None:
    def login(**values: str) -> Login:
        found = find_settings({"uris": values.pop("uris", "thrift://here"), **values}, {})
        assert found
        return found.login

    assert login() is Login.NONE
    assert login(sasl="true") is Login.KERBEROS
    assert login(password="p") is Login.PLAIN
    assert login(token="t") is Login.TOKEN
    assert login(token="t", uris="https://here/metastore") is Login.JWT
    assert login(token="t", auth="kerberos") is Login.KERBEROS


def test_hives_files_say_what_nobody_else_does(tmp_path: Path) -> None:
    properties = {
        "hive.metastore.uris": "thrift://one:9083, thrift://two:9084",
        "hive.metastore.client.socket.timeout": "10m",
        "hadoop.rpc.protection": "privacy,integrity",
        "hive.metastore.sasl.enabled": "true",
    }
    rows = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items()
    )
    (tmp_path / "hive-site.xml").write_text(f"<configuration>{rows}</configuration>")
    found = find_settings({"timeout": ""}, {"HIVE_CONF_DIR": str(tmp_path)})
    assert found
    assert [address.url for address in found.addresses] == ["thrift://one:9083", "thrift://two:9084"]
    assert (found.timeout, found.login) == (600, Login.KERBEROS)
    assert found.protections == (Protection.PRIVACY, Protection.INTEGRITY)


# --- secrets --------------------------------------------------------------------------------------------------------


def test_a_representation_has_no_secret() -> None:
    values = {"password": SECRET, "token": TOKEN, "headers": f"X-Key={SECRET}", "user": "alice", "auth": "plain"}
    found = find_settings({"uris": "thrift://here", **values}, {})
    assert found
    for text in (repr(found), str(found), f"{found!r}"):
        assert SECRET not in text
        assert TOKEN not in text
    assert {SECRET, TOKEN} <= set(found.secrets)


@pytest.mark.parametrize("how", ["options", "environment", "configuration"])
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_server_that_repeats_a_secret_does_not_make_acidctl_do_so(
    how: str, form: str, tmp_path: Path, acidctl: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"user": "alice", "password": SECRET, "auth": "none"}
    line: list[str] = []
    if how == "options":
        line = [part for name, value in settings.items() for part in ("--set", f"metastore.{name}={value}")]
    elif how == "environment":
        monkeypatch.setenv("ACIDCTL_METASTORE_PASSWORD", SECRET)
        line = ["--set", "metastore.auth=none"]
    else:
        path = tmp_path / "config.toml"
        path.write_text("[metastore]\n" + "".join(f'{name} = "{value}"\n' for name, value in settings.items()))
        path.chmod(0o600)
        line = ["--config", str(path)]
    with FakeHive(4) as fake:
        fake.begin(query=f"select '{SECRET}'", user=SECRET)
        found = acidctl("hive", "txns", "-o", form, *line, "--metastore", fake.address)
        assert found.status == 0, found.err
        fake.answers["get_open_txns_info"] = _failing
        failed = acidctl("hive", "txns", "-o", form, "--debug", *line, "--metastore", fake.address)
    assert failed.status == 6
    assert "failed in get_open_txns_info" in failed.err
    for result in (found, failed):
        assert SECRET not in result.out + result.err


def _failing() -> None:
    raise Failed(f"the password {SECRET} of alice is wrong")


def test_an_error_of_a_login_can_be_sent_to_another_process_without_a_secret() -> None:
    with pytest.raises(AcidctlError) as refused:
        find_settings({"uris": "thrift://here", "headers": f"no header {SECRET}"}, {})
    assert SECRET not in str(pickle.loads(pickle.dumps(refused.value)))


def test_what_is_configured_or_in_the_environment_is_in_no_title_of_a_process_and_in_no_log(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'[metastore]\nuser = "alice"\npassword = "{SECRET}"\nauth = "none"\n')
    path.chmod(0o600)
    titles = []
    with FakeHive(4) as fake:
        running: list[subprocess.Popen[str]] = []

        def look() -> None:
            while not running:
                pass
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    titles.append((process / "cmdline").read_bytes())
                except OSError:
                    continue

        fake.before["get_open_txns_info"] = look
        line = [sys.executable, "-m", "acidctl", "--config", str(path), "hive", "txns", "--metastore", fake.address]
        environment = {**os.environ, "PYTHONPATH": PYTHONPATH, "ACIDCTL_METASTORE_TOKEN": TOKEN}
        running.append(
            subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
        said = running[0].communicate(timeout=60)[0]
    assert running[0].returncode == 0, said
    assert titles
    assert not any(SECRET.encode() in title or TOKEN.encode() in title for title in titles)
    assert SECRET not in said


def test_nothing_is_logged_that_a_program_did_not_ask_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), FakeHive(4) as fake:
        settings = find_settings({"uris": fake.address, "password": SECRET, "auth": "none"}, {})
        assert settings
        Metastore(settings).call(interface.GET_VERSION)
    assert SECRET not in caplog.text
