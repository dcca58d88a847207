"""The data source ``hive_acid``, inside: its options, plan, filters, and batches of the types that Spark has."""
