"""Commands that show the content of a metastore, and services for its queue of compactions."""
