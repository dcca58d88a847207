"""How far a result is proven before it is shown."""

from __future__ import annotations

from enum import StrEnum


class Verify(StrEnum):
    """Each level holds all before it.

    ``keys``: the ids of all rows are those that were read less those that were deleted, in order and indexed.
    ``bytes``: every byte that was given to the store is there when it is asked again; stripes that are copied are given
    as they were read. ``full``: every stripe is decoded, and all values are those that were read, apart from what was
    written: of what was read wrong once one of both differs.
    """

    KEYS = "keys"
    BYTES = "bytes"
    FULL = "full"

    @property
    def compares_bytes(self) -> bool:
        """Whether written files are read again as a whole."""
        return self is not Verify.KEYS

    @property
    def compares_values(self) -> bool:
        """Whether every column is decoded."""
        return self is Verify.FULL

    @property
    def told(self) -> str:
        """What a result is called that it has passed."""
        return {Verify.KEYS: "ids", Verify.BYTES: "bytes", Verify.FULL: "values"}[self] + " verified"
