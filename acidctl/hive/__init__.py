"""What joins a table on disk and the metastore that knows it."""
