"""Why values of one type do not become values of another."""


class NoConversion(Exception):
    """A type cannot be converted to another; the text says why."""


class HivesDifferError(Exception):
    """Hive 3 and Hive 4 read different values."""
