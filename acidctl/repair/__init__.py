"""Repairs of what is wrong on disk, with a backup: plan, stage, verify, swap in; then undo or discard."""
