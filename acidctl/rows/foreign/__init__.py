"""Data files of insert-only tables that are not ORC: Parquet and text, opened within limits."""
