"""The manifest of a deployed conf or job: all that is needed to build its DAG again once its file is gone (C23)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from airflow_chronon.core.confs.conf import Conf, ConfKey
from airflow_chronon.core.confs.documents import ConfType, read_document
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.jobs.document import Job, JobDocument
from airflow_chronon.core.jobs.resolve import JobPlan, own_settings
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.serialization import (
    any_schedule_from_json,
    any_schedule_to_json,
    schedule_from_json,
)
from airflow_chronon.core.settings.model import ConfSettings, Settings
from airflow_chronon.core.settings.yaml import StrictText, read_conf_settings
from airflow_chronon.core.waits.serialization import dependency_from_json, dependency_to_json
from airflow_chronon.errors import Rejected

Json = dict[str, Any]

OFF_TAG = "off"  #: on a DAG that is built from its manifest: it fires no more, and is kept for its last runs


_TEXTS = ("key", "family", "file", "table", "team")


@dataclass(frozen=True)
class DeployedManifest:
    """One deployed conf or job as its plan was: the raw document, its schedule, what it reads and its settings."""

    dag_id: str
    key: str  #: ``type/name``
    family: str  #: ``type/name`` without the version: what a version bump keeps
    file: str  #: relative to the conf root
    table: str
    team: str
    content: Json = field(repr=False)

    @cached_property
    def digest(self) -> str:
        """Tells a changed conf from an unchanged one."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> Json:
        """Inverse of :meth:`from_json`, but for the DAG id."""
        return {**{name: getattr(self, name) for name in _TEXTS}, "content": self.content}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, dag_id: str) -> DeployedManifest:
        """Build a manifest. Raises LookupError, TypeError or AttributeError when it is damaged."""
        texts, content = {name: data.get(name, "") for name in _TEXTS}, data["content"]
        if not all(isinstance(text, str) for text in texts.values()) or not isinstance(content.get("document"), dict):
            raise TypeError("a field of the manifest is not of its type")
        return cls(dag_id, **texts, content=content)

    @property
    def is_job(self) -> bool:
        """Whether it is of a job file."""
        return self.key.startswith("job/")

    @property
    def document(self) -> Mapping[str, Any]:
        """The conf as the compiler wrote it, or the job file."""
        found: Mapping[str, Any] = self.content["document"]
        return found


def manifest_of(plan: Plan, *, dumps: dict[int, Json] | None = None) -> DeployedManifest:
    """The manifest of a good conf or job; ``dumps`` keeps the JSON of settings that several confs share."""
    dumps, own = {} if dumps is None else dumps, plan.settings
    if id(own) not in dumps:
        dumps[id(own)] = own.model_dump(mode="json", include=set(ConfSettings.model_fields))
    content: Json = {
        "document": plan.document,
        "tags": list(plan.tags),
        "schedule": any_schedule_to_json(plan.schedule),
        "settings": dumps[id(own)],
    }
    if isinstance(plan, ConfPlan):
        content["dependencies"] = {
            mode.value: [dependency_to_json(dependency) for dependency in found]
            for mode, found in plan.dependencies.items()
        }
        content["producers"] = [[key.conf_type.value, key.name] for key in plan.producers]
    return DeployedManifest(plan.dag_id, plan.key, plan.family, plan.file, plan.table, plan.team, content)


def plan_of_manifest(manifest: DeployedManifest) -> Plan:
    """The plan of a conf or job whose file is gone: the same schedule, waits and settings, so that its last runs end
    well.

    Raises ``ChrononError`` or ValueError for a manifest that this version of the package cannot read.
    """
    return _job_of_manifest(manifest) if manifest.is_job else _conf_of_manifest(manifest)


def _conf_of_manifest(manifest: DeployedManifest) -> ConfPlan:
    content = manifest.content
    conf_type, _, name = manifest.key.partition("/")
    key = ConfKey(ConfType(conf_type), name)
    conf = Conf(key, read_document(key.conf_type, content["document"]), content["document"], manifest.file)
    return ConfPlan(
        conf=conf,
        dag_id=manifest.dag_id,
        tags=tuple(sorted({*content["tags"], OFF_TAG})),
        schedule=schedule_from_json(content["schedule"]),
        dependencies={
            Mode(mode): tuple(dependency_from_json(data) for data in found)
            for mode, found in content["dependencies"].items()
        },
        settings=ConfSettings.model_validate(content["settings"]),
        producers=tuple(ConfKey(ConfType(each), producer) for each, producer in content["producers"]),
    )


def _job_of_manifest(manifest: DeployedManifest) -> JobPlan:
    content = manifest.content
    document = JobDocument.model_validate(content["document"])
    name = manifest.family.removeprefix(f"job/{manifest.team}.")
    schedule = any_schedule_from_json(content["schedule"])
    if not isinstance(schedule, IntervalSchedule | None):
        raise ValueError("the schedule is not one of a job")
    return JobPlan(
        job=Job(manifest.team, name, manifest.file, document, StrictText(content["document"], {}, ())),
        dag_id=manifest.dag_id,
        tags=tuple(sorted({*content["tags"], OFF_TAG})),
        schedule=schedule,
        settings=ConfSettings.model_validate(content["settings"]),
    )


def settings_of_manifest(manifest: DeployedManifest, settings: Settings) -> ConfSettings:
    """What the deployment's present settings say of a conf or job that is gone, by its key, its tags and its own word."""
    own: ConfSettings | None = None
    try:
        if manifest.is_job:
            own = own_settings(JobDocument.model_validate(manifest.document))
        else:
            custom = json.loads(manifest.document.get("metaData", {}).get("customJson") or "{}")
            own = read_conf_settings(custom["airflow"], conf=manifest.key) if "airflow" in custom else None
    except (ValueError, TypeError, AttributeError, RecursionError, Rejected):
        pass  # it was good when it was deployed; a newer version may read it otherwise
    tags = manifest.content.get("tags")
    return settings.for_conf(manifest.key, tuple(tags) if isinstance(tags, list | tuple) else (), own)


def family_of(conf: Conf) -> str:
    """What all versions of a conf have in common."""
    return f"{conf.key.conf_type.value}/{conf.name_without_version}"
