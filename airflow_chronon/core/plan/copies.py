"""Copies of deployed confs: all that is needed to build a conf's DAG again once its file is gone (C23)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from airflow_chronon.core.conf import Conf, ConfKey, Mode
from airflow_chronon.core.documents import ConfType, read_document
from airflow_chronon.core.resolve import ConfPlan
from airflow_chronon.core.settings import ConfSettings, Settings
from airflow_chronon.core.settings_text import read_conf_settings
from airflow_chronon.core.wire import dependency_from_json, dependency_to_json, schedule_from_json, schedule_to_json
from airflow_chronon.errors import Rejected

Json = dict[str, Any]

OFF_TAG = "off"  #: on a DAG that is built from its copy: it fires no more, and is kept for its last runs


@dataclass(frozen=True)
class ConfCopy:
    """One deployed conf as its plan was: the raw document, its schedule, what it reads and its settings."""

    dag_id: str
    key: str  #: ``type/name``
    family: str  #: ``type/name`` without the version: what a version bump keeps
    file: str  #: relative to the conf root
    table: str
    team: str
    content: Json = field(repr=False)

    @cached_property
    def digest(self) -> str:
        """Tells a changed copy from an unchanged one."""
        return hashlib.sha256(self.to_bytes()).hexdigest()[:16]

    def to_bytes(self) -> bytes:
        """Inverse of :func:`copy_from_bytes`; equal confs give equal bytes."""
        names = ("dag_id", "key", "family", "file", "table", "team", "content")
        return json.dumps({name: getattr(self, name) for name in names}, sort_keys=True, ensure_ascii=False).encode()

    @property
    def document(self) -> Mapping[str, Any]:
        """The conf as the compiler wrote it."""
        found: Mapping[str, Any] = self.content["document"]
        return found


def copy_of(plan: ConfPlan, *, dumps: dict[int, Json] | None = None) -> ConfCopy:
    """The copy to keep of a good conf; ``dumps`` keeps the JSON of settings that several confs share."""
    dumps = {} if dumps is None else dumps
    conf, own = plan.conf, plan.settings
    if id(own) not in dumps:
        dumps[id(own)] = own.model_dump(mode="json", include=set(ConfSettings.model_fields))
    content = {
        "document": conf.raw,
        "tags": list(plan.tags),
        "schedule": schedule_to_json(plan.runs),
        "dependencies": {
            mode.value: [dependency_to_json(dependency) for dependency in found]
            for mode, found in plan.dependencies.items()
        },
        "settings": dumps[id(own)],
        "producers": [[key.conf_type.value, key.name] for key in plan.producers],
    }
    return ConfCopy(plan.dag_id, str(conf.key), family_of(conf), conf.file, conf.table, conf.meta.team, content)


def copy_from_bytes(data: bytes) -> ConfCopy:
    """Read a copy. Raises ValueError, KeyError or TypeError when it is damaged."""
    return ConfCopy(**json.loads(data))


def plan_of_copy(copy: ConfCopy) -> ConfPlan:
    """The plan of a conf whose file is gone: the same schedule, waits and settings, so that its last runs end well.

    Raises ``ChrononError`` or ValueError for a copy that this version of the package cannot read.
    """
    content = copy.content
    conf_type, _, name = copy.key.partition("/")
    key = ConfKey(ConfType(conf_type), name)
    conf = Conf(key, read_document(key.conf_type, content["document"]), content["document"], copy.file)
    runs = schedule_from_json(content["schedule"])
    return ConfPlan(
        conf=conf,
        dag_id=copy.dag_id,
        tags=tuple(sorted({*content["tags"], OFF_TAG})),
        spec=runs.spec,
        runs=runs,
        dependencies={
            Mode(mode): tuple(dependency_from_json(data) for data in found)
            for mode, found in content["dependencies"].items()
        },
        settings=ConfSettings.model_validate(content["settings"]),
        producers=tuple(ConfKey(ConfType(each), producer) for each, producer in content["producers"]),
    )


def settings_of_copy(copy: ConfCopy, settings: Settings) -> ConfSettings:
    """What the deployment's present settings say of a conf that is gone, by its key, its tags and its own word."""
    own: ConfSettings | None = None
    try:
        custom = json.loads(copy.document.get("metaData", {}).get("customJson") or "{}")
        own = read_conf_settings(custom["airflow"], conf=copy.key) if "airflow" in custom else None
    except (ValueError, TypeError, Rejected):
        pass  # it was good when it was deployed; a newer version may read it otherwise
    return settings.for_conf(copy.key, tuple(copy.content["tags"]), own)


def family_of(conf: Conf) -> str:
    """What all versions of a conf have in common."""
    return f"{conf.key.conf_type.value}/{conf.name_without_version}"
