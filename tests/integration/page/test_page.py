"""The page of partitions as a person sees and uses it: Airflow's own pages in a real Chromium."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from airflow_chronon.core.calendar.instants import DAY, HOUR, to_datetime
from tests.support.integration.page_fill import FOREIGN, GAP, ORDERS, RANK, REACH, failed_of, gap_of, retried_of
from tests.support.integration.page_server import PageAirflow, run_below_path

pytestmark = pytest.mark.soak

HEAD, AXIS, LINE = 92, 18, 20  # pixels: what a line is, what a column is, a line of partitions


def label(start: int) -> str:
    return to_datetime(start).strftime("%Y-%m-%d-%H-%M")


def rows_of(page: Page) -> Locator:
    return page.get_by_role("listbox", name="confs").get_by_role("option")


def listed(page: Page, airflow: PageAirflow, query: str = "", *, url: str | None = None) -> Locator:
    """The list of confs, drawn."""
    page.goto(f"{url or airflow.url}/plugin/chronon{query}", wait_until="domcontentloaded")
    page.wait_for_selector(".chronon [role=listbox][data-drawn]")
    return rows_of(page)


def opened(page: Page, airflow: PageAirflow, query: str = f"?conf={ORDERS}", *, url: str | None = None) -> Locator:
    """The cells of a conf, drawn."""
    page.goto(f"{url or airflow.url}/plugin/chronon{query}", wait_until="domcontentloaded")
    return drawn(page)


def drawn(page: Page) -> Locator:
    page.wait_for_selector(".chronon [role=application][data-drawn]")
    return page.get_by_role("application")


def cell(grid: Locator, airflow: PageAirflow, start: int) -> tuple[float, float]:
    """The middle of the cell of a partition: a line is a day, tomorrow's the first."""
    box = grid.bounding_box()
    wide = min(34, int((grid.evaluate("element => element.clientWidth") - HEAD - 14) // 24))
    line = airflow.now // DAY + 1 - start // DAY
    return box["x"] + HEAD + (start % DAY // HOUR + 0.5) * wide, box["y"] + AXIS + (line + 0.5) * LINE


def drag(page: Page, grid: Locator, airflow: PageAirflow, first: int, last: int) -> None:
    page.mouse.move(*cell(grid, airflow, first))
    page.mouse.down()
    page.mouse.move(*cell(grid, airflow, last), steps=6)
    page.mouse.up()


def body(request: Request) -> dict[str, Any]:
    return dict(json.loads(request.post_data))


def test_all_confs_stand_by_team_with_a_lamp_and_the_last_days(page: Page, airflow: PageAirflow) -> None:
    rows = listed(page, airflow)
    expect(rows).to_have_count(3)
    assert [re.search(r"staging_query/\S+?__1", text)[0] for text in rows.all_inner_texts()] == [
        f"staging_query/{name}" for name in ("checkout.orders__1", "growth.reach__1", "search.rank__1")
    ]
    expect(rows.first.get_by_role("img", name="failed")).to_be_visible()
    expect(rows.first).to_contain_text("5 * * * *")
    expect(page.get_by_role("status")).to_contain_text("3 confs · tables looked at")


def test_search_filters_and_order_stand_in_the_link(page: Page, airflow: PageAirflow) -> None:
    rows = listed(page, airflow)
    page.keyboard.press("/")
    page.keyboard.type("reach")
    expect(rows).to_have_count(1)
    assert parse_qs(urlsplit(page.url).query) == {"q": ["reach"]}
    page.get_by_label("search").fill("")
    page.get_by_label("team").select_option("search")
    expect(rows).to_have_count(1)
    page.get_by_label("team").select_option("")
    page.get_by_label("lamp").select_option("bad")
    expect(rows).to_have_text([re.compile("checkout.orders")])
    page.get_by_label("lamp").select_option("")
    page.get_by_label("sort").select_option("lag")
    expect(rows.first).to_contain_text("search.rank")  # a day's partition is older than an hour's
    same = listed(page, airflow, "?team=growth&sort=lag")
    expect(same).to_have_text([re.compile("growth.reach")])


def test_the_keyboard_is_enough(page: Page, airflow: PageAirflow) -> None:
    listed(page, airflow)
    page.get_by_role("listbox", name="confs").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("listbox", name="confs").get_by_role("option", selected=True)).to_contain_text(
        "checkout.orders"
    )
    page.keyboard.press("Enter")
    grid = drawn(page)
    assert parse_qs(urlsplit(page.url).query)["conf"] == [ORDERS]
    grid.focus()
    page.keyboard.press("ArrowLeft")  # the cursor comes, at the hour of now
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="partition")).to_contain_text("landed")
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="partition")).to_have_count(0)
    grid.focus()
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    expect(page.get_by_role("region", name="replay")).to_contain_text("all 3")
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="replay")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(rows_of(page)).to_have_count(3)


def test_what_the_mouse_is_over_is_told_and_a_click_tells_why(page: Page, airflow: PageAirflow) -> None:
    grid = opened(page, airflow)
    height, start = grid.bounding_box(), failed_of(airflow.now)
    page.mouse.move(*cell(grid, airflow, start))
    expect(page.get_by_role("tooltip")).to_contain_text(label(start))
    expect(page.get_by_role("tooltip")).to_contain_text("failed")
    page.mouse.click(*cell(grid, airflow, start))
    panel = page.get_by_role("region", name="partition")
    expect(panel).to_contain_text(f"{label(start)}: failed")
    expect(panel).to_contain_text(f"scheduled__{label(start)}")
    expect(panel).to_contain_text("staging_query/growth.reach__1")  # it reads this
    assert grid.bounding_box() == height  # nothing jumps
    assert parse_qs(urlsplit(page.url).query)["at"] == [str(start)]
    page.goto(page.url)
    expect(page.get_by_role("region", name="partition")).to_contain_text(f"{label(start)}: failed")


def test_dragging_over_a_gap_shows_exactly_what_airflow_would_run_and_runs_it(page: Page, airflow: PageAirflow) -> None:
    grid, gap = opened(page, airflow), gap_of(airflow.now)
    with page.expect_request("**/api/v2/backfills/dry_run") as asked:
        drag(page, grid, airflow, gap[0] - 2 * HOUR, gap[-1] + HOUR)
    assert body(asked.value) == {
        "dag_id": ORDERS,
        "from_date": to_datetime(gap[0]).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "to_date": to_datetime(gap[-1]).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "reprocess_behavior": "completed",
        "max_active_runs": 4,
        "run_backwards": False,
    }
    panel = page.get_by_role("region", name="replay", exact=True)
    expect(panel.get_by_role("status")).to_have_text(f"Airflow would run {GAP} partitions:")
    expect(panel.get_by_label("labels").locator("div")).to_have_text([label(start) for start in gap])
    panel.get_by_role("button", name=f"Replay {GAP} partitions").click()
    under_way = page.get_by_role("region", name="replay under way")
    expect(under_way).to_contain_text(f"{label(gap[0])} to {label(gap[-1])}")
    under_way.get_by_role("button", name="cancel it").click()
    expect(under_way).to_have_count(0)


def test_scattered_partitions_are_run_one_by_one(page: Page, airflow: PageAirflow) -> None:
    grid, start = opened(page, airflow), retried_of(airflow.now)
    drag(page, grid, airflow, start - HOUR, start + HOUR)
    panel = page.get_by_role("region", name="replay", exact=True)
    expect(panel.get_by_label("labels").locator("div")).to_have_text([label(start)])
    with page.expect_response(f"**/api/v2/dags/{ORDERS}/dagRuns") as made:
        panel.get_by_role("button", name="Replay 1 partition").click()
    assert made.value.ok, made.value.text()
    assert made.value.json()["partition_key"] == label(start)
    expect(panel.get_by_role("alert")).to_have_text("1 run of 1 started.")


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (403, {"detail": "Forbidden"}, "You lack the right to do this in Airflow."),
        (401, {"detail": "Not authenticated"}, "You are logged out: load the page again."),
        (
            422,
            {"detail": "Backfill cannot be executed for future dates."},
            "Backfill cannot be executed for future dates.",
        ),
        (422, {"detail": [{"msg": "Input should be a valid datetime"}]}, "Input should be a valid datetime"),
        (500, "no JSON", "Airflow answers with status 500."),
    ],
)
def test_what_airflow_refuses_is_one_sentence(
    page: Page, airflow: PageAirflow, status: int, answer: Any, said: str
) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=status, body=answer if isinstance(answer, str) else json.dumps(answer))

    page.route("**/api/v2/backfills/dry_run", refuse)
    grid, gap = opened(page, airflow), gap_of(airflow.now)
    drag(page, grid, airflow, gap[0] - 4 * HOUR, gap[0] - HOUR)
    expect(page.get_by_role("region", name="replay", exact=True).get_by_role("alert")).to_have_text(said)


def test_days_and_months_fold_partitions_and_lead_back_to_them(page: Page, airflow: PageAirflow) -> None:
    opened(page, airflow)
    page.get_by_role("button", name="month", exact=True).click()
    page.wait_for_function("document.querySelector('[role=application]').dataset.drawn < 60")
    assert parse_qs(urlsplit(page.url).query)["zoom"] == ["month"]
    grid = page.get_by_role("application")
    grid.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="day", exact=True)).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(
        "[28, 29, 30, 31].includes(Number(document.querySelector('[role=application]').dataset.drawn))"
    )
    grid.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('[role=application]').dataset.drawn == 24")
    page.go_back()
    expect(page.get_by_role("button", name="day", exact=True)).to_have_attribute("aria-pressed", "true")


def test_the_chain_has_lamps_and_leads_on(page: Page, airflow: PageAirflow) -> None:
    opened(page, airflow, f"?conf={REACH}")
    producer = page.get_by_role("group", name="chain").get_by_role("link")
    expect(producer.get_by_role("img", name="failed")).to_be_visible()
    producer.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("staging_query/checkout.orders__1")


@pytest.mark.parametrize(("theme", "is_light"), [("light", True), ("dark", False)])
def test_it_is_as_light_or_dark_as_airflow(page: Page, airflow: PageAirflow, theme: str, is_light: bool) -> None:
    page.add_init_script(f"localStorage.setItem('theme', '{theme}')")
    listed(page, airflow)

    def brightness(style: str) -> int:
        colour = page.locator(".chronon").evaluate(f"element => getComputedStyle(element).{style}")
        context = (
            "const c = document.createElement('canvas').getContext('2d'); c.fillStyle = colour; c.fillRect(0, 0, 1, 1);"
        )
        return int(page.evaluate(f"colour => {{ {context} return c.getImageData(0, 0, 1, 1).data[0]; }}", colour))

    assert (brightness("backgroundColor") > 128, brightness("color") < 128) == (is_light, is_light)


def test_a_dag_has_its_own_tab_and_a_foreign_one_is_told_in_a_line(page: Page, airflow: PageAirflow) -> None:
    page.goto(f"{airflow.url}/dags/{RANK}/plugin/chronon-partitions", wait_until="domcontentloaded")
    drawn(page)
    expect(page.locator(".chronon h1")).to_have_text("staging_query/search.rank__1")
    expect(page.get_by_role("button", name="all confs")).to_have_count(0)
    page.goto(f"{airflow.url}/dags/{FOREIGN}/plugin/chronon-partitions", wait_until="domcontentloaded")
    expect(page.locator(".chronon")).to_contain_text("This DAG writes no partitions of a Chronon conf")


def test_it_works_below_a_path(page: Page, airflow: PageAirflow) -> None:
    with run_below_path(airflow, "/data/air") as below:
        expect(listed(page, airflow, url=below.url)).to_have_count(3)
        grid, gap = opened(page, airflow, f"?conf={ORDERS}", url=below.url), gap_of(airflow.now)
        drag(page, grid, airflow, gap[0] - 4 * HOUR, gap[0] - HOUR)
        panel = page.get_by_role("region", name="replay", exact=True)
        expect(panel.get_by_role("status")).to_have_text("Airflow would run 4 partitions:")
        assert urlsplit(page.url).path == "/data/air/plugin/chronon"


def test_a_narrow_window_loses_nothing(page: Page, airflow: PageAirflow) -> None:
    page.set_viewport_size({"width": 760, "height": 700})
    rows = listed(page, airflow)
    expect(rows.first).to_be_visible()
    grid = opened(page, airflow)
    page.mouse.click(*cell(grid, airflow, failed_of(airflow.now)))
    panel: Callable[[], Any] = page.get_by_role("region", name="partition").bounding_box
    expect(page.get_by_role("region", name="partition")).to_contain_text("failed")
    assert panel()["x"] >= 0 and panel()["x"] + panel()["width"] <= 760
