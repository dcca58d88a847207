"""Read and write single ORC files: footers, types, rows as Arrow batches, and the writer of ACID files."""
