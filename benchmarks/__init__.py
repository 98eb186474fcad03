"""Benchmarks: each module has a ``main(arguments)``; ``make bench NAME=core ARGS="--json"`` runs one."""
