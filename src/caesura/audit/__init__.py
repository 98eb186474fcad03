"""Audit: recomputes what was claimed, in plain Python and from the sources alone, and compares.

It shares no operator with the engine that claimed: rows are read again, judged late or not, and taken
through the plan one by one.
"""

from caesura.audit.check import AuditFinding, AuditReport, audit, audit_states
from caesura.audit.evaluate import evaluate
from caesura.audit.sources import rows_of
from caesura.audit.values import NotAuditedError
from caesura.misuse import renamed_members

__all__ = ["AuditFinding", "AuditReport", "NotAuditedError", "audit", "audit_states", "evaluate", "rows_of"]

__getattr__ = renamed_members(__name__, Finding="AuditFinding", Report="AuditReport")
