from ai.chronon.api.ttypes import Accuracy, EntitySource, EventSource, Operation, Source, TimeUnit, Window
from ai.chronon.group_by import Aggregation, GroupBy
from ai.chronon.query import Query

_SELECTS = {"user": "user_id", "price": "amount"}


def _events(table="raw.purchases", topic=None, cumulative=False, **query):
    query.setdefault("time_column", "ts")
    return Source(events=EventSource(table=table, topic=topic, isCumulative=cumulative, query=Query(selects=_SELECTS, **query)))


def _days(*lengths):
    return [Window(length, TimeUnit.DAYS) for length in lengths]


def _sums(windows):
    return [Aggregation(input_column="price", operation=Operation.SUM, windows=windows)]


backfilled = GroupBy(sources=_events(start_partition="2026-01-01"), keys=["user"], aggregations=_sums(_days(3, 7)), backfill_start_date="2026-01-15")
only_right_part = GroupBy(sources=_events(), keys=["user"], aggregations=_sums(_days(3)))
online_v1 = GroupBy(sources=_events(), keys=["user"], aggregations=_sums([Window(12, TimeUnit.HOURS), Window(30, TimeUnit.DAYS)]), online=True, accuracy=Accuracy.TEMPORAL)
both = GroupBy(sources=_events(), keys=["user"], aggregations=_sums(_days(1, 3)), online=True, backfill_start_date="2026-01-01", offline_schedule="45 3 * * *")
streamed = GroupBy(sources=_events(topic="purchases"), keys=["user"], aggregations=_sums(_days(7)), online=True, accuracy=Accuracy.TEMPORAL)
unwindowed = GroupBy(sources=_events(start_partition="2026-05-20"), keys=["user"], aggregations=_sums(None), backfill_start_date="2026-05-20")
lagging = GroupBy(sources=_events(), keys=["user"], aggregations=_sums(_days(1)), backfill_start_date="2026-01-01", lag=1)
dated_column = GroupBy(sources=_events(partition_column="day"), keys=["user"], aggregations=_sums(_days(1)), backfill_start_date="2026-01-01")
cumulative = GroupBy(sources=_events(table="raw.all_purchases", cumulative=True), keys=["user"], aggregations=_sums(_days(1)), backfill_start_date="2026-01-01")
mobile = GroupBy(sources=_events(table="raw.purchases/system=mobile"), keys=["user"], aggregations=_sums(_days(2)), backfill_start_date="2026-01-01")
ended = GroupBy(sources=[_events(table="raw.old_purchases", end_partition="2026-06-05"), _events(start_partition="2026-06-03")], keys=["user"], aggregations=_sums(_days(5)), backfill_start_date="2026-01-01")
overridden = GroupBy(sources=_events(), keys=["user"], aggregations=_sums(_days(2)), backfill_start_date="2026-01-01", dependencies=["raw.purchases/dt={{ macros.ds_add(ds, -1) }}/region=eu"])
weekly = GroupBy(sources=_events(), keys=["user"], aggregations=_sums(_days(7)), backfill_start_date="2026-01-01", offline_schedule="0 4 * * 0")
of_staging = GroupBy(sources=_events(table="checkout_features.checkout_orders_cleaned"), keys=["user"], aggregations=_sums(_days(3)), backfill_start_date="2026-01-01")
users = GroupBy(
    sources=Source(entities=EntitySource(snapshotTable="raw.users", query=Query(selects={"user": "id", "country": "country"}))),
    keys=["user"],
    aggregations=None,
    backfill_start_date="2026-01-01",
)
users_live = GroupBy(
    sources=Source(
        entities=EntitySource(
            snapshotTable="raw.users",
            mutationTable="raw.users_mutations/hr=00:00",
            mutationTopic="users",
            query=Query(selects={"user": "id", "price": "balance"}, time_column="ts", mutation_time_column="mutated", reversal_column="before"),
        )
    ),
    keys=["user"],
    aggregations=_sums(_days(30)),
    online=True,
    accuracy=Accuracy.TEMPORAL,
)
