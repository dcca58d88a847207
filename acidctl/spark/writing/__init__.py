"""Write DataFrames to transactional tables: each write is one Hive transaction."""
