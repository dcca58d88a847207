"""Data files that are not ORC: Parquet and text of insert-only tables, opened within limits."""
