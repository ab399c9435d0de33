"""Contents of the pages of the report, as dictionaries for the templates."""
