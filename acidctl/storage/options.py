"""Hold the options of stores; apart from the registry, because every `--help` needs them and no store."""

from __future__ import annotations

from collections.abc import Mapping

ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "local": "file"}
"""Other names of schemes."""
DEFAULT_PORTS = {"hdfs": 8020, "webhdfs": 9870, "swebhdfs": 9871}


class StorageOptions(dict[str, str]):
    """Options for every store, which take precedence, and more for the URLs below a prefix.

    A password must not reach a host it is not meant for: a prefix ends where a part of the URL ends, so that
    ``webhdfs://nn:98`` does not match ``webhdfs://nn:9870``.

    Attributes:
        below: options by prefix of URL; ``s3://`` matches the whole scheme.
        own_links: follow no symbolic link at or below a location.
    """

    def __init__(
        self,
        given: Mapping[str, str] | None = None,
        below: Mapping[str, Mapping[str, str]] | None = None,
        *,
        own_links: bool = False,
    ):
        super().__init__(given or {})
        self.below = dict(below or {})
        self.own_links = own_links

    def of(self, url: str) -> dict[str, str]:
        """Return the options for one URL; the longest prefix that has a key decides its value."""
        options: dict[str, str] = {}
        plain = _plain(url)
        for prefix in sorted(self.below, key=lambda prefix: len(_plain(prefix))):
            if plain.startswith(_plain(prefix)):
                options |= self.below[prefix]
        return options | self


def _plain(url: str) -> str:
    """Return a URL with its scheme in one spelling, without a user, and with a slash at the end."""
    scheme, colon, rest = url.partition("://")
    scheme = scheme.lower()
    authority, slash, path = rest.partition("/")
    host = authority.rpartition("@")[2] if scheme in DEFAULT_PORTS else authority
    plain = f"{ALIASES.get(scheme, scheme)}{colon}{host}{slash}{path}"
    return plain if plain.endswith("/") else plain + "/"
