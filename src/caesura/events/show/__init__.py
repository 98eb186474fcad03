"""Histories for people: timelines as text and HTML, and plots."""

from caesura.events.show.html import table, timeline_html
from caesura.events.show.plot import plot
from caesura.events.show.timeline import timeline

__all__ = ["plot", "table", "timeline", "timeline_html"]
