"""What ``chronon.yaml`` may say, and reading it strictly."""
