"""Choose and start the Java of Spark's driver, run its session, and explain its failures."""
