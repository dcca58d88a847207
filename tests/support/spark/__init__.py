"""Spark in tests: a small cluster, and scenarios that run in processes of their own."""
