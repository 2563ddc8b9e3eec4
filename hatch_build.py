"""Builds the text that package indexes show: README.md, whose links into this tree lead nowhere there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"!?\[(?P<text>[^\]]*)\]\((?!https?:|#|mailto:)(?P<target>[^)]+)\)")


def on_an_index(readme: str) -> str:
    """A page whose links into this tree are the paths of what they lead to, in the source distribution."""

    def path(match: re.Match[str]) -> str:
        text, target = match["text"], match["target"].partition("#")[0]
        return f"`{target}`" if text.strip("`") == target else f"{text} (`{target}`)"

    return _LINK.sub(path, readme)


class ReadmeHook(MetadataHookInterface):
    """Found by its base class."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": on_an_index(text)}
