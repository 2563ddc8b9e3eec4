from ai.chronon.api.ttypes import BootstrapPart, EntitySource, EventSource, Source
from ai.chronon.join import Derivation, Join, JoinPart, LabelPart
from ai.chronon.query import Query

from group_bys.checkout import purchases
from group_bys.search import clicks

_left = Source(events=EventSource(table="raw.checkouts", query=Query(selects={"user": "user_id"}, time_column="ts", start_partition="2026-01-01")))
_entities = Source(entities=EntitySource(snapshotTable="raw.users", query=Query(selects={"user": "id"})))


def _parts(*group_bys):
    return [JoinPart(group_by=group_by) for group_by in group_bys]


v1 = Join(left=_left, right_parts=_parts(purchases.backfilled, purchases.users))
served = Join(left=_left, right_parts=_parts(purchases.online_v1, purchases.both, clicks.v1), online=True, sample_percent=10.0, check_consistency=True)
temporal = Join(left=_left, right_parts=_parts(purchases.streamed, purchases.users_live), offline_schedule="0 6 * * *")
of_entities = Join(left=_entities, right_parts=_parts(purchases.backfilled, clicks.v2))
newest = Join(left=_left, right_parts=_parts(purchases.weekly), historical_backfill=False, offline_schedule="0 7 * * 1")
late = Join(left=_left, right_parts=_parts(purchases.lagging), lag=2)
with_overridden = Join(left=_left, right_parts=_parts(purchases.overridden, purchases.mobile, purchases.dated_column))
bootstrapped = Join(left=_left, right_parts=_parts(purchases.ended), bootstrap_parts=[BootstrapPart(table="raw.logged", query=Query(selects={"a": "a"}, start_partition="2026-06-01"))])
derived = Join(left=_left, right_parts=_parts(purchases.unwindowed), derivations=[Derivation(name="x", expression="1")])
never = Join(left=_left, right_parts=_parts(purchases.cumulative), offline_schedule="@never")
labelled = Join(left=_left, right_parts=_parts(purchases.of_staging), label_part=LabelPart(labels=_parts(purchases.only_right_part), left_start_offset=3, left_end_offset=3))
own_words = Join(left=_left, right_parts=_parts(purchases.backfilled), dependencies=["raw.checkouts/ds={{ ds }}", "raw.ready/ds={{ ds }}/of=checkouts"])
