"""Audits: executions on neighbouring data that try to contradict a declared guarantee."""

from .auditing import audit, audit_calibrated
from .result import AuditResult

__all__ = ["AuditResult", "audit", "audit_calibrated"]
