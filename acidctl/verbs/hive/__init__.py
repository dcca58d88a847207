"""The services of Hive's queue, and a metastore as one object for Python."""
