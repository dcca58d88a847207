"""Whether the options of a store ask for Kerberos."""

from __future__ import annotations

from collections.abc import Mapping


def wants_kerberos(options: Mapping[str, str]) -> bool:
    """Whether the storage options ask for a Kerberos login."""
    return options.get("kerberos", "").lower() in ("true", "yes", "1") or bool(options.get("keytab"))
