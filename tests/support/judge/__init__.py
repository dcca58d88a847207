"""The judge: Hive's own classes, Java's ORC reader, generators of histories and a small model."""
