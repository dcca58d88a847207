"""acidctl: see, dump, compact and clean Apache Hive ACID tables without Hive."""

__version__ = "0.1.0"
