"""Commands that ask a metastore, and those that tell it what to do."""
