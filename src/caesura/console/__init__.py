"""What people see in a terminal while a query runs."""

from caesura.console.live import panel, watch

__all__ = ["panel", "watch"]
