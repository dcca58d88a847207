"""Hive's compaction queue: list its entries, request compactions, and work on them."""
