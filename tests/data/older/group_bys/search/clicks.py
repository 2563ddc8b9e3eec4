from ai.chronon.api.ttypes import EventSource, Operation, Source, TimeUnit, Window
from ai.chronon.group_by import Aggregation, GroupBy
from ai.chronon.query import Query

_source = Source(events=EventSource(table="raw.clicks", query=Query(selects={"user": "user_id", "query": "query"}, time_column="ts")))
_counts = [Aggregation(input_column="query", operation=Operation.COUNT, windows=[Window(14, TimeUnit.DAYS)])]

v1 = GroupBy(sources=_source, keys=["user"], aggregations=_counts, online=True)
v2 = GroupBy(sources=_source, keys=["user"], aggregations=_counts, online=True, backfill_start_date="2026-02-01")
by_session = GroupBy(
    sources=Source(events=EventSource(table="search_features.search_clicks_sessions", query=Query(selects={"user": "user_id", "query": "query"}, time_column="ts"))),
    keys=["user"],
    aggregations=_counts,
    backfill_start_date="2026-02-01",
)
unnamed_schedule = GroupBy(sources=_source, keys=["user"], aggregations=_counts, backfill_start_date="2026-02-01", offline_schedule="0 1,13 * * *")
