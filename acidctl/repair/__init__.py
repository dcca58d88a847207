"""Mending what is wrong on disk: plan -> staged beside, with a backup -> verified -> swapped in -> undo, purge."""
