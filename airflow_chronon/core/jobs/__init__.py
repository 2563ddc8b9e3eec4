"""Job files: from documents to plans, and back into files."""
