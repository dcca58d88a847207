"""Services and operations that join tables in storage with the metastore."""
