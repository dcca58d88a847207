"""Keeping secrets out of all output: values that are known to be secret, and texts that look like credentials."""

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
# Compiled only when used: most commands print nothing that may be a secret.
_JOINED = r"(?i)(apikey|accesskey|secretkey|authtoken|connection_?string)"
_PART = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"
_USER_INFO = r"(?<=://)([^/\s:@]*):[^/\s]*@"
# Not after a slash: token=5 is the directory of a partition, too.
_PAIR = r"(?<![/\w.-])([A-Za-z][\w.-]*)=([^\s&'\",;)]+)"
_PLACEHOLDERS = ("...", "FILE", "NAME", "VALUE", "TOKEN", "PASSWORD", "KEY", "SECRET")
"""Values that hints use."""

_SHORT = 8
"""A shorter secret is only hidden as a whole word, and not taken from the environment."""

_STORES = ("AWS_", "AZURE_", "FSSPEC_", "GCP_", "GCS_", "GOOGLE_", "HADOOP_", "S3_")
_known: set[str] = set()


def is_secret_name(name: str) -> bool:
    """Return whether a value of this name is a secret: ``fs.s3a.secret.key``, ``accountKey``, but not ``keytab``."""
    return bool(re.search(_JOINED, name)) or any(part.lower() in _WORDS for part in re.findall(_PART, name))


def remember(value: str) -> None:
    """Hide this text from now on, wherever it occurs."""
    if value:
        _known.add(value)


def remember_pair(name: str, value: str) -> None:
    """Hide this value from now on if its name is that of a secret."""
    if is_secret_name(name):
        remember(value)


def hidden(text: str) -> str:
    """Return a message without known secrets, passwords in URLs, and ``token=...`` outside of paths."""
    text = _without(text, frozenset(_known | _of_the_environment()))
    text = re.sub(_USER_INFO, rf"{HIDDEN}@", text)
    return re.sub(_PAIR, _pair_hidden, text)


def shown_setting(name: str, value: Any) -> Any:
    """Return the value of a setting as it may be shown.

    Args:
        name: hides the whole value if it is that of a secret.
        value: texts are searched for credentials, and a sequence of ``KEY=VALUE`` for keys that are those of secrets.
    """
    if is_secret_name(name):
        return HIDDEN
    if isinstance(value, list | tuple):
        pairs = (str(item).partition("=") for item in value)
        return [f"{key}={HIDDEN}" if eq and is_secret_name(key) else hidden(key + eq + rest) for key, eq, rest in pairs]
    return hidden(value) if isinstance(value, str) else value


def hidden_in(value: Any) -> Any:
    """Return a result without known secrets; keys stay, and so do short secrets, which may be part of any path."""
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
    """Return the credentials of the stores' own libraries, such as AWS_SECRET_ACCESS_KEY, but no paths of files."""
    return {
        value
        for name, value in os.environ.items()
        if name.startswith(_STORES) and len(value) >= _SHORT and value[0] != "/" and is_secret_name(name)
    }


@lru_cache(maxsize=4)
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    """Return a pattern for the secrets, also as a URL escapes them; short ones match only as whole words."""
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
