"""What a run waits for, and how it is told whether it is there."""
