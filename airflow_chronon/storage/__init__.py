"""Files below a root, on a local disk or in any store that fsspec reaches."""
