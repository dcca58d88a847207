"""Copy a Hive ACID table into an Iceberg table: columns, files, keys, deletes, catalogs and proofs."""
