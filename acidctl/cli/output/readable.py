"""Locations of which a part may not be listed: what can be is shown, and the rest is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from acidctl.errors import AccessError, AcidctlError
from acidctl.location.snapshot import look_at

if TYPE_CHECKING:
    from acidctl.location.find import Found


def readable(found: Found, failed: Callable[[AcidctlError, str], None]) -> Found:
    """The location with what can be listed of it; for commands that only show.

    A directory that is closed is there, by its name, with nothing in it.

    Args:
        failed: told of each directory that may not be listed, with the location.

    Raises:
        AccessError: the location itself may not be listed.
    """
    if found.ahead is not None and not isinstance(found.ahead, AccessError):
        return found
    closed: dict[str, AcidctlError] = {}
    look = look_at(found.fs, found.location.path, found.top, closed.__setitem__)
    if found.ahead is not None and not closed:
        raise found.ahead
    for error in closed.values():
        failed(error, found.shown)
    return replace(found, ahead=look)
