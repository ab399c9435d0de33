"""What several algorithms share: a module a family, beside the algorithms and none itself."""
