"""What services serve with ``--listen``, and to whom they do not listen."""

from __future__ import annotations

import socket
import struct
import time
import urllib.request

import pytest

from acidctl.base.errors import EnvironmentProblem, UsageProblem
from acidctl.cli.hive.services import Figures, serve
from acidctl.verbs.hive.service import Counts


@pytest.mark.parametrize("listen", ["", ":", "-1", "65536", "²", "9" * 5000, "localhost:http"])
def test_what_is_no_address_is_said(listen: str) -> None:
    with pytest.raises(UsageProblem), serve(listen, Figures("worker", Counts())):
        pass


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(EnvironmentProblem, match="in use"),
            serve(str(taken.getsockname()[1]), Figures("worker", Counts())),
        ):
            pass


@pytest.mark.parametrize("listen", ["0", "localhost:0", "[::1]:0"])
def test_it_listens_there(listen: str) -> None:
    if "::" in listen:
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("there is no IPv6 here")
    with serve(listen, Figures("worker", Counts(running=1))) as address:
        assert urllib.request.urlopen(f"http://{address}/healthz", timeout=10).read() == b"ok\n"


def test_who_hangs_up_is_not_written_about(capfd: pytest.CaptureFixture[str]) -> None:
    with serve("0", Figures("worker", Counts(running=1))) as address:
        host, _, port = address.rpartition(":")
        assert address in capfd.readouterr().err
        for said in (b"", b"GET", b"GET /metrics HTTP/1.1\r\n\r\n"):
            with socket.create_connection((host, int(port)), timeout=10) as client:
                client.sendall(said)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        for _ in range(3):
            urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read()
    assert capfd.readouterr().err == ""


def test_it_is_well_while_it_is_answered_or_at_work() -> None:
    now = time.time()
    assert Figures("worker", Counts(checked=now - 100)).is_well()
    assert Figures("worker", Counts(running=1, failing=True)).is_well()
    assert not Figures("worker", Counts(checked=now, failing=True)).is_well()
    assert not Figures("worker", Counts(checked=now - 1000)).is_well()
    assert Figures("initiator", Counts()).is_well()
    assert not Figures("initiator", Counts(failing=True)).is_well()


def test_an_initiator_has_figures_of_its_own() -> None:
    counts = Counts(rounds=2, seconds=1.5, checked=1000.0)
    counts.results.update({"requested": 3, "nothing-to-do": 40})
    with serve("0", Figures("initiator", counts)) as address:
        told = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode()
    assert 'acidctl_initiator_locations_total{result="requested"} 3.0' in told
    assert "acidctl_initiator_rounds_total 2.0" in told
    assert "acidctl_initiator_last_round_timestamp_seconds 1000.0" in told
