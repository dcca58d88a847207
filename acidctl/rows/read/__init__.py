"""The events of data files, which rows deletes leave, and one row type for all files of a location."""
