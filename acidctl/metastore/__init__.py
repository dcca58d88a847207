"""Thrift client for Hive's metastore (2.3 to 4.x): tables, transactions, locks and the compaction queue.

Every function that takes a :class:`acidctl.metastore.client.Metastore` raises ``MetastoreError`` if no server can be
reached or the server fails; docstrings name only further errors.
"""
