"""Postgres as a source: a table, then every change of it, from the server's own log."""
