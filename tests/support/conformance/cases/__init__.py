"""The tables themselves, a module for each kind; they put themselves into ``CASES``."""

from support.conformance.cases import (  # noqa: F401
    columns,
    deletes,
    directories,
    files,
    insert_only,
    reports,
    values,
)
from support.conformance.declared import CASES

__all__ = ["CASES"]
