"""Transactions and locks that acidctl itself holds in a metastore."""
