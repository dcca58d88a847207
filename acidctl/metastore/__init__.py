"""Thrift client for Hive's metastore (2.3 to 4.x): tables, transactions, locks and the compaction queue."""
