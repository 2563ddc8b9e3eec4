"""One api-server with a filled database, and Debian's Chromium."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.integration.page_server import PageAirflow, run_page_airflow

CHROMIUM = "/usr/bin/chromium"
WAIT = 60_000  #: milliseconds, on a busy machine
expect.set_options(timeout=WAIT)


@pytest.fixture(scope="package")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageAirflow]:
    with run_page_airflow(tmp_path_factory.mktemp("page")) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A window of its own; what its scripts raise fails the test."""
    context = browser.new_context(viewport={"width": 1400, "height": 850})
    context.set_default_timeout(WAIT)
    page = context.new_page()
    raised: list[str] = []
    page.on("pageerror", lambda error: raised.append(str(error)))
    yield page
    context.close()
    assert not raised, raised
