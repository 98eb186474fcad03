"""SQL over streams: a text becomes the calls that a user would write, and so the same plan."""
