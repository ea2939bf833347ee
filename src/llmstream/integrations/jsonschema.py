"""Arguments of tool calls against a tool's JSON Schema, by the ``jsonschema`` library (extra ``schema``).

``llmstream.check_tool_call`` comes here by itself where the library is installed.
"""

from __future__ import annotations

import json
from importlib import import_module

from ..request.values import path_of
from ..rules import ARGUMENTS_REFUSED, SCHEMA_UNUSABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

__all__ = ["schema_faults"]

MAX_FAULTS = 100
"""How many faults of one call are told."""


def schema_faults(schema: Mapping[str, Any], arguments: Any) -> Iterator[tuple[int, str, str]]:
    """Where arguments break a schema: rule, path (``arguments.days[0]``; a name that the schema does not declare is
    ``*``) and the schema's keyword.

    The schema is of the JSON Schema version that it names, or of 2020-12. No reference is fetched: one that leads
    outside of the schema makes it unusable, as does anything else that is wrong with it.
    """
    validators: Any = import_module("jsonschema.validators")
    specifications: Any = import_module("jsonschema_specifications")
    try:
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        kind.check_schema(schema)
        names = _declared(schema)
        kind = validators.extend(kind, {"uniqueItems": _unique_items})
        validator = kind(schema, registry=specifications.REGISTRY)
        for count, error in enumerate(validator.iter_errors(arguments)):
            if count == MAX_FAULTS:
                return
            path = path_of(["arguments", *error.absolute_path], names)
            yield ARGUMENTS_REFUSED, path, str(error.validator)
    except Exception:  # noqa: BLE001 (whatever it is, unchecked arguments are told and not let through)
        yield SCHEMA_UNUSABLE, "arguments", ""


def _unique_items(validator: Any, wanted: Any, items: Any, schema: Any) -> Iterator[Any]:
    """The keyword in linear time: the library compares every item with every other."""
    if not (wanted and validator.is_type(items, "array")):
        return
    keys = [json.dumps(_comparable(item), sort_keys=True) for item in items]
    if len(set(keys)) < len(keys):
        exceptions: Any = import_module("jsonschema.exceptions")
        yield exceptions.ValidationError("items are repeated")


def _comparable(value: Any) -> Any:
    """The value in a form that is the same for values that JSON Schema holds equal: 1 and 1.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, dict):
        return {name: _comparable(item) for name, item in value.items()}
    return value


def _declared(schema: Mapping[str, Any]) -> set[str]:
    """The names of all properties that a schema speaks of."""
    names = {"arguments"}
    todo: list[Any] = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            properties = item.get("properties")
            if isinstance(properties, dict):
                names.update(properties)
            todo += item.values()
        elif isinstance(item, list):
            todo += item
    return names
