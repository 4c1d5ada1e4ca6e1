"""JSON Schema of a struct as clients take it: an object at the root, every reference inside."""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]
_PLACE = "#/$defs/"


def of(struct: type[msgspec.Struct], *, described: bool) -> Json:
    """The schema of a struct.

    Args:
        struct: the struct; its name stands at the root.
        described: keep what structs say of themselves; arguments are described one by one anyway.
    """
    whole = msgspec.json.schema(struct)
    places: Json = whole.pop("$defs", {})
    if "$ref" in whole:
        whole = places.pop(whole["$ref"].removeprefix(_PLACE))
    for one in (whole, *places.values()):
        one.pop("title", None)
        if not described:
            one.pop("description", None)
    if places:
        whole["$defs"] = places
    _name_types(whole)
    return whole


def _name_types(node: object) -> None:
    """Say of every choice between words that it is text: some clients want that."""
    if isinstance(node, dict):
        if "enum" in node:
            node.setdefault("type", "string")
        for inner in node.values():
            _name_types(inner)
    elif isinstance(node, list):
        for inner in node:
            _name_types(inner)
