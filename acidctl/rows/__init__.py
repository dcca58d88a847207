"""Rows of a location: deletes, row ids of files without them, merge-on-read, history and export."""
