"""Starting programs as surroundings do that a test cannot be run in."""

from __future__ import annotations

from collections.abc import Sequence


def deaf(command: Sequence[str]) -> list[str]:
    """The command as nohup, a shell's background or some CI runners start it: Ctrl-C and SIGTERM are ignored."""
    return ["sh", "-c", "trap '' INT TERM; exec \"$@\"", "sh", *command]
