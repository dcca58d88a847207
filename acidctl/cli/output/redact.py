"""Keeping secrets out of what is said: values that are known to be secret, and texts that look like credentials."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "***"

_WORDS = frozenset({
    "key", "keys", "secret", "secrets", "token", "tokens", "password", "passwords", "passwd", "passphrase", "pass",
    "pwd", "credential", "credentials", "sas", "delegation", "signature", "headers", "authorization",
})  # fmt: skip
# Compiled when they are used: most commands say nothing that may be one.
_JOINED = r"(?i)(apikey|accesskey|secretkey|authtoken|connection_?string)"
_PART = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"
_USER_INFO = r"(?<=://)([^/\s:@]*):[^/\s]*@"
# Not after a slash: token=5 is the directory of a partition, too.
_PAIR = r"(?<![/\w.-])([A-Za-z][\w.-]*)=([^\s&'\",;)]+)"
_PLACEHOLDERS = ("...", "FILE", "NAME", "VALUE", "TOKEN", "PASSWORD", "KEY", "SECRET")
"""What hints say."""

_SHORT = 8
"""A shorter secret is looked for as a whole word, and of the environment it does not count."""

_STORES = ("AWS_", "AZURE_", "FSSPEC_", "GCP_", "GCS_", "GOOGLE_", "HADOOP_", "S3_")
_known: set[str] = set()


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is one to hide: ``fs.s3a.secret.key``, ``accountKey``, ``token``; not ``keytab``."""
    return bool(re.search(_JOINED, name)) or any(part.lower() in _WORDS for part in re.findall(_PART, name))


def remember(value: str) -> None:
    """This text is a secret from now on, whatever it stands in."""
    if value:
        _known.add(value)


def remember_pair(name: str, value: str) -> None:
    """The same, where the name says so."""
    if is_secret_name(name):
        remember(value)


def hidden(text: str) -> str:
    """A message without secrets: known ones, passwords in URLs, and ``token=...`` outside of paths."""
    text = _without(text, frozenset(_known | _of_the_environment()))
    text = re.sub(_USER_INFO, rf"{HIDDEN}@", text)
    return re.sub(_PAIR, _pair_hidden, text)


def hidden_in(value: Any) -> Any:
    """A result without the known secrets; keys stay, and so do short secrets, which may be anything in a path."""
    secrets = frozenset(secret for secret in _known if len(secret) >= _SHORT)
    return _value_without(value, secrets) if secrets else value


def _value_without(value: Any, secrets: frozenset[str]) -> Any:
    if isinstance(value, str):
        return _without(value, secrets)
    if isinstance(value, dict):
        return {key: _value_without(item, secrets) for key, item in value.items()}
    return [_value_without(item, secrets) for item in value] if isinstance(value, list | tuple) else value


def _without(text: str, secrets: frozenset[str]) -> str:
    pattern = _pattern(secrets)
    return pattern.sub(HIDDEN, text) if pattern else text


def _pair_hidden(pair: re.Match[str]) -> str:
    name, value = pair.groups()
    # A column may be called key.
    is_secret = is_secret_name(name) and name.lower() != "key" and value not in _PLACEHOLDERS
    return f"{name}={HIDDEN}" if is_secret else pair[0]


def _of_the_environment() -> set[str]:
    """Credentials for the stores' own libraries, AWS_SECRET_ACCESS_KEY for example, but no paths of files."""
    return {
        value
        for name, value in os.environ.items()
        if name.startswith(_STORES) and len(value) >= _SHORT and value[0] != "/" and is_secret_name(name)
    }


@lru_cache(maxsize=4)
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    """What finds any of them, also where a URL has escaped it; short ones only as whole words."""
    spelled = {
        form for secret in secrets for form in (secret, quote(secret, safe=""), quote_plus(secret), quote(secret))
    }
    if not spelled:
        return None
    parts = (
        re.escape(form) if len(form) >= _SHORT else rf"(?<![A-Za-z0-9]){re.escape(form)}(?![A-Za-z0-9])"
        for form in sorted(spelled, key=len, reverse=True)
    )
    return re.compile("|".join(parts))
