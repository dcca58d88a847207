"""Mend a metastore that disagrees with the files of its tables: name it, plan, carry out over thrift alone."""
