"""What was generated, by which model, at what cost: one record a stream (draft, section 1.2.4), chained and sealed."""

from .chain import Chain, Link, Verifier
from .reading import Auditor, audit
from .record import AuditedToolCall, AuditedViolation, AuditRecord, Stop

__all__ = [
    "AuditRecord",
    "AuditedToolCall",
    "AuditedViolation",
    "Auditor",
    "Chain",
    "Link",
    "Stop",
    "Verifier",
    "audit",
]
