"""Rows on their way out: JSON lines, CSV, Parquet, Arrow IPC, and the cells of a table on the terminal."""
