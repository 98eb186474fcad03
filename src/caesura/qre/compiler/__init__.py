"""From a query to an automaton with registers: terms, threads, states, bytecode, generated kernels."""
