"""The copied ORC files: their streams, labels and metrics."""
