"""Compaction of insert-only tables: files of one format are concatenated."""
