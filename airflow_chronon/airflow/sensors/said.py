"""What people have said of the partitions that waits on a table miss, asked through the triggerer's own supervisor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow.sdk.execution_time.comms import GetAssetStateStoreByName

from airflow_chronon.airflow.sensors.supervisor import Supervisor
from airflow_chronon.core.waits.dependencies import Wait
from airflow_chronon.core.waits.poll import Observation, missing_texts
from airflow_chronon.core.waits.said import SAID_ASSET, Said, Word, partition_key, read_word, table_key

_LOG = logging.getLogger(__name__)
MOST_ASKED = 500  #: missing partitions of one table at a poll, the newest; each is one question


class SaidOfTable:
    """The words about one table, poll by poll. One question a poll while nobody has said anything new of it."""

    def __init__(self, table: str, supervisor: Supervisor) -> None:
        self._table, self._supervisor = table, supervisor
        self._token: Any = None
        self._words: dict[str, Word | None] = {}
        self._trouble = ""

    async def complete(self, observation: Observation, waits: Iterable[Wait]) -> Observation:
        """The observation with what was said of the partitions that these waits miss. Airflow that does not answer says nothing."""
        if observation.trouble:
            return observation
        # years of minutes take a moment
        lacking = await asyncio.to_thread(missing_texts, waits, observation)
        if not lacking:
            return observation
        missing = sorted(lacking, reverse=True)[:MOST_ASKED]
        try:
            token = await self._kept(table_key(self._table))
            if token is None:
                return observation
            if token != self._token:
                self._token, self._words = token, {}
            for label in missing:
                if label not in self._words:
                    self._words[label] = read_word(await self._kept(partition_key(self._table, label)))
        except Exception as error:  # whatever a supervisor answers that cannot
            if (text := f"{type(error).__name__}: {error}") != self._trouble:
                self._trouble = text
                _LOG.warning("Airflow does not tell what was said of %s: %s", self._table, text[:500])
            return observation
        said: Mapping[str, Said] = {label: word.said for label in missing if (word := self._words[label]) is not None}
        return replace(observation, said=said) if said else observation

    async def _kept(self, key: str) -> Any:
        answer: Any = await self._supervisor.asend(GetAssetStateStoreByName(name=SAID_ASSET, key=key))
        return getattr(answer, "value", None)  # where there is none, the answer is an error without one
