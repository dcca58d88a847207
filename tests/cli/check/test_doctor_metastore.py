"""`acidctl doctor --metastore`: settings and where they are from, each server, and what is wrong."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.metastore.fake_hive import FakeHive
from support.metastore.fake_metastore import fake_metastore

Run = Callable[..., Result]
SECRET = "hushhushhush"


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which Java there is is another test's question."""
    monkeypatch.setattr("acidctl.spark.probe.gather", lambda: {"python": "3", "environment": []})


@pytest.fixture(params=[2, 3, 4], ids=["hive-2", "hive-3", "hive-4"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeHive]:
    with FakeHive(request.param, config={"hive.txn.timeout": "90s"}) as one:
        yield one


def asked(acidctl: Run, *line: str, status: int = 0) -> dict[str, Any]:
    """What JSON says of the metastore."""
    done = acidctl("doctor", *line, "-o", "json")
    assert done.status == status, done.err
    found: dict[str, Any] = done.json()["metastore"]
    return found


def test_a_server_is_shown_with_its_version_and_services(acidctl: Run, fake: FakeHive) -> None:
    found = asked(acidctl, "--metastore", fake.address)
    assert found["settings"] == [{"name": "uris", "value": fake.address, "origin": "--metastore"}]
    (server,) = found["servers"]
    assert (server["answers"], server["hive"], server["tls"]) == (True, fake.version, None)
    assert server["services"]["houseKeeper"] is False
    assert (server["services"]["workers"] is None) == (fake.version == 4), "HiveServer2 has them from Hive 4 on"
    text = " ".join(acidctl("doctor", f"--metastore={fake.address}").out.split())
    assert f"its calls are those of Hive {fake.version}" in text
    assert "house keeper off" in text


def test_each_setting_says_where_it_is_from(
    acidctl: Run, fake: FakeHive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "hive-site.xml"
    pairs = {
        "hive.metastore.uris": fake.address,
        "metastore.client.socket.timeout": "77s",
        "hadoop.rpc.protection": "privacy",
    }
    lines = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in pairs.items())
    site.write_text(f"<configuration>{lines}</configuration>")
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("ACIDCTL_METASTORE_PASSWORD", SECRET)
    config = tmp_path / "c.toml"
    config.write_text('[metastore]\nselection = "SEQUENTIAL"\n[profile.prod.metastore]\nconnect-timeout = "7"\n')
    line = ("--config", str(config), "--profile", "prod", "--metastore", "--set", "metastore.auth=none")
    found = {one["name"]: (one["value"], one["origin"]) for one in asked(acidctl, *line)["settings"]}
    assert found == {
        "uris": (fake.address, f"hive.metastore.uris in {site}"),
        "timeout": ("77s", f"metastore.client.socket.timeout in {site}"),
        "protection": ("privacy", f"hadoop.rpc.protection in {site}"),
        "selection": ("SEQUENTIAL", f"user file {config}"),
        "connect-timeout": ("7", f"user file {config}, profile prod"),
        "auth": ("none", "--set"),
        "password": ("***", "ACIDCTL_METASTORE_PASSWORD"),
    }
    done = acidctl("doctor", *line)
    assert SECRET not in done.out + done.err
    monkeypatch.setenv("ACIDCTL_DOCTOR_METASTORE", fake.address)
    uris = asked(acidctl, "--set", "metastore.auth=none")["settings"][0]
    assert uris["origin"] == "environment: ACIDCTL_DOCTOR_METASTORE"


def test_of_several_servers_each_is_tried_and_what_is_wrong_is_the_status(acidctl: Run, fake: FakeHive) -> None:
    found = asked(acidctl, "--metastore", f"thrift://127.0.0.1:1,{fake.address}", status=6)
    assert [one["answers"] for one in found["servers"]] == [False, True]
    assert found["servers"][0]["problems"][0]["code"] == "metastore"
    done = acidctl("doctor", "--metastore", f"thrift://127.0.0.1:1,{fake.address}")
    assert "127.0.0.1:1: cannot be asked" in done.out
    assert "cannot be reached" in done.err
    assert f"its calls are those of Hive {fake.version}" in done.out


@pytest.mark.parametrize(
    ("line", "status", "word"),
    [
        (["--metastore"], 2, "no metastore is known"),
        (["--metastore", "none"], 2, "no metastore is asked"),
        (["--metastore", "ftp://h"], 2, "not the address"),
        (["--metastore", f"thrift://u:{SECRET}@h"], 2, "must not hold a user"),
        (["--metastore", f"u:{SECRET}@h:9083"], 2, "must not hold a user"),
        (["--metastore", f"u:{SECRET}/x@h:9083"], 2, "must not hold a user"),
        (["--metastore", "thrift://h", "--set", "metastore.protocol=x"], 2, "not a setting"),
        (["--metastore", "thrift://h", "--set", "metastore.timeout=soon"], 2, "not a time"),
        (["--metastore", "thrift://h", "--set", "metastore.auth=magic"], 2, "not a way to log in"),
        (["--metastore", "thrift://127.0.0.1:1", "--set", f"metastore.password={SECRET}"], 7, "has no TLS"),
        (["--metastore", "thrift://127.0.0.1:1"], 6, "cannot be reached"),
        (["--metastore", "thrift://127.0.0.1:1", "--set", "metastore.ca=/no/such.pem", "--set",
          "metastore.tls=true"], 8, "certificates"),
        (["--set", "metastore.auth=plain"], 2, "has no effect"),
        (["--set", "storage.user=x"], 2, "has no effect"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_a_line_and_a_status(acidctl: Run, line: list[str], status: int, word: str) -> None:
    done = acidctl("doctor", *line)
    assert done.status == status
    assert word in done.err
    assert "Traceback" not in done.err
    assert SECRET not in done.out + done.err
    if line[0] == "--metastore":
        found = asked(acidctl, *line, status=status)
        problem = found["problem"] or found["servers"][0]["problems"][0]
        assert word in problem["what"] + problem["why"]
        assert SECRET not in str(found)


def test_without_the_extra_its_name_is_told_and_the_settings_are_shown(
    acidctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("acidctl.metastore.client"):
            raise ModuleNotFoundError("No module named 'thrift'", name="thrift")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    done = acidctl("doctor", "--metastore", "thrift://h")
    assert done.status == 8
    assert "pip install 'acidctl[metastore]'" in done.err
    assert "uris=thrift://h" in done.out


def test_a_server_that_fails_in_some_of_it_tells_the_rest(acidctl: Run) -> None:
    with FakeHive(4) as fake:
        fake.fault("getVersion", "failed", 9)
        found = asked(acidctl, "--metastore", fake.address, status=6)
    (server,) = found["servers"]
    assert (server["answers"], server["hive"], server["services"]) == (True, None, None)
    assert "getVersion" in server["problems"][0]["what"]


def test_a_server_that_is_none_and_one_that_lies(acidctl: Run) -> None:
    with fake_metastore({"getVersion": lambda: "9.\x1b[31m" + "9" * 100_000}) as server:
        done = acidctl("doctor", "--metastore", server.address)
    assert "reports version" in done.out
    assert "\x1b" not in done.out + done.err
    assert len(done.out) < 20_000
