"""Log in with a delegation token by the SASL mechanism DIGEST-MD5 (RFC 2831), which does not send the token."""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import b64encode
from collections.abc import Iterator
from hashlib import md5

from thrift.protocol.TProtocol import TProtocolException

from acidctl.base.errors import AccessError, UsageProblem
from acidctl.hadoop.tokens import Token
from acidctl.metastore.settings import Protection
from acidctl.metastore.transport.sasl import Mechanism, chosen_protection

_QOP = {Protection.AUTHENTICATION: "auth", Protection.INTEGRITY: "auth-int", Protection.PRIVACY: "auth-conf"}
_URI = "null/default"  # protocol and host: Hive's client and server both use these values
_PAIR = re.compile(r'\s*([A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]*))\s*(?:,|$)')
_KIND, _MAC, _SEQUENCE = b"\0\1", 10, 4
_SEAL = {"rc4": 16, "rc4-56": 7, "rc4-40": 5}  # ciphers with the bytes of the key that they use, strongest first
_NO_BODY = ":" + "0" * 32


class Digest(Mechanism):
    """A login with a delegation token.

    Args:
        shown: the server's address, for messages.
        wanted: protections in order of preference.
    """

    name = "DIGEST-MD5"
    hint = "get a new token; klist and auth=kerberos, where there is a ticket"

    def __init__(self, shown: str, token: Token, wanted: tuple[Protection, ...]) -> None:
        self._shown = shown
        self._user = b64encode(token.identifier).decode()
        self._password = b64encode(token.password).decode()
        self._wanted = wanted
        self._proof = ""
        self._is_done = False
        self.description = "with a delegation token"

    def respond(self, challenge: bytes) -> bytes:
        """Answer the server's challenge, which comes first; then check its proof that it knows the token, too."""
        if not challenge:
            return b""
        if self._proof:
            self._verify(challenge)
            return b""
        fields = _pairs(challenge)
        nonce, realm = fields.get("nonce", ""), fields.get("realm", "")
        if not nonce or fields.get("algorithm", "md5-sess") != "md5-sess":
            raise TProtocolException(TProtocolException.INVALID_DATA, "no challenge of DIGEST-MD5")
        offers = [word.strip() for word in fields.get("qop", "auth").split(",")]
        offered = {protection for protection, word in _QOP.items() if word in offers}
        ciphers = [word.strip() for word in fields.get("cipher", "").split(",")]
        cipher = next((name for name in _SEAL if name in ciphers), "")
        if not cipher:
            offered.discard(Protection.PRIVACY)
        protection = chosen_protection(self._wanted, offered, self._shown)
        self.description += f", {protection}"
        qop, cnonce = _QOP[protection], secrets.token_hex(16)
        user = md5(f"{self._user}:{realm}:{self._password}".encode(), usedforsecurity=False).digest()
        key = md5(user + f":{nonce}:{cnonce}".encode(), usedforsecurity=False).digest()
        body = "" if qop == "auth" else _NO_BODY

        def proof(verb: str) -> str:
            uri_hash = _hex(f"{verb}:{_URI}{body}")
            return _hex(f"{key.hex()}:{nonce}:00000001:{cnonce}:{qop}:{uri_hash}")

        self._proof = proof("")
        if protection == Protection.INTEGRITY:
            self.layer = Signed(key)
        elif protection == Protection.PRIVACY:
            self.layer = Sealed(key, _SEAL[cipher])
        parts = [
            "charset=utf-8",
            f'username="{self._user}"',
            f'realm="{_quoted(realm)}"',
            f'nonce="{_quoted(nonce)}"',
            "nc=00000001",
            f'cnonce="{cnonce}"',
            f'digest-uri="{_URI}"',
            f"response={proof('AUTHENTICATE')}",
            f"qop={qop}",
            *([f'cipher="{cipher}"'] if qop == "auth-conf" else []),
        ]
        return ",".join(parts).encode()

    def end(self, last: bytes) -> None:
        """Check the server's proof, which comes with the end unless it came before."""
        if last or not self._is_done:
            self._verify(last)

    def _verify(self, words: bytes) -> None:
        shown = _pairs(words).get("rspauth", "")
        if not self._proof or not hmac.compare_digest(shown.encode(), self._proof.encode()):
            what = f"the metastore {self._shown} does not know the delegation token"
            why = "it has not proven that it does: it may be another server"
            raise AccessError(what, why, "check its address, and get a new token")
        self._is_done = True


def token_of_text(text: str) -> Token:
    """Parse a delegation token in Hadoop's URL-safe form.

    Raises:
        UsageProblem: the text is not a token.
    """
    try:
        return Token.of_text(text)
    except ValueError as error:
        why = "it is not the text of a Hadoop token"
        hint = "the setting token, or ACIDCTL_METASTORE_TOKEN: as get_delegation_token gives it"
        raise UsageProblem("the delegation token for the metastore cannot be read", why, hint) from error


class Signed:
    """Protection by a checksum and a sequence number with every message."""

    def __init__(self, key: bytes) -> None:
        magic = "Digest session key to {}-to-{} signing key magic constant"
        self._own = md5(key + magic.format("client", "server").encode(), usedforsecurity=False).digest()
        self._servers = md5(key + magic.format("server", "client").encode(), usedforsecurity=False).digest()
        self._sent = self._received = 0

    def wrap(self, data: bytes) -> Iterator[bytes]:
        """Yield one frame: the message, its checksum, its number."""
        number = self._sent.to_bytes(_SEQUENCE, "big")
        self._sent += 1
        yield self._sealed(data, hmac.digest(self._own, number + data, "md5")[:_MAC]) + _KIND + number

    def unwrap(self, frame: bytes) -> bytes:
        """Return the message of a frame.

        Raises:
            TProtocolException: a message was changed, dropped or repeated on its way.
        """
        number = self._received.to_bytes(_SEQUENCE, "big")
        self._received += 1
        data, mac = self._opened(frame[: -len(_KIND) - _SEQUENCE])
        expected = hmac.digest(self._servers, number + data, "md5")[:_MAC]
        if frame[-len(_KIND) - _SEQUENCE :] != _KIND + number or not hmac.compare_digest(mac, expected):
            raise TProtocolException(TProtocolException.INVALID_DATA, "a message that was changed on its way")
        return data

    def _sealed(self, data: bytes, mac: bytes) -> bytes:
        return data + mac

    def _opened(self, sealed: bytes) -> tuple[bytes, bytes]:
        return sealed[:-_MAC], sealed[-_MAC:]


class Sealed(Signed):
    """Protection that also encrypts, with RC4: the cipher of DIGEST-MD5 that Java's servers offer."""

    def __init__(self, key: bytes, size: int) -> None:
        super().__init__(key)
        magic = "Digest H(A1) to {}-to-{} sealing key magic constant"
        keys = [
            md5(key[:size] + magic.format(*pair).encode(), usedforsecurity=False).digest()
            for pair in (("client", "server"), ("server", "client"))
        ]
        self._out, self._in = (_rc4(cipher_key) for cipher_key in keys)

    def _sealed(self, data: bytes, mac: bytes) -> bytes:
        return _xor(data + mac, self._out)

    def _opened(self, sealed: bytes) -> tuple[bytes, bytes]:
        return super()._opened(_xor(sealed, self._in))


def _xor(data: bytes, stream: Iterator[int]) -> bytes:
    key = bytes(next(stream) for _ in range(len(data)))
    return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(len(data), "big")


def _rc4(key: bytes) -> Iterator[int]:
    """Yield RC4's key stream."""
    box, j = list(range(256)), 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) & 255
        box[i], box[j] = box[j], box[i]
    i = j = 0
    while True:
        i = (i + 1) & 255
        a = box[i]
        j = (j + a) & 255
        box[i] = b = box[j]
        box[j] = a
        yield box[(a + b) & 255]


def _pairs(words: bytes) -> dict[str, str]:
    """Parse ``name="value",name=value``.

    Raises:
        TProtocolException: the text does not have this form.
    """
    text, pairs, at = words.decode("utf-8", "replace"), dict[str, str](), 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None or match.end() == at:
            raise TProtocolException(TProtocolException.INVALID_DATA, "no words of DIGEST-MD5")
        quoted = match[2]
        pairs[match[1].lower()] = match[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = match.end()
    return pairs


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _hex(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()
