"""A plan at work in buckets: stage 0, gates, fragments, packets between them, and how it all stands."""
