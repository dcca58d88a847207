"""Turn rows of a source into staged files: their columns, partitions, buckets and row ids."""
