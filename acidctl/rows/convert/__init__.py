"""Values of older files as the table's columns, the way Hive converts them."""
