"""How far a result is proven before it is published."""

from __future__ import annotations

from enum import StrEnum


class Verify(StrEnum):
    """The level of proof; each includes those before it.

    ``keys``: the ids of all rows are those that were read, less those that were deleted, in order and indexed.
    ``bytes``: the store returns every byte that was written to it; copied stripes equal their inputs.
    ``full``: every stripe is decoded, and all values equal those of the inputs, which are read a second time for that,
    so that a fault of one read is noticed.
    """

    KEYS = "keys"
    BYTES = "bytes"
    FULL = "full"

    @property
    def compares_bytes(self) -> bool:
        """Say if written files are read again as a whole."""
        return self is not Verify.KEYS

    @property
    def compares_values(self) -> bool:
        """Say if every column is decoded."""
        return self is Verify.FULL

    @property
    def told(self) -> str:
        """Return the words for a result that passed this level."""
        return {Verify.KEYS: "ids", Verify.BYTES: "bytes", Verify.FULL: "values"}[self] + " verified"
