"""Merge-on-read: a table and the rows of one snapshot, restricted to columns and a condition."""
