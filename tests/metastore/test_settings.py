"""Where the metastore is, and how one logs in: what Hive's files, the environment and a user say."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidctl.base.errors import UsageProblem
from acidctl.metastore.settings import Login, Setting, find_settings, seconds_in, sourced_settings


def site(folder: Path, **pairs: str) -> dict[str, str]:
    """A configuration of Hive; gives the environment that leads to it."""
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in pairs.items())
    (folder / "hive-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    return {"HIVE_CONF_DIR": str(folder)}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("600", 600), ("600s", 600), ("90sec", 90), (" 10 seconds ", 10), ("250ms", 0.25), ("250 msec", 0.25),
        ("2m", 120), ("2min", 120), ("2 Minutes", 120), ("12h", 43200), ("1hours", 3600), ("1d", 86400), ("1.5h", 5400),
        ("0", 0), ("", None), ("soon", None), ("5 parsecs", None), ("-1", None), ("1h30m", None), ("${a}", None),
    ],
)  # fmt: skip
def test_times_are_those_of_hive(text: str, seconds: float | None) -> None:
    assert seconds_in(text) == (None if seconds is None else pytest.approx(seconds))


def test_what_is_given_wins_over_files_and_those_over_secrets_of_the_environment(tmp_path: Path) -> None:
    environ = site(tmp_path, **{"hive.metastore.uris": "thrift://a:1", "metastore.client.socket.timeout": "2min"})
    environ |= {"ACIDCTL_METASTORE_PASSWORD": "p", "ACIDCTL_METASTORE_TOKEN": "t"}
    said = sourced_settings({"timeout": "5", "password": "mine"}, environ)
    assert said == {
        "uris": Setting("thrift://a:1", f"hive.metastore.uris in {tmp_path}/hive-site.xml"),
        "timeout": Setting("5"),
        "password": Setting("mine"),
        "token": Setting("t", "ACIDCTL_METASTORE_TOKEN"),
    }
    settings = find_settings({"uris": "thrift://b:2"}, environ)
    assert settings
    assert (settings.addresses[0].host, settings.timeout, settings.password) == ("b", 120, "p")
    assert {"p", "t"} <= set(settings.secrets)
    assert "'p'" not in repr(settings)


def test_a_jwt_of_the_environment_is_for_http_only() -> None:
    environ = {"HMS_JWT": "j"}
    assert "token" not in sourced_settings({"uris": "thrift://a"}, environ)
    assert sourced_settings({"uris": "https://a"}, environ)["token"] == Setting("j", "HMS_JWT")
    assert sourced_settings({"uris": "a:1", "transport": "http"}, environ)["token"].value == "j"
    assert "token" not in sourced_settings({"uris": "https://a", "auth": "kerberos"}, environ)
    settings = find_settings({"uris": "https://a"}, environ)
    assert settings
    assert settings.login is Login.JWT


def test_without_an_address_there_is_none_and_secrets_alone_make_none() -> None:
    assert find_settings({}, {"ACIDCTL_METASTORE_TOKEN": "t"}) is None
    assert sourced_settings({}, {"ACIDCTL_METASTORE_TOKEN": "t"}) == {}


@pytest.mark.parametrize(
    "given",
    [{"port": "1"}, {"uris": "u:p@h"}, {"uris": "thrift://h:x"}, {"uris": "thrift://h", "selection": "best"},
     {"uris": "thrift://h", "protection": "some"}, {"uris": "thrift://h", "framed": "perhaps"},
     {"uris": "thrift://h", "timeout": "0"},
     {"uris": "thrift://h", "headers": "no"}],
)  # fmt: skip
def test_what_cannot_be_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(UsageProblem):
        find_settings(given, {})


def test_a_metastore_that_only_zookeeper_knows_is_refused_unless_its_address_is_given(tmp_path: Path) -> None:
    environ = site(
        tmp_path, **{"metastore.thrift.uris": "zk1:2181,zk2", "metastore.service.discovery.mode": "zookeeper"}
    )
    with pytest.raises(UsageProblem, match="ZooKeeper"):
        find_settings({}, environ)
    found = find_settings({"uris": "thrift://one:9083"}, environ)
    assert found
    assert found.shown == "thrift://one:9083"
