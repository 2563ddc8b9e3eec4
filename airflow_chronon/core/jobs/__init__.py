"""Job files: from documents to plans."""
