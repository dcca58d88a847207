"""Read the rows of an ORC file as Arrow batches, within bounds, and where Arrow's own reader fails."""
