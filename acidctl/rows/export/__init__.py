"""Rows as JSON lines, CSV, Parquet, Arrow IPC and ORC, and as cells of a table on the terminal."""
