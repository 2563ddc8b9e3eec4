from ai.chronon.types import Derivation, EventSource, Join, JoinPart, Query, selects
from group_bys.team import features

left = EventSource(table="data.left", query=Query(selects=selects(order="order_id", user="user", seller="seller", kind="kind"), time_column="ts_ms", partition_column="ds"))
PARTS = [
    JoinPart(group_by=features.everything),
    JoinPart(group_by=features.two_keys, prefix="now"),
    JoinPart(group_by=features.derived, prefix="seller", key_mapping={"seller": "user"}),
    JoinPart(group_by=features.only_derived, prefix="mean"),
    JoinPart(group_by=features.profile),
]
short = Join(left=left, right_parts=PARTS, row_ids=["order"], version=1, output_namespace="out", offline_schedule="@daily")
long = Join(left=left, right_parts=PARTS, row_ids=["order"], use_long_names=True, version=1, output_namespace="out", offline_schedule="@daily")
derived = Join(
    left=left, right_parts=PARTS[:2], row_ids=["order"], version=1, output_namespace="out", offline_schedule="@daily",
    derivations=[Derivation(name="share", expression="now_user_kind_number_sum_2h / now_user_kind_number_sum_1d"), Derivation(name="*", expression="*")],
)
