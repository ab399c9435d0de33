"""Audits of published settings, and corrected variants: configuration and tables."""
