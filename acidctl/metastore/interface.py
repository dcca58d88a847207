"""The part of the metastore's interface (Hive 2.3 to 4.x) that acidctl uses, as ``interface.idl`` declares it.

A struct, an enum or a method is an attribute of this module, and is made when it is first used.
"""

from __future__ import annotations

from pkgutil import get_data
from typing import Any

from acidctl.metastore.wire import Interface

INTERFACE = Interface((get_data(__name__, "interface.idl") or b"").decode(), __name__)


def __getattr__(name: str) -> Any:
    return INTERFACE[name]
