"""Cells joined by edges: what works when, how sources enter, how loops close, how messages are relayed."""
