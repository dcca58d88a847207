"""TLS: a server that is not who it should be is not talked to, and it is said why."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from support.metastore.fake_metastore import answer_bytes

from acidctl.base.errors import AccessError, AcidctlError, EnvironmentProblem
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError, Unreachable
from acidctl.metastore.settings import find_settings

_DAY = datetime.timedelta(days=1)


def certificate(
    folder: Path, name: str = "localhost", begins: int = -1, ends: int = 1, signer: Path | None = None, ca: bool = False
) -> Path:
    """A certificate with its key in one PEM file.

    Args:
        begins, ends: days from now.
        signer: the file of whoever signs it; without one it does so itself.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} {signer is None}")])
    issuer, signing = subject, key
    if signer:
        data = signer.read_bytes()
        issuer = x509.load_pem_x509_certificate(data).subject
        loaded = serialization.load_pem_private_key(data, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signing = loaded
    alternatives: list[x509.GeneralName] = [x509.DNSName(name)]
    if name == "localhost":
        alternatives.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins * _DAY)
        .not_valid_after(now + ends * _DAY)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(signing, hashes.SHA256())
    )
    path = folder / f"{x509.random_serial_number()}.pem"
    form = serialization.PrivateFormat.PKCS8
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("ca"), "an authority", ca=True)


@contextmanager
def tls_server(context: ssl.SSLContext | None) -> Iterator[int]:
    """A metastore that knows its version, over TLS; without a context it says so in the open."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with suppress(OSError), closing(connection):
                    talk = context.wrap_socket(connection, server_side=True) if context else connection
                    with closing(talk):
                        talk.recv(1000)
                        talk.sendall(answer_bytes(interface.SET_UGI, (), 1))
                        talk.recv(1000)
                        talk.sendall(answer_bytes(interface.GET_VERSION, "4.0.1", 2))
                        talk.recv(1)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def of(pem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


def version(port: int, host: str = "localhost", **given: str) -> str:
    settings = find_settings(
        {"uris": f"thrift://{host}:{port}", "tls": "true", "timeout": "3", "connect-timeout": "3", **given}, {}
    )
    assert settings
    return str(Metastore(settings, rounds=1).call(interface.GET_VERSION))


def test_a_server_whose_authority_is_trusted_is(authority: Path, tmp_path: Path) -> None:
    with tls_server(of(certificate(tmp_path, signer=authority))) as port:
        assert version(port, ca=str(authority)) == "4.0.1"
        assert version(port, "127.0.0.1", ca=str(authority)) == "4.0.1"


@pytest.mark.parametrize(
    ("name", "begins", "ends", "said"),
    [
        ("elsewhere.example", -1, 1, "name the server as its certificate does"),
        ("*.example", -1, 1, "name the server as its certificate does"),
        ("localhost", -9, -2, "needs a new certificate"),
        ("localhost", 2, 9, "see the clocks"),
    ],
)
def test_a_wrong_name_and_a_wrong_time_are_not_trusted(
    authority: Path, tmp_path: Path, name: str, begins: int, ends: int, said: str
) -> None:
    context = of(certificate(tmp_path, name, begins, ends, authority))
    with tls_server(context) as port, pytest.raises(AccessError, match="not to be trusted") as refused:
        version(port, ca=str(authority))
    assert said in refused.value.hint


def test_nobody_vouches_for_himself_and_the_systems_authorities_for_none_of_ours(
    authority: Path, tmp_path: Path
) -> None:
    own = certificate(tmp_path)
    for pem, ca in ((own, str(authority)), (own, ""), (certificate(tmp_path, signer=authority), "")):
        with tls_server(of(pem)) as port, pytest.raises(AccessError, match="not to be trusted") as refused:
            version(port, **({"ca": ca} if ca else {}))
        assert "the setting ca" in refused.value.hint


def test_an_old_protocol_is_not_spoken(authority: Path, tmp_path: Path) -> None:
    context = of(certificate(tmp_path, signer=authority))
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with tls_server(context) as port, pytest.raises(AcidctlError) as refused:
        version(port, ca=str(authority))
    assert isinstance(refused.value, MetastoreError)


def test_a_server_without_tls_and_a_client_without_it_are_told_so(authority: Path, tmp_path: Path) -> None:
    with tls_server(None) as port, pytest.raises((Unreachable, MetastoreError)):
        version(port, ca=str(authority))
    with tls_server(of(certificate(tmp_path, signer=authority))) as port, pytest.raises(AcidctlError):
        version(port, tls="false")


def test_a_server_that_says_nothing_in_the_handshake_is_waited_for_as_long_as_is_said(authority: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener, pytest.raises(Unreachable):
        version(listener.getsockname()[1], ca=str(authority), **{"connect-timeout": "0.5"})


@pytest.mark.parametrize("name", ["ca", "certificate"])
@pytest.mark.parametrize(
    "content", [None, b"", b"no PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_files_that_are_no_certificates_are_told(tmp_path: Path, name: str, content: bytes | None) -> None:
    path = tmp_path / "odd.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EnvironmentProblem, match="cannot be used") as refused:
        version(1, **{name: str(path)})
    assert "odd.pem" in str(refused.value)


def test_a_key_with_a_password_asks_nobody(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    locked = serialization.BestAvailableEncryption(b"secret")
    pem = certificate(tmp_path)
    path = tmp_path / "locked.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
        + pem.read_bytes()[pem.read_bytes().index(b"-----BEGIN CERTIFICATE") :]
    )
    with pytest.raises(EnvironmentProblem, match="cannot be used"):
        version(1, certificate=str(path))
