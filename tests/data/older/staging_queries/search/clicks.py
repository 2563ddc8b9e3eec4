from ai.chronon.api.ttypes import MetaData, StagingQuery

_SQL = "SELECT * FROM raw.clicks WHERE ds BETWEEN '{{ start_date }}' AND '{{ end_date }}'"

sessions = StagingQuery(
    query=_SQL,
    metaData=MetaData(dependencies=["raw.clicks/ds={{ ds }}/system=mobile", "raw.clicks/ds={{ ds }}/system=web"], outputNamespace="search_features", offlineSchedule="30 2 * * *"),
)
of_orders = StagingQuery(query=_SQL, metaData=MetaData(dependencies=["checkout_features.checkout_orders_cleaned/ds={{ ds }}"], outputNamespace="search_features"))
monthly = StagingQuery(query=_SQL, metaData=MetaData(dependencies=["raw.clicks/ds={{ macros.ds_add(ds, 1) }}"], outputNamespace="search_features", offlineSchedule="0 0 1 * *"))
