"""Spark: the Java that runs it, the session, the engine that maps tasks over executors."""
