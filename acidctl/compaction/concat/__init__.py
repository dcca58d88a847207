"""Insert-only tables: files of one bucket put together, ORC and Parquet."""
