"""How long the page of partitions takes from asking to the painted frame, in a headless Chromium on a real api-server.

1000 confs over 35 days, and one conf with 35,000 and 365,000 partitions: the first answer of a fresh api-server (cold) and
later ones (warm), with the bytes of the answer as they travel and the api-server's share. Beside them Airflow's own grid of
the same conf, for as many runs as it can show.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from local_airflow import Component, LocalAirflow
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
CONFS, DAYS = 1_000, 35
LONG, MINUTES = "staging_query.t.long__1", 3  # 365,000 of its partitions are two years
HOURLY = "staging_query.t.hourly__1"  # 35,000 of its partitions are four years
TIMES = 7

#: Counts from before the question until two frames after the cells are drawn.
CLOCK = """
(() => {
  const ask = globalThis.fetch;
  globalThis.asked = null;
  globalThis.fetch = (...of) => {
    if (String(of[0]).includes("/chronon/") && globalThis.asked === null) globalThis.asked = performance.now();
    return ask(...of);
  };
  const look = () => {
    if (globalThis.asked !== null && document.querySelector(".chronon [data-drawn]"))
      requestAnimationFrame(() => (globalThis.painted = performance.now() - globalThis.asked));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
"""


class Server(LocalAirflow):
    """The api-server alone, over a filled database."""

    def start(self, *, timeout: float = 300) -> None:
        self.home.mkdir(parents=True)
        self._migrate()
        subprocess.run([sys.executable, __file__, "fill"], env=self.environment, check=True, cwd=ROOT)
        self.begin(timeout=timeout)

    def begin(self, *, timeout: float = 300) -> None:
        self.start_component(Component.API_SERVER)
        self.wait_until_healthy([Component.API_SERVER], timeout=timeout)

    def again(self) -> None:
        """A fresh api-server over the same database."""
        self.stop()
        self.begin()

    def cpu(self) -> float:
        """Processor seconds that the api-server has spent."""
        of: Any = psutil.Process(self._running[Component.API_SERVER].process.pid)
        processes: list[Any] = [of, *of.children(recursive=True)]
        return float(sum(sum(each.cpu_times()[:2]) for each in processes))


def fill(now: int) -> None:
    """1000 confs with a few holes and failures each, and two that are long."""
    from airflow.models.asset import AssetModel
    from airflow.models.asset_state_store import AssetStateStoreModel
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    from airflow_chronon.core.calendar.instants import to_datetime
    from airflow_chronon.core.overview.snapshot import SNAPSHOT_ASSET, snapshot_of
    from airflow_chronon.core.partitions.start_ranges import StartRanges
    from tests.support.confs import plan_of, staging_query

    model: Any = DagModel  # Airflow's constructor has no types
    chance, confs, runs = random.Random(4), {}, list[dict[str, Any]]()
    kinds = [
        ("1h", "5 * * * *"),
        ("1h", "5 * * * *"),
        ("1d", "@daily"),
        ("15m", "*/15 * * * *"),
        ("3h", "10 */3 * * *"),
    ]
    plans = [plan_of(staging_query("t.x__1", schedule=cron, interval=interval)) for interval, cron in kinds]
    wanted = [(f"staging_query.t{n % 5}.feature_{n:04}__1", chance.choice(plans), DAYS + 5) for n in range(CONFS - 2)]
    wanted.append((HOURLY, plans[0], 4 * 366))
    wanted.append(
        (LONG, plan_of(staging_query("t.x__1", schedule=f"*/{MINUTES} * * * *", interval=f"{MINUTES}m")), 770)
    )
    for dag_id, plan, days in wanted:
        step = plan.schedule.grid.interval
        end = plan.schedule.grid.floor(now)
        starts = range(end - days * 86_400 // step * step, end, step)
        holes = set(chance.sample(starts, 40 if days > 100 else 3))
        landed = StartRanges.of_starts((start for start in starts if start not in holes), interval=step)
        name = dag_id.partition(".")[2]
        confs[dag_id] = replace(
            snapshot_of(plan),
            dag_id=dag_id,
            key=f"staging_query/{name}",
            team=name.partition(".")[0],
            seen=now - 60,
            landed=landed,
        )
        for start in starts if dag_id == HOURLY else starts[-40:]:
            if start not in holes:
                after, label = to_datetime(start + step), plan.schedule.label(start)
                runs.append(
                    {
                        "dag_id": dag_id, "run_id": f"scheduled__{label}", "run_type": "scheduled", "state": "success",
                        "partition_key": label, "partition_date": to_datetime(start), "run_after": after,
                        "start_date": after, "queued_at": after, "updated_at": after, "clear_number": 0,
                        "triggered_by": "timetable", "conf": {}, "span_status": "not_started",
                    }
                )  # fmt: skip
    with create_session() as session:
        session.merge(DagBundleModel(name="dags-folder"))
        session.flush()
        for dag_id in confs:
            where = {"bundle_name": "dags-folder", "fileloc": "/x.py", "relative_fileloc": "x.py"}
            session.add(model(dag_id=dag_id, is_paused=False, is_stale=False, timetable_summary="", **where))
        session.flush()
        session.execute(DagRun.__table__.insert(), runs)
        asset = AssetModel(name=SNAPSHOT_ASSET, uri=SNAPSHOT_ASSET, group="chronon-internal", extra={})
        session.add(asset)
        session.flush()
        text = json.dumps({dag_id: conf.to_json() for dag_id, conf in confs.items()})
        session.add(AssetStateStoreModel(asset_id=asset.id, key="dags-folder/main", value=json.dumps(text)))
    print(f"{len(confs)} confs, {len(runs)} runs, a snapshot of {len(text) / 1000:.0f} kB")


def painted(page: Page, address: str) -> tuple[float, int]:
    """Milliseconds from asking to the painted frame, and the bytes of the answer."""
    sizes = []

    def count(response: Any) -> None:
        if ".json" in response.url and "/chronon/" in response.url:
            sizes.append(response)

    page.on("response", count)
    page.goto(address, wait_until="domcontentloaded")
    page.wait_for_function("globalThis.painted !== undefined", timeout=120_000)
    took = float(page.evaluate("globalThis.painted"))
    size = int(sizes[0].request.sizes()["responseBodySize"])
    page.remove_listener("response", count)
    return took, size


def grid(page: Page, url: str) -> tuple[float, int, int]:
    """The same of Airflow's own grid: runs alone, without their tasks."""
    asked = f"{url}/ui/grid/runs/{HOURLY}?limit=1000&order_by=-run_after"
    script = """async (asked) => { const begun = performance.now(); const text = await (await fetch(asked)).text();
      return [performance.now() - begun, text.length, JSON.parse(text).length]; }"""
    found = [page.evaluate(script, asked) for _ in range(TIMES)]
    return median(took for took, _, _ in found), int(found[0][1]), int(found[0][2])


def day(back: int) -> str:
    """The date so many days ago."""
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() - back * 86_400))


def main() -> None:
    shapes = {
        f"{CONFS} confs x {DAYS} days": "",
        "35,000 partitions": f"?conf={HOURLY}&from={day(1458)}",
        "365,000 partitions": f"?conf={LONG}&from={day(760)}",
    }
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "dags").mkdir()
        settings = {
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'examples'}",
        }
        server = Server(home=base / "home", dags=base / "dags", settings=settings)
        with server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1400, "height": 850})
            page.add_init_script(CLOCK)
            print("what | cold ms | warm ms (median) | answer kB | api-server CPU ms, warm")
            for name, query in shapes.items():
                page.goto(f"{server.url}/", wait_until="domcontentloaded")  # Airflow's own first answer is not ours
                page.wait_for_load_state("networkidle")
                cold, size = painted(page, f"{server.url}/plugin/chronon{query}")
                warm = [painted(page, f"{server.url}/plugin/chronon{query}")[0] for _ in range(TIMES)]
                path = page.evaluate(
                    "performance.getEntriesByType('resource').map(each => each.name)"
                    ".find(name => /chronon.*json/.test(name))"
                )
                before = server.cpu()
                for _ in range(TIMES):
                    page.evaluate("path => fetch(path).then(answer => answer.text())", path)
                spent = (server.cpu() - before) / TIMES
                print(f"{name} | {cold:.0f} | {median(warm):.0f} | {size / 1000:.1f} | {spent * 1000:.0f}", flush=True)
                server.again()
            took, size, count = grid(page, server.url)
            print(
                f"Airflow's grid, {count} runs, the answer alone | | {took:.0f} | {size / 1000:.1f} (not compressed) |"
            )
            browser.close()


if __name__ == "__main__":
    fill(int(time.time())) if sys.argv[1:] == ["fill"] else main()
