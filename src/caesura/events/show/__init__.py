"""Histories for people: timelines as text, HTML and SVG, and plots."""

from caesura.events.show.html import table, timeline_html
from caesura.events.show.plot import plot
from caesura.events.show.svg import drawn_svg, timeline_svg
from caesura.events.show.timeline import timeline

__all__ = ["drawn_svg", "plot", "table", "timeline", "timeline_html", "timeline_svg"]
