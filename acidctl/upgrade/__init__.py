"""What a location needs before a newer Hive reads it, and whether it reads the same afterwards."""
