"""The files of insert-only tables: rows without ids, in ORC, Parquet or text."""
