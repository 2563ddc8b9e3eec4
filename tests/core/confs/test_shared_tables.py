"""Two confs of one tree that write one table (C22, C26, C28, S1)."""

from __future__ import annotations

import pytest

from tests.support.confs import Document, events, faults_of, group_by, join, plan_of, staging_query

HOURLY = staging_query("t.s.x__1", schedule="0 * * * *")


def test_are_warned_about() -> None:  # C26: a name is unique within a type only
    (warning,) = plan_of(group_by("t.m.x__1"), join("t.m.x__1")).warnings
    assert str(warning) == (
        "metaData.name: join/t.m.x__1 writes the table ns.t_m_x__1 too (C28). Rename one of them: they write one after the"
        " other, and the later overwrites the earlier."
    )


@pytest.mark.parametrize("first", [0, 1])
def test_on_two_grids_are_refused_both(first: int) -> None:
    confs = [HOURLY, staging_query("t.s_x__1", schedule="0 */3 * * *")]
    names, grids = ("t.s.x__1", "t.s_x__1"), ("1h", "3h")
    (fault,) = faults_of(confs[first], confs[1 - first])
    assert str(fault) == (
        f"metaData.name: staging_query/{names[1 - first]} writes the table ns.t_s_x__1 too, on the grid {grids[1 - first]},"
        f" and this conf on {grids[first]} (C28). A table has one grid: rename one of them."
    )


def test_of_another_team_cannot_take_a_dag_away() -> None:  # S1
    intruder = staging_query("t_s.x__1", schedule="0 */3 * * *", team="t_s")
    assert [warning.rule for warning in plan_of(HOURLY, intruder).warnings] == ["C28"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(staging_query("t.s_x__1", schedule="@never", interval="3h"), id="off"),
        pytest.param(
            group_by("t.s.x__1", sources=[events("data.e")], online="0 6 * * *"), id="fills its upload table alone"
        ),
        pytest.param(staging_query("t.s_x__1", schedule="0 */3 * * *", environments=[1]), id="of another environment"),
        pytest.param(staging_query("t.s_x__1", schedule="0 */7 * * *"), id="rejected itself"),
        pytest.param(staging_query("t.s_x__1", schedule="5 * * * *"), id="on the same grid"),
    ],
)
def test_of_which_one_does_not_mix_with_the_other_are_good(other: Document) -> None:
    assert [warning.rule for warning in plan_of(HOURLY, other).warnings] == ["C28"]
