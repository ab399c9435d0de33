"""The page of a whole reproduction."""
