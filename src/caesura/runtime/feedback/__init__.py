"""The consumer of a running query speaks to its steps."""
