"""The Parquet files of a copy: all rows encoded again, their metrics, and a reader for the proof."""
