"""What is known of a customer, and how engaged they are."""

from ai.chronon.types import Accuracy, Aggregation, EntitySource, EventSource, GroupBy, Operation, Query, selects
from staging_queries.growth import customers

profile = GroupBy(
    sources=[
        EntitySource(
            snapshot_table=customers.daily.table,
            query=Query(selects=selects(customer_id="customer_id", tier="tier", country="country")),
        )
    ],
    keys=["customer_id"],
    aggregations=None,
    online=True,
    offline_schedule="0 1 * * *",
    online_schedule="0 1 * * *",
    output_namespace="growth",
    version=1,
)

# Two schedules on one grid: uploaded every day, backfilled on Mondays, seven days at a time.
engagement = GroupBy(
    sources=[
        EventSource(
            table="web.visits",
            query=Query(
                selects=selects(customer_id="customer_id", pages="pages"),
                time_column="UNIX_MILLIS(visited_at)",
                partition_column="ds",
            ),
        )
    ],
    keys=["customer_id"],
    aggregations=[Aggregation(input_column="pages", operation=Operation.SUM, windows=["7d"])],
    accuracy=Accuracy.SNAPSHOT,
    online=True,
    offline_schedule="0 6 * * MON",
    online_schedule="@daily",
    output_namespace="growth",
    version=1,
)
