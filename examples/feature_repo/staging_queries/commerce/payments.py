"""Payments: a table that lands all the time, cut into quarters of an hour."""

from ai.chronon.types import StagingQuery, TableDependency

# `shop.payments` has no partitions: `paid_at` says how far it has landed, so a quarter is ready once a payment at or
# after its end is there.
quarter_hourly = StagingQuery(
    query="""
        WITH labelled AS (
            SELECT
                payment_id, order_id, customer_id, method, amount_cents, paid_at,
                CONCAT(
                    DATE_FORMAT(paid_at, 'yyyy-MM-dd-HH-'),
                    LPAD(CAST(CAST(FLOOR(MINUTE(paid_at) / 15) * 15 AS INT) AS STRING), 2, '0')
                ) AS ds
            FROM shop.payments
        )
        SELECT payment_id, order_id, customer_id, method, amount_cents, paid_at, ds
        FROM labelled
        WHERE ds BETWEEN {{ start_date }} AND {{ end_date }}
    """,
    version=1,
    output_namespace="commerce",
    offline_schedule="3/15 * * * *",
    dependencies=[TableDependency(table="shop.payments", partition_column="paid_at", time_partitioned=True)],
)
