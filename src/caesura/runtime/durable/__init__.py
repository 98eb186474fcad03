"""Queries in this process that go on after a kill: state, offsets and output in one manifest."""
