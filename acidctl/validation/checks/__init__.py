"""The checks: on listings, tails, rows, several files together, and what one kind of reader refuses."""
