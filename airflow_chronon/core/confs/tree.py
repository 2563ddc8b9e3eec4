"""The confs of one deployed tree, and who writes what in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from airflow_chronon.core.confs.conf import Conf, ConfKey, output_spec
from airflow_chronon.core.confs.documents import ConfType, GroupBy
from airflow_chronon.core.confs.producers import ProducerIndex
from airflow_chronon.core.partitions.labels import PartitionSpec
from airflow_chronon.core.settings.model import Environment

_ORDER = {ConfType.GROUP_BY: 0, ConfType.JOIN: 1, ConfType.STAGING_QUERY: 2}


class ConfTree:
    """Every readable conf, in an order that does not depend on the disk."""

    def __init__(self, confs: Iterable[Conf], *, environment: Environment = Environment.PROD) -> None:
        ordered = sorted(confs, key=lambda conf: (_ORDER[conf.key.conf_type], conf.file))
        self.confs: Mapping[ConfKey, Conf] = {conf.key: conf for conf in ordered}
        self.environment = environment

    @cached_property
    def producers(self) -> ProducerIndex:
        return ProducerIndex(self.confs.values())

    def part_spec(self, group_by: GroupBy) -> PartitionSpec:
        """The output of a join's right part: the tree's own GroupBy, else the copy inside the join. Raises ``ChrononError``."""
        conf = self.confs.get(ConfKey(ConfType.GROUP_BY, group_by.meta_data.name))
        return conf.spec if conf is not None else output_spec(group_by.meta_data)
