"""What a run did, for people and programs: failures, the report, metrics."""
