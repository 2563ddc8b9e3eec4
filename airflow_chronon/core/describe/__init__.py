"""Plans and runs as text for people and as JSON for programs."""
