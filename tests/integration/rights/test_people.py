"""What people see and start in Airflow, as the table in docs/security.md says, tried on a real Airflow (S10).

The people are those of the FAB auth manager, which knows rights on single DAGs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import httpx
import pytest
from airflow_api import DagRun

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.errors import NoRights, NotThere
from airflow_chronon.airflow_api.login import Login
from airflow_chronon.airflow_api.records import BackfillRequest, Reprocess
from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import AirflowClient, wait_until
from tests.support.integration.fab_server import FabServer, Right, run_fab_server
from tests.support.integration.replay_lab import Lab, hour, unscheduled

pytestmark = pytest.mark.soak

PAGE = (ROOT / "docs" / "security.md").read_text()
OWN, OTHER = "t.people.own__1", "t.people.other__1"
JOB = "job.t.greets"
BAD = "compiled/staging_queries/t/people.bad__1"
#: The columns of the page's table.
NOBODY, VIEWER, OF_ONE, ADMIN = "nobody", "a viewer", "a user with rights on one DAG", "an administrator"
NO, ONE, ALL, YES = "no", "that DAG", "all", "yes"


def rights_on(dag_id: str) -> list[Right]:
    """The role for one DAG as the page writes it down."""
    [listed] = re.findall(r"```\n(DAG:.*?)```", PAGE, re.DOTALL)
    named = [line.partition(": ") for line in listed.replace("DAG:DAG_ID", f"DAG {dag_id}").splitlines()]
    return [
        (action, resource.replace(f"DAG {dag_id}", f"DAG:{dag_id}"))
        for resource, _, actions in named
        for action in actions.split(", ")
    ]


@dataclass(frozen=True)
class Person:
    """Someone at the api-server, logged in or not."""

    http: httpx.Client

    def ask(self, method: str, path: str, body: object = None) -> tuple[bool, str]:
        """Whether Airflow let them, and its answer. Asked again while SQLite is locked."""

        def answered() -> httpx.Response | None:
            answer = self.http.request(method, f"/api/v2{path}", json=body)
            return None if answer.is_server_error else answer

        answer = wait_until(answered, timeout=120, why=f"{method} {path} is answered")
        if answer.status_code in (401, 403):
            return False, ""
        assert answer.is_success or answer.status_code == 409, answer.text  # 409: another person has begun it
        return True, answer.text

    def sees(self, path: str, *words: str) -> bool:
        """Whether an answer holds these words."""
        allowed, text = self.ask("GET", path)
        return allowed and all(word in text for word in words)

    def does(self, method: str, path: str, body: object) -> bool:
        return self.ask(method, path, body)[0]


@dataclass(frozen=True)
class People:
    """Who is there, and a run of each DAG that they may look at."""

    lab: Lab
    fab: FabServer
    runs: Mapping[str, DagRun]  #: by DAG id; that of ``OWN`` first
    persons: Mapping[str, Person]  #: by the column of the table, and more by their names

    def client(self, name: str) -> AirflowClient:
        return AirflowClient(url=self.fab.url, user=name, password=self.fab.passwords[name])


@pytest.fixture(scope="module")
def people(lab: Lab) -> Iterator[People]:
    own, other = (lab.deploy(unscheduled(name, "1h")) for name in (OWN, OTHER))
    root = lab.airflow.conf_root
    (root / BAD).write_text("{'single': 'quotes'}")
    (root / "jobs" / "t").mkdir(parents=True)
    argv = ["sh", "-c", "echo told: $GREETING"]
    (root / "jobs" / "t" / "greets.yaml").write_text(json.dumps({"version": 1, "retries": 0, "runner": {"argv": argv}}))
    (lab.airflow.dags / "chronon_import_errors.py").write_text((ROOT / "dags" / "chronon_import_errors.py").read_text())
    lab.airflow.parse_soon()
    api = lab.airflow.api
    api.request("POST", "/connections", json={"connection_id": "vault", "conn_type": "http", "password": "SECRET"})
    api.request("POST", "/variables", json={"key": "budget", "value": "SECRET"})
    lab.wait_for(own, other, JOB)
    runs = {dag_id: api.trigger(dag_id, partition_key=hour(3)) for dag_id in (own, other)}
    assert [lab.ended(run, timeout=300).state for run in runs.values()] == ["success"] * 2
    wait_until(
        lambda: any(BAD in error["stack_trace"] for error in api.import_errors()), timeout=240, why="its error shows"
    )
    roles = {"own": rights_on(own), "job": rights_on(JOB)}
    roles["own and more"] = [
        *roles["own"],
        *(("can_read", each) for each in ("ImportError", "Assets", "Asset Aliases")),
    ]
    named = {"olga": "own", "jim": "job", "mona": "own and more", "pat": "Public"}
    named |= {"vic": "Viewer", "ed": "User", "ada": "Admin"}
    with run_fab_server(lab.airflow.server, roles=roles, people=named) as fab:
        clients = {name: AirflowClient(url=fab.url, user=name, password=fab.passwords[name]) for name in named}
        tokens = {name: client.log_in() for name, client in clients.items()}
        of = {name: _person(fab, token) for name, token in tokens.items()}
        columns = {NOBODY: _person(fab, None), VIEWER: of["vic"], OF_ONE: of["olga"], ADMIN: of["ada"]}
        yield People(lab, fab, runs, {**of, **columns})
        for client in clients.values():
            client.__exit__()


def _person(fab: FabServer, token: str | None) -> Person:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return Person(httpx.Client(base_url=fab.url, timeout=120, trust_env=False, headers=headers))


def _moment(run: DagRun) -> str:
    """The start of the partition of a run."""
    assert run.partition_date is not None
    return run.partition_date.isoformat()


def _tasks(run: DagRun) -> str:
    return f"/dags/{run.dag_id}/dagRuns/{quote(run.run_id)}/taskInstances"


def _lists_runs(person: Person, run: DagRun) -> bool:
    everywhere, here = (person.sees(f"/dags/{dag}/dagRuns?limit=100", run.run_id) for dag in ("~", run.dag_id))
    assert everywhere == here == person.sees(_tasks(run), '"backfill"')
    return here


def _backfills(person: Person, run: DagRun) -> bool:
    body = {"dag_id": run.dag_id, "from_date": _moment(run), "to_date": _moment(run), "max_active_runs": 1}
    return person.does("POST", "/backfills", {**body, "reprocess_behavior": "completed"})


def _clears(person: Person, run: DagRun) -> bool:
    body = {"dag_run_id": run.run_id, "task_ids": ["backfill"], "dry_run": True, "only_failed": False}
    return person.does("POST", f"/dags/{run.dag_id}/clearTaskInstances", body)


def _ends(person: Person, run: DagRun) -> bool:
    path = f"/dags/{run.dag_id}/dagRuns/{quote(run.run_id)}"
    return person.does("PATCH", path, {"note": "looked at"}) and person.sees(path, "looked at")


#: By the first cell of a row of the table: may a person do this to the DAG of this run?
TO_A_DAG: dict[str, Callable[[Person, DagRun], bool]] = {
    "it in the list of DAGs": lambda person, run: person.sees("/dags?limit=100", f'"{run.dag_id}"'),
    "a DAG's page, with the conf and its query": lambda person, run: person.sees(
        f"/dags/{run.dag_id}/details", "doc_md", run.dag_id.removeprefix("staging_query."), "SELECT"
    ),
    "runs and tasks": _lists_runs,
    "task logs": lambda person, run: person.sees(
        f"{_tasks(run)}/backfill/logs/1?full_content=true", str(run.partition_key)
    ),
    "pause and unpause": lambda person, run: person.does("PATCH", f"/dags/{run.dag_id}", {"is_paused": False}),
    "trigger a run": lambda person, run: person.does(
        "POST", f"/dags/{run.dag_id}/dagRuns", {"logical_date": None, "partition_key": hour(4)}
    ),
    "start a backfill": _backfills,
    "clear tasks": _clears,
    "mark and note runs": _ends,
}
#: The same, of what belongs to no DAG.
OF_ALL: dict[str, Callable[[Person], bool]] = {
    "import errors: what is wrong with confs and jobs of all teams": lambda person: person.sees("/importErrors", BAD),
    "assets: the names of the tables of all teams": lambda person: person.sees("/assets?limit=100", "people_other__1"),
    "connections": lambda person: person.sees("/connections?limit=100", '"vault"'),
    "variables": lambda person: person.sees("/variables?limit=100", '"budget"'),
}


def table() -> dict[str, dict[str, str]]:
    """What the page says, by row and column."""
    section = PAGE.partition("## What people see in Airflow")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_the_page_has_a_row_for_whatever_is_tried() -> None:  # S10
    said = table()
    assert list(said) == [*TO_A_DAG, *OF_ALL]
    assert all(list(row) == [NOBODY, VIEWER, OF_ONE, ADMIN] for row in said.values())


@pytest.mark.parametrize("what", TO_A_DAG)
@pytest.mark.parametrize("who", [NOBODY, VIEWER, OF_ONE, ADMIN])
def test_what_each_may_do_to_a_dag(people: People, who: str, what: str) -> None:  # S10
    own, other = people.runs
    may = {dag_id for dag_id, run in people.runs.items() if TO_A_DAG[what](people.persons[who], run)}
    tried = {frozenset(): NO, frozenset({own}): ONE, frozenset({own, other}): ALL}[frozenset(may)]
    assert tried == table()[what][who]


@pytest.mark.parametrize("what", OF_ALL)
@pytest.mark.parametrize("who", [NOBODY, VIEWER, OF_ONE, ADMIN])
def test_what_each_may_see_beside_dags(people: People, who: str, what: str) -> None:  # S10
    assert (YES if OF_ALL[what](people.persons[who]) else NO) == table()[what][who]


def test_whoever_is_logged_in_without_a_role_is_nobody(people: People) -> None:  # S10
    person, run = people.persons["pat"], next(iter(people.runs.values()))
    assert not any(may(person, run) for may in TO_A_DAG.values())
    assert not any(may(person) for may in OF_ALL.values())


def test_import_errors_and_assets_are_of_all_teams_or_of_none(people: People) -> None:  # S10
    """Airflow has no right on those of one DAG."""
    person = people.persons["mona"]
    assert [may(person) for may in OF_ALL.values()] == [True, True, False, False]


def test_the_package_serves_nothing_of_its_own(people: People) -> None:  # S10
    allowed, text = people.persons[ADMIN].ask("GET", "/plugins?limit=100")
    assert allowed
    [plugin] = [each for each in json.loads(text)["plugins"] if each["name"] == "chronon"]
    served = ("fastapi_apps", "fastapi_root_middlewares", "external_views", "react_apps", "flask_blueprints")
    assert [plugin[each] for each in (*served, "appbuilder_views", "appbuilder_menu_items")] == [[]] * 7


def _end_of(people: People, run: DagRun) -> tuple[str, str]:
    """How a run of the job ended, and its log."""
    ended = people.lab.ended(run, timeout=300)
    [task] = [each for each in people.lab.airflow.api.tasks(run.dag_id, run.run_id) if each.try_number]
    return ended.state, people.lab.airflow.api.log_text(task)


def test_a_run_may_be_given_variables_but_none_that_is_executed_or_loaded(people: People) -> None:  # S10, S5
    with people.client("jim") as jim:
        state, log = _end_of(people, jim.trigger(JOB, params={"env": {"GREETING": "a fine day"}}))
        assert state == "success" and "told: a fine day" in log
        for name in ("PATH", "LD_PRELOAD", "BASH_ENV", "AIRFLOW__CORE__FERNET_KEY"):
            state, log = _end_of(people, jim.trigger(JOB, params={"env": {name: "/nowhere"}}))
            assert state == "failed" and name in log and "told:" not in log


def test_a_run_of_a_conf_may_be_given_a_range_and_writes_its_own_table_alone(people: People) -> None:  # S10
    own, labels = next(iter(people.runs)), [hour(9), hour(8)]
    span = {"start_ds": labels[0], "end_ds": labels[1]}
    with people.client("olga") as olga:
        run = olga.trigger(own, params={**span, "env": {"LD_PRELOAD": "/nowhere"}})
        assert people.lab.ended(run, timeout=300).state == "failed"
        run = olga.trigger(own, params=span)
        assert people.lab.ended(run, timeout=300).state == "success"
    told = [each for name in (OWN, OTHER) for each in people.lab.told(people.lab.table(name))]
    assert [(each["what"], each["table"], each["labels"]) for each in told if each["run"] == run.run_id] == [
        ("begins", people.lab.table(OWN), labels),
        ("ends", people.lab.table(OWN), labels),
    ]


def test_the_roles_that_the_accounts_of_the_connections_need_at_least(people: People) -> None:  # S10
    """FAB's ``Viewer`` for tasks, ``User`` for the reconciler: each call that they make, and where the first one ends."""
    dag_id, run = next(iter(people.runs.items()))
    logins = (Login(people.fab.url, name, people.fab.passwords[name]) for name in ("vic", "ed"))
    reader, editor = (AirflowRest(login) for login in logins)
    for server in (reader, editor):
        assert dag_id in {dag.dag_id for dag in server.dags(tags=("chronon",))}
        assert run.run_id in {each.run_id for each in server.runs(dag_id)}
        assert server.tasks(dag_id, run.run_id)
    assert editor.import_errors()
    assert editor.asset_states("chronon://" + people.lab.table(OWN).replace(".", "/")) == {}
    partition = int(run.partition_date.timestamp())
    backfill = BackfillRequest(dag_id, partition, partition, Reprocess.COMPLETED, 1)
    edits: tuple[tuple[str, Callable[[AirflowRest], object]], ...] = (
        ("edit DAGs", lambda server: server.set_paused(dag_id, paused=False)),
        ("create DAG runs", lambda server: server.plan_backfill(backfill)),
        ("create DAG runs", lambda server: server.trigger(dag_id, partition_key=hour(5))),
        ("edit DAG runs", lambda server: server.patch_run(dag_id, run.run_id, note="looked at")),
    )
    for right, edit in edits:
        edit(editor)
        with pytest.raises(NoRights, match=f"the user 'vic' lacks the right to {right}"):
            edit(reader)
    for server, refusal in ((editor, NotThere), (reader, NoRights)):
        with pytest.raises(refusal):
            server.delete_dag("staging_query.t.nobody.has__1")
