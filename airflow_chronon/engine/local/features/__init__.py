"""Features of GroupBys: documents, columns, operations, snapshots."""
