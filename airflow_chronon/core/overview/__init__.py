"""What the page of partitions shows: a snapshot of confs and tables, and the answers that are made of it."""
