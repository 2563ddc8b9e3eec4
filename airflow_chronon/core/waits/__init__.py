"""What a run waits for, and whether it is there."""
