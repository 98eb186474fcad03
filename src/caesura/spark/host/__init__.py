"""A plan as one Structured Streaming query: built, started, watched, spoken to, rescaled."""
