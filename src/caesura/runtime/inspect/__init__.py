"""Looking into runs: what became of rows, what feedback cost, how many states are those of no prefix."""
