"""Where files lie: on this machine, or in an object store; one class for every path that a user gives."""

from caesura.io.places.place import Place

__all__ = ["Place"]
