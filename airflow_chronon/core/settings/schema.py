"""JSON schemas of what people write in YAML, for their editors: complete keys, allowed values, and a mark under a typo.

A schema marks what stands in the wrong place or has a wrong type. It knows nothing of what only a whole tree shows, such as a date
that lies on no grid, and it wants numbers without quotes, which the reader does not mind.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from airflow_chronon.core.settings.catalogs import CatalogSection, TableCatalogSection
from airflow_chronon.core.settings.kinds import Section
from airflow_chronon.core.settings.runners import RunnerSection
from airflow_chronon.core.settings.variables import REFERENCE_SCHEMA

_SECTIONS: tuple[type[Section], ...] = (CatalogSection, TableCatalogSection, RunnerSection)


def json_schema(model: type[BaseModel], *, title: str) -> dict[str, Any]:
    """The schema of a file that is read as ``model``."""
    kinds = {kind for section in _SECTIONS for kind in section.kinds.models}
    models = [model, *sorted(kinds, key=lambda kind: kind.__name__)]
    _, found = models_json_schema([(each, "validation") for each in models], schema_generator=_AsWritten)
    definitions = found["$defs"]
    for section in _SECTIONS:
        if section.__name__ in definitions:
            definitions[section.__name__] = _of_kinds(section, definitions)
    for kind in kinds:
        del definitions[kind.__name__]
    top = definitions.pop(model.__name__)
    return {"$schema": GenerateJsonSchema.schema_dialect, **top, "title": title, "$defs": definitions}


class _AsWritten(GenerateJsonSchema):
    """What may be written: a value whose text is turned into its type may hold ``${NAME}`` as well."""

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return _or_reference(super().int_schema(schema), schema)

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        return _or_reference(super().bool_schema(schema), schema)

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        return _or_reference(super().enum_schema(schema), schema)

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return _or_reference(super().literal_schema(schema), schema)

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # a key is its own title


def _or_reference(found: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
    return found if schema.get("strict") else {"anyOf": [found, REFERENCE_SCHEMA]}


def _of_kinds(section: type[Section], definitions: dict[str, Any]) -> dict[str, Any]:
    """A section as one of its kinds; ``kind`` may be left out, since a section may be laid over another."""
    whole = definitions[section.__name__]
    own = {name: value for name, value in whole["properties"].items() if name != "kind"}
    required = whole.get("required", [])
    choices = []
    for kind in section.kinds.models:
        properties = {**definitions[kind.__name__]["properties"], **own}
        choices.append(
            {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        )
    return {"title": section.__name__, "description": whole["description"], "anyOf": choices}
