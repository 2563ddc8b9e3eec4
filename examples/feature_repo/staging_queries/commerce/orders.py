"""Orders: hourly, in three-hour blocks that start at 01:00, and daily.

Every conf names its `output_namespace`: a table reference that another team takes is then right once compiled, too.
"""

from ai.chronon.types import StagingQuery, TableDependency

# The shop system lands orders by the hour; the job waits five minutes for stragglers.
hourly = StagingQuery(
    query="""
        SELECT order_id, customer_id, product, quantity, amount_cents, ordered_at, ds
        FROM shop.orders
        WHERE ds BETWEEN {{ start_date }} AND {{ end_date }} AND quantity > 0
    """,
    version=1,
    output_namespace="commerce",
    offline_schedule="5 * * * *",
    dependencies=[TableDependency(table="shop.orders", partition_column="ds", partition_interval="1h")],
)

# Boundaries at 01:00, 04:00, ... 22:00: the shifts of the packing hall. One block reads three whole hours, and
# finds their label by taking an hour off, flooring to three hours, and putting the hour back.
three_hourly = StagingQuery(
    query=f"""
        WITH placed AS (
            SELECT customer_id, amount_cents, ordered_at, ordered_at - INTERVAL '1' HOUR AS shifted
            FROM {hourly.table}
            WHERE ds >= {{{{ start_date }}}}
        ),
        labelled AS (
            SELECT
                customer_id, amount_cents, ordered_at,
                CONCAT(
                    DATE_FORMAT(shifted, 'yyyy-MM-dd-'),
                    LPAD(CAST(CAST(FLOOR(HOUR(shifted) / 3) * 3 + 1 AS INT) AS STRING), 2, '0'),
                    '-00'
                ) AS ds
            FROM placed
        )
        SELECT
            customer_id,
            COUNT(*) AS orders,
            SUM(amount_cents) AS amount_cents,
            MAX(ordered_at) AS last_ordered_at,
            ds
        FROM labelled
        WHERE ds BETWEEN {{{{ start_date }}}} AND {{{{ end_date }}}}
        GROUP BY customer_id, ds
    """,
    version=1,
    output_namespace="commerce",
    partition_interval="3h",
    partition_offset="1h",
    offline_schedule="15 1-22/3 * * *",
    dependencies=[TableDependency(table=hourly.table)],
)

# A day reads twenty-four hourly partitions, half an hour after the last one closed.
daily = StagingQuery(
    query="""
        WITH labelled AS (
            SELECT
                order_id, customer_id, product, quantity, amount_cents, ordered_at,
                DATE_FORMAT(ordered_at, 'yyyy-MM-dd') AS ds
            FROM shop.orders
            WHERE ds >= {{ start_date }} AND quantity > 0
        )
        SELECT order_id, customer_id, product, quantity, amount_cents, ordered_at, ds
        FROM labelled
        WHERE ds BETWEEN {{ start_date }} AND {{ end_date }}
    """,
    version=1,
    output_namespace="commerce",
    offline_schedule="30 0 * * *",
    dependencies=[TableDependency(table="shop.orders", partition_column="ds", partition_interval="1h")],
)
