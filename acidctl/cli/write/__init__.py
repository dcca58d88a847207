"""Commands that change rows."""
