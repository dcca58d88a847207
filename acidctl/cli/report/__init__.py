"""The results of a run for people and programs: screens, failures, the report and metrics."""
