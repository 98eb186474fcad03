"""The operators: one file, or one folder, for each."""
