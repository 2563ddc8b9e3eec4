"""From a table to the DAGs that may write it, of whatever branch or deployment (C24, C28)."""

from __future__ import annotations

import re

import pytest

from airflow_chronon.core.confs.table_ids import ids_like, may_write
from tests.support.confs import group_by, join, plan_of, staging_query


def is_found(dag_id: str, table: str) -> bool:
    """As Airflow's list finds it, by a part where an underscore is any character."""
    return re.search(ids_like(table).replace("_", "."), dag_id, re.IGNORECASE) is not None and may_write(dag_id, table)


@pytest.mark.parametrize("branch", ["main", "try", "feature/a-very-long-name-of-a-branch" * 4, "größer", "x--join.y"])
@pytest.mark.parametrize(
    "name", ["t.s.x__1", "t.s.x", "t.s_x__1", "t.s-x__3", "t.café.x__1", f"t.{'long.' * 60}x__1", "t.a__b__12"]
)
def test_every_branch_of_a_conf_is_found(name: str, branch: str) -> None:
    own = plan_of(staging_query(name))
    assert is_found(plan_of(staging_query(name), branch=branch).dag_id, own.conf.table)


def test_confs_of_other_types_and_names_that_write_the_same_table_are_found() -> None:
    table = plan_of(staging_query("t.s_x__1")).conf.table
    same = [group_by("t.s.x__1"), join("t.s.x__1"), staging_query("t.s.x__1")]
    assert [plan_of(each).conf.table for each in same] == [table] * 3
    assert all(is_found(plan_of(each).dag_id, table) for each in same)


def test_a_conf_that_is_called_like_the_upload_of_another_is_found_and_finds_it() -> None:
    online, named = plan_of(group_by("t.g.x__1")), plan_of(staging_query("t.g.x__1__upload"))
    assert is_found(named.dag_id, online.conf.table) and is_found(online.dag_id, named.conf.table)


@pytest.mark.parametrize(
    "dag_id",
    [
        "staging_query.t.s.x__2",
        "staging_query.t.s.xy__1",
        "staging_query.u.t.s.x__1",
        "job.t.s.x__1",
        "report_t_s_x__1",
    ],
)
def test_other_versions_confs_and_dags_are_not(dag_id: str) -> None:
    assert not may_write(dag_id, "ns.t_s_x__1")
