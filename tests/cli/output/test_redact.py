"""What is printed and written: never a credential."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import CLEAN_NOW

from acidctl.cli.output import redact
from acidctl.cli.output.redact import hidden, hidden_in, is_secret_name, remember
from acidctl.storage.registry import open_location

Acidctl = Callable[..., Any]


SECRETS = ("AKIAHUSH1", "hushhush2", "hush/hush+3", "hushhush4")
IN_URLS = [f"s3://{SECRETS[0]}:{SECRETS[1]}@bucket/t", f"webhdfs://hive:{SECRETS[1]}@127.0.0.1:1/t"]
PLAIN = "webhdfs://127.0.0.1:1/t"
COMMANDS = [
    ("ls",), ("cat",), ("why",), ("history",), CLEAN_NOW, ("validate",),
    ("compact", "--assume-committed=0s", "--major", "--engine", "local"),
    ("restore",), ("purge", "--yes"), ("clean", "--plan", "{plan}"),
]  # fmt: skip
REPORTED = {"compact", "clean", "validate"}
OPTIONS = ("retries=0", "timeout=1", f"key={SECRETS[0]}", f"secret={SECRETS[1]}", f"token={SECRETS[2]}")


def everything(tmp_path: Path, found: Any) -> str:
    """All that a run left behind."""
    files = "".join(path.read_text() for path in tmp_path.glob("out-*"))
    return found.out + found.err + files


def told(text: str) -> list[str]:
    """The secrets in it, also where something has escaped them."""
    from urllib.parse import unquote

    return [secret for secret in SECRETS if secret in text or secret in unquote(text)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("url", [*IN_URLS, PLAIN])
def test_no_credentials_in_what_fails(acidctl: Acidctl, command: tuple[str, ...], url: str, tmp_path: Path) -> None:
    line = [part.format(plan=tmp_path / "out-plan.json") for part in command]
    if command[0] in REPORTED:
        line += ["--metrics-file", str(tmp_path / "out-run.prom")]
    options = [word for option in OPTIONS for word in ("--set", f"storage.{option}")]
    location = [url] if command[0] not in {"why", "dump"} else [url, "base_1"]
    found = acidctl(*line, *options, *location, "--debug")
    assert found.status not in (0, 1)
    assert not told(everything(tmp_path, found))


def test_no_credentials_in_what_succeeds(acidctl: Acidctl, crud: Path, tmp_path: Path) -> None:
    options = [word for option in OPTIONS for word in ("--set", f"storage.{option}")]
    acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", crud)
    store, url = open_location("memory://secrets/crud")[0], "memory://secrets/crud"  # the local disk takes no options
    for path in sorted(path for path in crud.rglob("*") if path.is_file()):
        store.make_dirs(f"/secrets/crud/{path.relative_to(crud).parent}")
        store.write_bytes(f"/secrets/crud/{path.relative_to(crud)}", path.read_bytes())
    plan, prom = (tmp_path / f"out-{name}" for name in ("plan.json", "run.prom"))
    files = ("--metrics-file", prom)
    for line in (("clean", "--plan", plan, "--older-than", "0", "--unsafe-retention"), ("validate",), CLEAN_NOW):
        found = acidctl(*line, *files, *options, url)
        assert found.status == 0
        assert not told(everything(tmp_path, found))
    assert plan.stat().st_size
    assert 'result="cleaned"' in prom.read_text()


def test_doctor_hides_what_spark_is_given(acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--conf spark.hadoop.fs.s3a.secret.key={SECRETS[1]} --conf a.b=shown")
    for form in ("table", "json"):
        found = acidctl("doctor", "-o", form)
        assert "a.b=shown" in found.out
        assert not told(found.out + found.err)


@pytest.mark.parametrize(
    "line",
    [
        ("ls", "--set", SECRETS[1], "x"),
        ("ls", "--sett", f"storage.token={SECRETS[1]}", "x"),
        ("ls", f"--sett=storage.token={SECRETS[1]}", "x"),
        ("compact", "--assume-committed=0s", "--major", "--conf", SECRETS[1], "x"),
        (
            "compact",
            "--assume-committed=0s",
            "--major",
            f"--conf=spark.hadoop.fs.s3a.secret.key={SECRETS[1]}",
            "--jobs",
            "2",
            "x",
        ),
        ("meta", f"s3://{SECRETS[0]}:{SECRETS[1]}@b/x"),
        ("dump", f"hdfs://u:{SECRETS[1]}@nn/x"),
        ("clean", "--set", f"storage.password={SECRETS[1]}", "--apply", "missing.json"),
    ],
)
def test_no_credentials_in_what_is_mistyped(acidctl: Acidctl, line: tuple[str, ...]) -> None:
    found = acidctl(*line)
    assert found.status in (2, 3)
    assert not told(found.out + found.err)


@pytest.fixture
def rejecting(tmp_path: Path) -> Iterator[str]:
    """A server that repeats what it was asked for: its URL."""
    program = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"RemoteException": {"exception": "X", "message": "no: %s"}}' % self.path.encode()
        self.send_response(403); self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
    server = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert server.stdout
    yield f"webhdfs://127.0.0.1:{server.stdout.readline().strip()}/t"
    server.terminate()
    server.wait()
    server.stdout.close()


def test_a_server_that_repeats_the_token(
    acidctl: Acidctl, rejecting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACIDCTL_SET", f"storage.token={SECRETS[2]} storage.retries=0")
    config = tmp_path / "config.toml"
    config.write_text(f"[storage.'{rejecting.rpartition('/')[0]}']\ntoken = '{SECRETS[2]}'\nretries = 0\n")
    config.chmod(0o600)
    for line in (("ls", "-o", "jsonl", rejecting), ("cat", "--config", config, rejecting)):
        found = acidctl(*line, "--debug")
        assert found.status == 6, found.err
        assert "delegation=***" in found.err, "the message is there, without the token"
        assert not told(found.out + found.err)


def test_options_named_like_secrets_are_told_from_others() -> None:
    secret = (
        "key secret token aws_secret_access_key sas_token account_key fs.s3a.secret.key spark.ssl.keyPassword apiKey "
    )
    secret += "connection_string password passwd privateKey client_kwargs.aws_session_token delegation"
    assert [name for name in secret.split() if not is_secret_name(name)] == []
    plain = "user keytab principal timeout monkey keys_of endpoint_url tokenizer.x spark.executor.memory passive author"
    assert [name for name in plain.split() if is_secret_name(name)] == ["keys_of"]


def test_paths_and_columns_stay() -> None:
    for text in ("cannot read /w/t/token=5/delta_1_1", "key=5 is not a column", "give --set storage.token=..., or"):
        assert hidden(text) == text
    assert hidden("GET /t?op=LIST&delegation=abc&x=1 'password=xyz', s3://u:pw@b/x") == (
        "GET /t?op=LIST&delegation=***&x=1 'password=***', s3://***@b/x"
    )


def test_credentials_of_the_environment_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "from-the-environment")
    assert hidden("denied: from-the-environment.") == "denied: ***."


def test_short_secrets_spare_paths() -> None:
    remember("orc")
    assert hidden("orc orcs orc/x") == "*** orcs ***/x"
    assert hidden_in({"orc": ["orc", 1]}) == {"orc": ["orc", 1]}
    remember("long-secret")
    assert hidden_in({"a": ["xlong-secret", 1, None]}) == {"a": ["x***", 1, None]}


@given(st.text(min_size=8), st.text(), st.text())
def test_a_known_secret_is_never_left(secret: str, before: str, after: str) -> None:
    redact._known.clear()
    remember(secret)
    assert secret not in hidden(before + secret + after).replace("***", "") or set(secret) <= {"*"}
