"""Automata with registers, as an operator of their own: what a cyclic plan does, compiled."""

from caesura.fixpoint.automaton.arcs import Arc, Automaton
from caesura.fixpoint.automaton.node import Match, match

__all__ = ["Arc", "Automaton", "Match", "match"]
