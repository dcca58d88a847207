"""Building blocks that know nothing of Hive: errors, deadlines, workers, imports on demand and printable text."""
