"""What makes a legal stream of raw rows: shapes, policies, lanes, lateness, matching of retracts."""
