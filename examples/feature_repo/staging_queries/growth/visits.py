"""Visits to the web shop: a weekly roll-up and a trailing week."""

from ai.chronon.types import StagingQuery, TableDependency

# Weekly is a schedule, not a grid: each Monday's run writes the seven daily partitions of the week before.
weekly = StagingQuery(
    query="""
        SELECT customer_id, channel, COUNT(*) AS visits, MAX(visited_at) AS last_visited_at, ds
        FROM web.visits
        WHERE ds BETWEEN {{ start_date }} AND {{ end_date }}
        GROUP BY customer_id, channel, ds
    """,
    version=1,
    output_namespace="growth",
    offline_schedule="0 6 * * MON",
    dependencies=[TableDependency(table="web.visits", partition_column="ds")],
)

# Each day counts the visits of the seven days that end with it, so the run looks back six days further than it writes.
trailing_week = StagingQuery(
    query="""
        WITH days AS (
            SELECT DISTINCT ds FROM web.visits WHERE ds BETWEEN {{ start_date }} AND {{ end_date }}
        )
        SELECT v.customer_id, COUNT(*) AS visits, COUNT(DISTINCT v.ds) AS active_days, d.ds
        FROM days AS d
        JOIN web.visits AS v
            ON v.ds BETWEEN DATE_FORMAT(DATE_SUB(TO_DATE(d.ds), 6), 'yyyy-MM-dd') AND d.ds
        GROUP BY v.customer_id, d.ds
    """,
    version=1,
    output_namespace="growth",
    offline_schedule="45 0 * * *",
    dependencies=[TableDependency(table="web.visits", partition_column="ds", start_offset=6, end_offset=0)],
)
