"""Calling acidctl as a shell would."""

from cli.conftest import acidctl  # noqa: F401  (the fixture)
