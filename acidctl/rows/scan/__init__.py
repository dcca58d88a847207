"""Merge-on-read: a table and the rows that a reader of one snapshot sees, cut to columns and a condition."""
