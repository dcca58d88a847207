"""The table to try things on."""
