"""What queries mean, in plain Python: the oracle that tries all splits, and an interpreter per node."""
