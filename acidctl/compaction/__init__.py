"""Compaction: plan, tasks, kernel, verification, publication."""
