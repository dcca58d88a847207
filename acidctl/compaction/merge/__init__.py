"""Compaction of full-ACID tables: events are merged and written."""
