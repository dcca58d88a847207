"""Rebalance: the order of all rows, and the share of each bucket."""
