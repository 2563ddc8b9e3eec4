"""DAG ids and tags (C24, C26)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.bounds import MAX_ID
from airflow_chronon.core.confs.conf import ConfKey
from airflow_chronon.core.confs.documents import ConfType
from airflow_chronon.core.confs.naming import dag_id
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.confs.resolve import ConfPlan
from tests.support.confs import conf_of, events, faults_of, group_by, join, judge, plan_of, staging_query

LEGAL_ID = re.compile(r"[A-Za-z0-9_.-]{1,250}")


def id_of(name: str, *, version: str | None = None, branch: str = "main", kind: ConfType = ConfType.GROUP_BY) -> str:
    full = f"{name}__{version}" if version else name
    return dag_id(ConfKey(kind, full), name=name, version=version, branch=branch, default_branch="main")


class TestIds:
    @pytest.mark.parametrize(
        ("document", "expected"),
        [
            pytest.param(
                group_by("checkout.purchases.daily__3"), "group_by.checkout.purchases.daily__3", id="a GroupBy"
            ),
            pytest.param(join("a.b.c__1"), "join.a.b.c__1", id="a Join"),
            pytest.param(staging_query("a.b.c"), "staging_query.a.b.c", id="without a version there is no suffix"),
        ],
    )
    def test_type_name_and_version(self, document: dict[str, object], expected: str) -> None:
        assert plan_of(document).dag_id == expected

    def test_the_version_is_never_guessed_from_the_names_tail(self) -> None:
        document = staging_query("a.b.c__3", version=None)
        document["metaData"].pop("version", None)
        conf = conf_of(document)
        assert conf.version is None and plan_of(document).dag_id == "staging_query.a.b.c__3"
        assert "version:3" not in plan_of(document).tags

    def test_another_branch_stands_in_front(self) -> None:
        assert id_of("a.b", version="1", branch="try-v4") == "try-v4--group_by.a.b__1"

    def test_a_branch_with_a_slash_does_not_survive_and_gets_a_hash(self) -> None:
        one, other = id_of("a.b", version="1", branch="feature/x"), id_of("a.b", version="1", branch="feature_x")
        assert one.startswith("feature_x--group_by.a.b_") and one.endswith("__1") and one != other
        assert other == "feature_x--group_by.a.b__1"

    def test_letters_that_do_not_survive_are_distinguished(self) -> None:
        one, other = id_of("t.größe", version="1"), id_of("t.gräße", version="1")
        assert one != other
        assert re.fullmatch(r"group_by\.t\.gr__e_[0-9a-f]{8}__1", one)

    def test_the_hash_is_the_same_on_every_machine(self) -> None:
        assert id_of("t.größe", version="1") == "group_by.t.gr__e_7a6401aa__1"

    def test_a_long_name_is_shortened_and_its_version_kept(self) -> None:
        name = "a." + "x" * 300
        one, other = id_of(name, version="12"), id_of(name, version="13")
        assert len(one) == MAX_ID and one.endswith("__12") and other.endswith("__13")
        assert one[:100] == other[:100] and one[-13:-4] != other[-13:-4]

    def test_250_characters_are_left_as_they_are(self) -> None:
        name = "x" * (MAX_ID - len("group_by.") - len("__3"))
        assert id_of(name, version="3") == f"group_by.{name}__3"
        assert id_of(name + "x", version="3") != f"group_by.{name}x__3"

    @given(
        st.text(min_size=1, max_size=300),
        st.text(max_size=150) | st.none(),
        st.sampled_from(["main", "feature/ü", "b" * 300]),
    )
    def test_whatever_the_name_the_id_is_legal(self, name: str, version: str | None, branch: str) -> None:
        assert LEGAL_ID.fullmatch(id_of(name, version=version, branch=branch))

    @given(st.lists(st.text("aö._-/x", min_size=1, max_size=6), min_size=2, max_size=6, unique=True))
    def test_two_names_never_share_an_id(self, names: list[str]) -> None:
        assert len({id_of(name) for name in names}) == len(names)

    def test_two_confs_of_one_id_are_both_refused_and_named(self) -> None:
        # the version is a suffix of the one and part of the name of the other
        one, other = staging_query("a.b__1"), staging_query("a.b", version="1")
        (fault,) = faults_of(one, other)
        assert fault.rule == "C26" and "staging_query.a.b__1" in fault.message and "staging_query/a.b" in fault.message
        verdicts = judge(one, other, staging_query("a.c__1"))
        assert [type(verdict) for verdict in verdicts.values()] == [RejectedConf, RejectedConf, ConfPlan]

    def test_one_name_in_two_types_is_two_dags(self) -> None:
        verdicts = judge(group_by("t.m.x__1"), join("t.m.x__1"))
        assert {v.dag_id for v in verdicts.values() if isinstance(v, ConfPlan)} == {
            "group_by.t.m.x__1",
            "join.t.m.x__1",
        }


class TestTags:
    def test_what_people_filter_by(self) -> None:
        conf = group_by(
            "checkout.x.y__3",
            sources=[events(interval="1h")],
            schedule="0 1-22/3 * * *",
            offset="1h",
            online="0 1-22/3 * * *",
        )
        assert plan_of(conf).tags == (
            "branch:main",
            "chronon",
            "grid:3h@1h",
            "online",
            "team:checkout",
            "type:group_by",
            "version:3",
        )

    def test_an_unscheduled_conf_says_so(self) -> None:
        assert "unscheduled" in plan_of(group_by()).tags

    def test_no_tag_is_longer_than_airflow_allows(self) -> None:
        assert max(len(tag) for tag in plan_of(group_by("t" * 150 + ".x__1")).tags) == 100


class TestTables:
    @pytest.mark.parametrize(
        ("name", "table"),
        [("a.b-c.d__1", "ns.a_b_c_d__1"), ("größe", "ns.gr__e"), ("A.b", "ns.A_b"), ("a..b", "ns.a__b")],
    )
    def test_odd_signs_become_underscores_one_for_one(self, name: str, table: str) -> None:
        assert conf_of(staging_query(name)).table == table
