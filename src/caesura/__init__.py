"""Caesura: streams of events with lifetimes, corrections and punctuation."""
