"""A query as a step of a plan: its node, its operator, its forms in buckets, its contract."""
