"""Proof that a result holds the rows that were read."""
