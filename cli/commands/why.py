"""remem why: where something comes from, and what was derived from it.

A memory rests on the observations that it cites, an observation on its source; what cites an
observation was derived from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe
from remem.cli.names import content, snapshot
from remem.cli.plain import one_line
from remem.hooks.looking import drawn
from remem.objects import refs
from remem.objects.model import Memory, Observation
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.encode import Obj
    from remem.objects.reader import Part, Reader

STEP = "  "


def run(context: Context, *, id: str, all_collections: bool) -> int:
    """Print the lineage of one thing as a tree."""
    with snapshot(context, all_collections=all_collections) as reader:
        found = content(context, reader, id)
        object_id = found.revision or found.state.head or found.ref
        node = _node(reader, found.part, object_id, asked=True)
    if context.json:
        context.emit(node)
    else:
        for line in _lines(node, ""):
            context.out(line)
    return 0


def _node(reader: Reader, part: Part, object_id: bytes, *, asked: bool) -> Json:
    """One object with what it rests on; the one asked for also with what was derived from it."""
    ref = reader.ref_of(part, object_id)
    state = reader.state(part, ref)
    obj = describe.fetch(reader, part, object_id)
    node: Json = {
        "id": object_id.hex(),
        "ref": ref.hex(),
        "type": None if state is None else refs.TYPES[state.type],
        "kind": None,
        "status": None if state is None else refs.STATUSES[state.status],
        "truth": None if state is None else describe.truth(state),
        "text": None,
    }
    if obj is None:
        return node
    held = state is not None and refs.STATUSES[state.status] in WITHHELD
    node["kind"] = obj.kind
    node["text"] = obj.text if asked or not held else None
    if isinstance(obj, Observation):
        node["asserted_at"] = describe.stamp(obj.asserted)
        node["origin"] = obj.origin
        node["source"] = describe.source(obj.source)
        node["tool"] = "" if obj.source is None else obj.source.tool
        node["corrects"] = describe.full(obj.corrects)
    else:
        node["deriver"] = obj.deriver.name
    node["from"] = _sources(reader, part, obj) if isinstance(obj, Memory) else []
    if asked:
        node["derived"] = [
            _node(reader, part, memory.head or memory_ref, asked=False)
            for memory_ref, memory, _ in drawn(reader, part, object_id)
        ]
    return node


def _sources(reader: Reader, part: Part, obj: Obj) -> list[Json]:
    """Nodes of the observations behind a memory, each with the words that ground it."""
    nodes = []
    for cite in describe.cites(reader, part, b"", obj):
        node = _node(reader, part, bytes.fromhex(cite.id), asked=False)
        if node["text"] is not None:
            node["quote"] = cite.quote
        nodes.append(node)
    return nodes


def _lines(node: Json, indent: str) -> list[str]:
    kind = f" {one_line(str(node['kind']))}" if node["kind"] else ""
    words = node.get("quote") or node["text"]
    marks = [str(m) for m in (node["status"], node["truth"]) if m]
    status = f" ({', '.join(marks)})" if marks else ""
    text = one_line(str(words), describe.LINE) if words else "(gone or held back)"
    name = node["type"] or "unknown"
    lines = [f"{indent}{name}{kind} {str(node['id'])[:10]}{status}: {text}"]
    inner = indent + STEP
    if node["type"] == "observation" and node["text"] is not None:
        origin = [f"from {node['origin']}"]
        if node["asserted_at"]:
            origin.append(f"said {str(node['asserted_at']).replace('T', ' ')}")
        source = node["source"]
        if isinstance(source, dict):
            origin += [str(v) for v in (source["uri"], source["id"] and f"id {source['id']}") if v]
        if node["tool"]:
            origin.append(f"by {node['tool']}")
        if node["corrects"]:
            origin.append(f"corrects {str(node['corrects'])[:10]}")
        lines.append(f"{inner}source: {one_line(', '.join(origin))}")
    for name, title in (("from", "rests on"), ("derived", "derived")):
        found = node.get(name)
        if isinstance(found, list) and found:
            lines.append(f"{inner}{title}:")
            for other in found:
                lines += _lines(other, inner + STEP)
    return lines
