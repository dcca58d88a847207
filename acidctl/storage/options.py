"""Options of stores: for all of them, and for those whose URL begins in a certain way."""

from __future__ import annotations

from collections.abc import Mapping

_SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}


class StorageOptions(dict[str, str]):
    """Options for every store, which win, and more for the URLs below a prefix.

    A password must not reach a host it is not meant for: a prefix ends where a part of the URL ends, so that
    ``webhdfs://nn:98`` says nothing about ``webhdfs://nn:9870``.

    Attributes:
        below: options by prefix of URL; ``s3://`` is all of that scheme.
        own_links: go through no symbolic link but those whose owner also owns what they lead to.
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
        """The options for one URL: of several prefixes the longest decides, key by key."""
        found: dict[str, str] = {}
        shown = _plain(url)
        for prefix in sorted(self.below, key=lambda prefix: len(_plain(prefix))):
            if shown.startswith(_plain(prefix)):
                found |= self.below[prefix]
        return found | self


def _plain(url: str) -> str:
    """Scheme in one spelling, no user, and a slash at the end unless only the scheme is there."""
    scheme, colon, rest = url.partition("://")
    scheme = scheme.lower()
    authority, slash, path = rest.partition("/")
    host = authority.rpartition("@")[2] if scheme in ("hdfs", "webhdfs", "swebhdfs") else authority
    plain = f"{_SAME.get(scheme, scheme)}{colon}{host}{slash}{path}"
    return plain if plain.endswith("/") else plain + "/"
