from ai.chronon.types import Accuracy, Aggregation, Derivation, EntitySource, EventSource, GroupBy, Operation, Query, selects

SELECTED = selects(user="user", number="amount", real="amount / 3.0", word="kind", kind="kind")
PLAIN = [Operation.MIN, Operation.MAX, Operation.FIRST, Operation.LAST, Operation.UNIQUE_COUNT, Operation.APPROX_UNIQUE_COUNT,
         Operation.COUNT, Operation.SUM, Operation.AVERAGE, Operation.VARIANCE, Operation.SKEW, Operation.KURTOSIS, Operation.HISTOGRAM]
WITH_K = [Operation.LAST_K(3), Operation.FIRST_K(4), Operation.TOP_K(5), Operation.BOTTOM_K(6), Operation.APPROX_FREQUENT_K(7),
          Operation.APPROX_HEAVY_HITTERS_K(8), Operation.UNIQUE_TOP_K(9), Operation.APPROX_PERCENTILE([0.1, 0.5])]
source = EventSource(table="data.events", query=Query(selects=SELECTED, time_column="ts_ms", partition_column="ds", start_partition="2026-05-01"))
everything = GroupBy(
    sources=[source], keys=["user"], accuracy=Accuracy.SNAPSHOT, version=1, output_namespace="out", offline_schedule="@daily",
    aggregations=[Aggregation(input_column="number", operation=op, windows=["1d", "30d"]) for op in PLAIN + WITH_K]
    + [Aggregation(input_column="real", operation=op) for op in (Operation.SUM, Operation.LAST_K(2))]
    + [Aggregation(input_column="number", operation=op, windows=["1d"], buckets=["kind", "word"]) for op in (Operation.SUM, Operation.TOP_K(2))]
    + [Aggregation(input_column="number", operation=Operation.COUNT, windows=["7d"], filter="kind = 'a'", column_alias="only_a")],
)
two_keys = GroupBy(
    sources=[source], keys=["user", "kind"], accuracy=Accuracy.TEMPORAL, version=2, output_namespace="out", offline_schedule="@daily",
    aggregations=[Aggregation(input_column="number", operation=Operation.SUM, windows=["15m", "2h", "1d"])],
)
derived = GroupBy(
    sources=[source], keys=["user"], accuracy=Accuracy.SNAPSHOT, version=1, output_namespace="out", offline_schedule="@daily",
    aggregations=[Aggregation(input_column="number", operation=op, windows=["1d"]) for op in (Operation.SUM, Operation.COUNT)],
    derivations=[Derivation(name="mean", expression="number_sum_1d / number_count_1d"), Derivation(name="renamed", expression="number_sum_1d"), Derivation(name="*", expression="*")],
)
only_derived = GroupBy(
    sources=[source], keys=["user"], accuracy=Accuracy.SNAPSHOT, version=1, output_namespace="out", offline_schedule="@daily",
    aggregations=[Aggregation(input_column="number", operation=op, windows=["1d"]) for op in (Operation.SUM, Operation.COUNT)],
    derivations=[Derivation(name="mean", expression="number_sum_1d / number_count_1d")],
)
profile = GroupBy(
    sources=[EntitySource(snapshot_table="data.users", query=Query(selects=selects(user="user", tier="tier"), partition_column="ds"))],
    keys=["user"], aggregations=None, version=1, output_namespace="out", offline_schedule="@daily",
)
