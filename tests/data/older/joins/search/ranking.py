from ai.chronon.api.ttypes import EventSource, JoinSource, Source
from ai.chronon.group_by import Aggregation, GroupBy
from ai.chronon.api.ttypes import Operation, TimeUnit, Window
from ai.chronon.join import Join, JoinPart
from ai.chronon.query import Query

from group_bys.search import clicks
from joins.checkout import training

_left = Source(events=EventSource(table="raw.impressions", query=Query(selects={"user": "user_id"}, time_column="ts")))

v1 = Join(left=_left, right_parts=[JoinPart(group_by=clicks.v1)], online=True)
v2 = Join(left=_left, right_parts=[JoinPart(group_by=clicks.v2), JoinPart(group_by=clicks.by_session)], offline_schedule="15 4 * * *")
