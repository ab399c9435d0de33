"""Mutation tests of the audit, on faulty and on correct algorithms."""
