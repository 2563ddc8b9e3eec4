"""Customers: a daily snapshot from a system with labels of its own, and what each customer spent."""

from ai.chronon.types import StagingQuery, TableDependency

from staging_queries.commerce import orders

# The customer system writes `dt=20260601`; from here on the label is `ds=2026-06-01`.
daily = StagingQuery(
    query="""
        WITH labelled AS (
            SELECT
                customer_id, name, tier, country, signed_up_on,
                DATE_FORMAT(TO_DATE(dt, 'yyyyMMdd'), 'yyyy-MM-dd') AS ds
            FROM crm.customers
        )
        SELECT customer_id, name, tier, country, signed_up_on, ds
        FROM labelled
        WHERE ds BETWEEN {{ start_date }} AND {{ end_date }}
    """,
    version=1,
    output_namespace="growth",
    offline_schedule="0 1 * * *",
    dependencies=[TableDependency(table="crm.customers", partition_column="dt", partition_format="yyyyMMdd")],
)

# Reads a table of the other team through its reference: `output_namespace` over there makes it the right one. Import
# the module, not the conf: under another name here, the conf's `.table` would take that name.
spend = StagingQuery(
    query=f"""
        SELECT
            c.customer_id,
            c.tier,
            COUNT(o.order_id) AS orders,
            COALESCE(SUM(o.amount_cents), 0) AS amount_cents,
            c.ds
        FROM {daily.table} AS c
        LEFT JOIN {orders.daily.table} AS o ON o.customer_id = c.customer_id AND o.ds = c.ds
        WHERE c.ds BETWEEN {{{{ start_date }}}} AND {{{{ end_date }}}}
        GROUP BY c.customer_id, c.tier, c.ds
    """,
    version=1,
    output_namespace="growth",
    offline_schedule="0 2 * * *",
    dependencies=[
        TableDependency(table=daily.table, partition_column="ds"),
        TableDependency(table=orders.daily.table, partition_column="ds"),
    ],
)
