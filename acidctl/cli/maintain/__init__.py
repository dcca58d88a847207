"""Commands that compact and clean tables."""
