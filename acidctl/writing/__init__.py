"""Rows in: INSERT, UPDATE, DELETE and MERGE under Hive's own transactions."""
