"""`acidctl migrate`: copies of tables in Iceberg, and the change of names at the end."""
