"""Sinks of every host: Parquet files, Delta tables, memory, the terminal."""
