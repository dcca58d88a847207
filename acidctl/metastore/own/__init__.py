"""Transactions and locks of our own in a metastore."""
