"""What a customer bought lately, on three grids."""

from ai.chronon.types import Accuracy, Aggregation, EventSource, GroupBy, Operation, Query, selects
from staging_queries.commerce import orders


def _spent(*windows: str) -> list[Aggregation]:
    return [
        Aggregation(input_column="amount_cents", operation=Operation.SUM, windows=list(windows)),
        Aggregation(input_column="amount_cents", operation=Operation.COUNT, windows=list(windows)),
    ]


def _orders(table: str, time_column: str) -> EventSource:
    return EventSource(
        table=table,
        query=Query(selects=selects(customer_id="customer_id", amount_cents="amount_cents"), time_column=time_column),
    )


daily = GroupBy(
    sources=[_orders(orders.daily.table, "UNIX_MILLIS(ordered_at)")],
    keys=["customer_id"],
    aggregations=_spent("1d", "7d"),
    accuracy=Accuracy.SNAPSHOT,
    offline_schedule="30 0 * * *",
    output_namespace="commerce",
    version=1,
)

# Online: after each backfill the newest partition is uploaded, then put into the key-value store.
hourly = GroupBy(
    sources=[_orders(orders.hourly.table, "UNIX_MILLIS(ordered_at)")],
    keys=["customer_id"],
    aggregations=_spent("1d"),
    accuracy=Accuracy.SNAPSHOT,
    online=True,
    offline_schedule="5 * * * *",
    output_namespace="commerce",
    version=1,
)

# The windows of a snapshot must be whole blocks: 360 minutes are two. (The compiler refuses `6h` in a snapshot.)
three_hourly = GroupBy(
    sources=[_orders(orders.three_hourly.table, "UNIX_MILLIS(last_ordered_at)")],
    keys=["customer_id"],
    aggregations=_spent("360m", "3d"),
    accuracy=Accuracy.SNAPSHOT,
    online=True,
    partition_interval="3h",
    partition_offset="1h",
    offline_schedule="15 1-22/3 * * *",
    output_namespace="commerce",
    version=1,
)
