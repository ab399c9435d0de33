"""Audits of published settings, errata and corrected variants: configuration and tables."""
