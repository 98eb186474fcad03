"""Compiled queries at work on pages: patterns, maps, maps inside patterns, sketches, and their outputs."""
