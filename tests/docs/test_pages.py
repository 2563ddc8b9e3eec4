"""The pages against the package: what they name is there, and the picture of the rooms shows the imports that there are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import grimp
import pytest

from airflow_chronon.core.waits.outlook import Outlook
from tests.support.checkout import ROOT

DOCS, PACKAGE = ROOT / "docs", ROOT / "airflow_chronon"
INDEX = DOCS / "README.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
#: Pages for developers, whose paths may begin in the package.
OF_THE_PACKAGE = [ROOT / "CONTRIBUTING.md", DOCS / "architecture.md", DOCS / "development.md"]

_PATH = re.compile(r"\bairflow_chronon/[\w./-]*\w/?")
_DOTTED = re.compile(r"\bairflow_chronon(?:\.[A-Za-z_]\w*)+")
_SHORT_PATH = re.compile(r"`([\w./-]+(?:\.py|/))`")
_ARROW = re.compile(r'^ *(?P<room>\w+)(?:\["[^"]*"\])? --> (?P<imported>\w+)(?:\["[^"]*"\])?$', re.M)
_ROW = re.compile(r"^\| (?P<rooms>`[^|]*`) \|", re.M)
_ANCHOR = re.compile(r"\]\((?P<page>[\w./-]*)#(?P<anchor>[^)]+)\)")
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.M)
_LINK = re.compile(r"\]\((?P<target>[\w-]+\.md)\)")


def _names(pages: list[Path], pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Every match of a pattern, with the name of its page."""
    return sorted({(page.name, each) for page in pages for each in pattern.findall(page.read_text())})


@pytest.mark.parametrize(("page", "path"), _names(PAGES, _PATH))
def test_a_path_of_a_page_is_there(page: str, path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("page", "path"), _names(OF_THE_PACKAGE, _SHORT_PATH))
def test_a_path_that_begins_in_the_package_is_there(page: str, path: str) -> None:
    assert (PACKAGE / path).exists() or (ROOT / path).exists()


@pytest.mark.parametrize(("page", "name"), _names(PAGES, _DOTTED))
def test_a_name_of_a_page_can_be_imported(page: str, name: str) -> None:
    module, _, attribute = name.rpartition(".")
    if (ROOT / f"{name.replace('.', '/')}.py").exists() or (ROOT / name.replace(".", "/")).is_dir():
        import_module(name)
    else:
        assert hasattr(import_module(module), attribute)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_anchors_of_a_page_are_headings(page: Path) -> None:
    for match in _ANCHOR.finditer(page.read_text()):
        target = page.parent / match["page"] if match["page"] else page
        headings = [
            re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in _HEADING.findall(target.read_text())
        ]
        assert match["anchor"] in headings


@cache
def _imports(inside: str) -> Mapping[str, frozenset[str]]:
    """The rooms of a package, and which of the others each imports itself."""
    graph = grimp.build_graph("airflow_chronon", cache_dir=None)

    def room(module: str) -> str | None:
        return module.removeprefix(f"{inside}.").partition(".")[0] if module.startswith(f"{inside}.") else None

    found: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules:
        imported = {room(each) for each in graph.find_modules_directly_imported_by(module)}
        if (own := room(module)) is not None:
            found[own] |= {each for each in imported if each not in (None, own)}
    return {own: frozenset(others) for own, others in found.items()}


@cache
def _arrows(number: int) -> Mapping[str, frozenset[str]]:
    """The arrows of a picture of the architecture."""
    picture = (DOCS / "architecture.md").read_text().split("```mermaid\n")[1 + number].partition("```")[0]
    found: dict[str, set[str]] = defaultdict(set)
    for match in _ARROW.finditer(picture):
        found[match["room"]].add(match["imported"])
    assert sum(map(len, found.values())) == picture.count("-->")
    return {room: frozenset(imported) for room, imported in found.items()}


def _behind(room: str, arrows: Mapping[str, frozenset[str]]) -> Iterator[str]:
    for imported in arrows.get(room, frozenset()):
        yield imported
        yield from _behind(imported, arrows)


PICTURES = pytest.mark.parametrize(("number", "inside"), [(0, "airflow_chronon"), (1, "airflow_chronon.core")])


@PICTURES
def test_every_arrow_of_a_picture_is_an_import(number: int, inside: str) -> None:
    imports = _imports(inside)
    assert [(a, b) for a, found in _arrows(number).items() for b in found if b not in imports.get(a, ())] == []


@PICTURES
def test_every_import_follows_the_arrows(number: int, inside: str) -> None:
    arrows = _arrows(number)
    astray = [
        (room, each)
        for room, imported in _imports(inside).items()
        if room != "__main__"
        for each in imported - set(_behind(room, arrows))
    ]
    assert astray == []


def test_every_room_has_a_line() -> None:
    text = (DOCS / "architecture.md").read_text().partition("## The way of a conf")[0]
    told = {path for match in _ROW.finditer(text) for path in re.findall(r"`([^`]+)`", match["rooms"])}
    rooms = {
        *(f"{each.name}/" for each in PACKAGE.iterdir() if (each / "__init__.py").exists()),
        *(each.name for each in PACKAGE.glob("*.py") if not each.name.startswith("__")),
        *(f"core/{each.name}" for each in (PACKAGE / "core").glob("*.py") if not each.name.startswith("__")),
        *(f"core/{each.name}/" for each in (PACKAGE / "core").iterdir() if (each / "__init__.py").exists()),
    }
    assert told == rooms


def test_every_page_is_in_the_index_once() -> None:
    listed = [match["target"] for match in _LINK.finditer(INDEX.read_text())]
    assert sorted(listed) == sorted([page.name for page in DOCS.glob("*.md") if page != INDEX])


def test_a_rule_is_told_once() -> None:
    numbers = re.findall(r"^\| ([CHS]\d+) \|", (DOCS / "rules.md").read_text(), re.M)
    assert numbers
    assert [number for number in sorted(set(numbers)) if numbers.count(number) > 1] == []


def test_the_readme_leads_to_the_index() -> None:
    assert "docs/README.md" in (ROOT / "README.md").read_text().partition("## Further reading")[2]


_QUOTED = re.compile(r"`([^`]+)`")
#: Cells that quote no message: settings, names, commands.
_NO_MESSAGE = ("enabled: false", "airflow-chronon", "--")


def _messages() -> list[str]:
    """What troubleshooting says that people see, without what differs from case to case."""
    text = (DOCS / "troubleshooting.md").read_text()
    cells = "\n".join(re.findall(r"^\|.*\|$", text, re.M))
    quoted = {each for each in _QUOTED.findall(cells) if " " in each and "CONF" not in each}
    return sorted(
        part.strip(" =:.")
        for each in quoted
        if not any(word in each for word in _NO_MESSAGE)
        for part in re.split(r"…|<[^>]*>|\bn\b", each)
        if len(part.strip(" =:.")) > 3
    )


@cache
def _source() -> str:
    code = "\n".join(each.read_text() for each in PACKAGE.rglob("*.py"))
    outlooks = " ".join(f"{outlook.value} in" for outlook in Outlook)  # they are put together
    return re.sub(r"\s+", " ", code) + outlooks


@pytest.mark.parametrize("part", _messages())
def test_a_message_of_the_troubleshooting_is_one_of_the_package(part: str) -> None:
    assert part in _source()


def test_troubleshooting_has_a_part_for_every_symptom() -> None:
    text = (DOCS / "troubleshooting.md").read_text()
    table = text.partition("| I see | go to |")[2].partition("\n\n")[0]
    headings = [each for each in _HEADING.findall(text) if not each.startswith("Troubleshooting")]
    assert sorted(re.findall(r"\[([^\]]+)\]", table)) == sorted(headings)
