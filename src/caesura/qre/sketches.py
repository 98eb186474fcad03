"""Approximation as plug-in data structures."""
