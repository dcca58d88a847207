"""All rows of a location with new ids, spread evenly over buckets, as Hive's REBALANCE gives them."""
