"""Audits: executions on neighbouring data that try to contradict a declared guarantee."""
