"""The compiled loops that run automata, and the rows of registers that they work on."""
