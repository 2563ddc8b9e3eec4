"""A warehouse for a test, and one for each example of a property."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.warehouse import Warehouse


@pytest.fixture
def store(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Warehouse]:
    """A new warehouse for each example; the one before it goes."""
    made: list[Warehouse] = []

    def make() -> Warehouse:
        for old in made:
            old.clear()
        made.append(Warehouse(tmp_path_factory.mktemp("w")))
        return made[-1]

    return make
