"""Sections whose key ``kind`` decides what else may stand in them: ``catalog`` and ``runner``.

A section is kept as it was written, ``${NAME}`` not filled in, since it stands in serialised DAGs and a conf may lay a few
keys over it. What a kind allows is judged once sections are merged and filled in: when the settings are read, and again
where they are used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from airflow_chronon.core.settings.problems import Problem, problems_of, unknown_name
from airflow_chronon.core.settings.values import Strict
from airflow_chronon.core.settings.variables import filled, unfilled_template
from airflow_chronon.errors import Rejected

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})  #: an environment that holds nothing


class Section(BaseModel):
    """A section as it was written; its further keys are the kind's own."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    kinds: ClassVar[Kinds[Any]]


def over(section: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """A section with the keys of a later one laid over it; another ``kind`` keeps nothing of the first."""
    is_other_kind = "kind" in later and later["kind"] != section.get("kind", later["kind"])
    return dict(later) if is_other_kind else {**section, **later}


class KindSettings(Strict):
    """A whole section of one kind, filled in. Each kind is a class with ``kind: Literal[its name] = its name``."""

    #: The keys whose texts have placeholders in braces: they are judged as they are written, and filled in with those.
    templates: ClassVar[frozenset[str]] = frozenset()

    @property
    def given(self) -> dict[str, Any]:
        """What was said beside ``kind``, for the class that does what these settings describe."""
        said = {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}
        return {name: value for name, value in said.items() if value is not None}


_Kind = TypeVar("_Kind", bound=KindSettings)


class Kinds(Generic[_Kind]):
    """Every kind of one section."""

    def __init__(self, section: str, *models: type[_Kind]) -> None:
        self._section = section
        self._models = {str(model.model_fields["kind"].default): model for model in models}

    def __iter__(self) -> Iterator[str]:
        """Their names."""
        return iter(self._models)

    @property
    def models(self) -> tuple[type[_Kind], ...]:
        """One per kind."""
        return tuple(self._models.values())

    def read(self, section: Mapping[str, object], environ: Mapping[str, str] = NO_VARIABLES) -> _Kind:
        """The settings of the kind that a section names, filled in.

        Raises :class:`airflow_chronon.errors.Rejected` with every fault; the section is quoted as it is written (S4).
        """
        found, problems = self._judged(section, environ, ())
        if found is None:
            raise Rejected(problem.under(self._section).fault() for problem in problems)
        return found

    def problems(
        self, section: Mapping[str, object], environ: Mapping[str, str] = NO_VARIABLES, *, beside: Collection[str] = ()
    ) -> list[Problem]:
        """What is wrong with a section once it is filled in, by the paths of its keys, quoted as it is written (S4).

        ``beside`` are keys that it may have for any kind.
        """
        return self._judged(section, environ, beside)[1]

    def takes(self, section: Mapping[str, object], key: str) -> bool:
        """Whether the kind that a section names has this key."""
        model = self._models.get(str(section.get("kind")))
        return model is not None and key in model.model_fields

    def _judged(
        self, section: Mapping[str, object], environ: Mapping[str, str], beside: Collection[str]
    ) -> tuple[_Kind | None, list[Problem]]:
        kind = section.get("kind")  # never filled in: it decides what else may stand there
        if not isinstance(kind, str) or kind not in self._models:
            message, remedy = f"the {self._section} kind {kind!r} is not known", f"use {' or '.join(self._models)}"
            return None, [unknown_name(("kind",), message, name=str(kind), known=self._models, remedy=remedy)]
        model = self._models[kind]
        values = {
            key: unfilled_template(value) if key in model.templates else filled(value, environ)
            for key, value in section.items()
        }
        try:
            return model.model_validate(values), []
        except ValidationError as error:
            return None, problems_of(error, model, written=section, beside=beside)
