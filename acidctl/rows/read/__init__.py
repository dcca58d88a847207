"""The events of data files and the rows that deletes leave."""
