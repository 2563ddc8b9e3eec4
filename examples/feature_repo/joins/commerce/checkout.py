"""Features at the moment of checkout: right parts bind row by row, on grids of their own."""

from ai.chronon.types import EventSource, Join, JoinPart, Query, selects
from group_bys.commerce import purchases
from group_bys.growth import customers
from staging_queries.commerce import orders

# Served online. The three-hour part does not line up with the hourly grid and need not: a row takes the newest block
# that ended at or before it.
serving = Join(
    left=EventSource(
        table=orders.hourly.table,
        query=Query(
            selects=selects(order_id="order_id", customer_id="customer_id"), time_column="UNIX_MILLIS(ordered_at)"
        ),
    ),
    right_parts=[
        JoinPart(group_by=purchases.hourly, prefix="hour"),
        JoinPart(group_by=purchases.three_hourly, prefix="block"),
        JoinPart(group_by=customers.profile, prefix="profile"),
    ],
    row_ids=["order_id"],
    online=True,
    offline_schedule="5 * * * *",
    output_namespace="commerce",
    version=1,
)

# For training, on the three-hour grid; the daily parts are at most a day old.
training = Join(
    left=EventSource(
        table=orders.three_hourly.table,
        query=Query(selects=selects(customer_id="customer_id"), time_column="UNIX_MILLIS(last_ordered_at)"),
    ),
    right_parts=[
        JoinPart(group_by=purchases.three_hourly, prefix="block"),
        JoinPart(group_by=purchases.daily, prefix="day"),
        JoinPart(group_by=customers.profile, prefix="profile"),
    ],
    row_ids=["customer_id"],
    partition_interval="3h",
    partition_offset="1h",
    offline_schedule="15 1-22/3 * * *",
    output_namespace="commerce",
    version=1,
)
