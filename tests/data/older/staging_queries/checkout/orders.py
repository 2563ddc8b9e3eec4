from ai.chronon.api.ttypes import MetaData, StagingQuery

_SQL = "SELECT * FROM raw.orders WHERE ds BETWEEN '{{ start_date }}' AND '{{ end_date }}'"


def _query(dependencies, **meta):
    return StagingQuery(query=_SQL, startPartition="2026-01-01", metaData=MetaData(dependencies=dependencies, outputNamespace="checkout_features", **meta))


cleaned = _query(["raw.orders/ds={{ ds }}"])
late_hour = _query(["raw.orders_hourly/ds={{ ds }}/hr=23:00"])
nodash = _query(["raw.payments/day={{ ds_nodash }}"])
behind = _query(["raw.settlements/ds={{ macros.ds_add(ds, -2) }}", "raw.fees/ds={{ ds }}"])
weekly = _query(["raw.orders/ds={{ ds }}"], offlineSchedule="0 5 * * 1")
fixed = _query(["raw.countries/version=7"])
off = _query(["raw.orders/ds={{ ds }}"], offlineSchedule="@never")
bare = _query(None)
