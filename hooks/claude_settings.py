"""Editing a JSON settings file in place: what is put in can be taken out again byte for byte.

The text is not parsed and written anew: members and elements are inserted behind what is there, in
the file's own indentation, and removed by the same places.  A container that was empty before gets
its content without a line break, one that is made here gets one: so it can be told which of them
goes again.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec

from remem.objects.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, object]

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\]}]+")
_SPACE = re.compile(r"\s*")
_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")


class Node(msgspec.Struct):
    """A value and where it stands.

    Attributes:
        start: of the value.
        end: behind it.
        items: of an object or an array: name (or None), where the item begins, its value.
        value: as Python has it.
    """

    start: int
    end: int
    items: list[tuple[str | None, int, Node]]
    value: object

    def member(self, name: str) -> Node | None:
        """The last member of a name, or None."""
        return next((node for key, _, node in reversed(self.items) if key == name), None)


def read(text: str, path: str) -> Node:
    """The tree of a settings file.

    Raises:
        Refused: it is no JSON object.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Refused(f"'{path}' is no JSON: {error}", hint="mend it first") from error
    if not isinstance(value, dict):
        raise Refused(f"'{path}' holds no object", hint="mend it first")
    return _node(text, _skip(text, 0))


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _node(text: str, at: int) -> Node:
    if text[at] not in "{[":
        found = (_STRING if text[at] == '"' else _SCALAR).match(text, at)
        assert found is not None
        return Node(at, found.end(), [], json.loads(found.group()))
    items: list[tuple[str | None, int, Node]] = []
    closing = "}" if text[at] == "{" else "]"
    place = _skip(text, at + 1)
    while text[place] != closing:
        start, name = place, None
        if closing == "}":
            key = _STRING.match(text, place)
            assert key is not None
            name = json.loads(key.group())
            place = _skip(text, _skip(text, key.end()) + 1)
        node = _node(text, place)
        items.append((name, start, node))
        place = _skip(text, node.end)
        if text[place] == ",":
            place = _skip(text, place + 1)
    return Node(at, place + 1, items, json.loads(text[at : place + 1]))


# -- putting in ---------------------------------------------------------------------------------


def unit(text: str) -> str:
    """One step of indentation of a file."""
    found = _INDENT.search(text)
    return "  " if found is None else found[1]


def dump(value: object, step: str, depth: int) -> str:
    """A value over several lines, as it stands at a depth."""
    lines = json.dumps(value, indent=step, ensure_ascii=False).split("\n")
    return ("\n" + step * depth).join(lines)


def append(text: str, inside: Node, value: object, *, depth: int, name: str = "") -> str:
    """Put a member (with a name) or an element at the end of a container."""
    step = unit(text)
    head = f"{json.dumps(name)}: " if name else ""
    item = head + dump(value, step, depth)
    if not inside.items:
        at = inside.start + 1
        return text[:at] + item + text[at:]
    last = inside.items[-1][2].end
    first = inside.items[0][1]
    broken = "\n" in text[inside.start : first]
    gap = "\n" + step * depth if broken else " "
    return text[:last] + "," + gap + item + text[last:]


def replace(text: str, node: Node, value: object, *, depth: int) -> str:
    """Put another value in the place of one."""
    return text[: node.start] + dump(value, unit(text), depth) + text[node.end :]


# -- taking out ---------------------------------------------------------------------------------


def remove(text: str, inside: Node, number: int) -> str:
    """Take an item of a container out, with the comma that it needed."""
    items = inside.items
    _, start, node = items[number]
    if number:
        return text[: items[number - 1][2].end] + text[node.end :]
    if len(items) > 1:
        return text[:start] + text[items[1][1] :]
    return text[: inside.start + 1] + text[node.end :]


def was_made_here(text: str, inside: Node) -> bool:
    """Whether a container with one item was made together with it."""
    return "\n" in text[inside.start : inside.items[0][1]]


def hooks_of(root: Node) -> list[tuple[str, int, int, Json]]:
    """Hooks of a settings file: event, place of the group, place in the group, the hook."""
    found: list[tuple[str, int, int, Json]] = []
    events = root.member("hooks")
    for event, _, groups in [] if events is None else events.items:
        for at, (_, _, group) in enumerate(groups.items):
            hooks = group.member("hooks")
            for place, (_, _, hook) in enumerate([] if hooks is None else hooks.items):
                if event is not None and isinstance(hook.value, dict):
                    found.append((event, at, place, hook.value))
    return found


def put(text: str, path: str, event: str, group: Json, mine: Callable[[Json], bool]) -> str:
    """A settings file with a hook for an event, once.

    Args:
        text: the file.
        path: its name, for messages.
        event: when the hook is called.
        group: a matcher with one hook.
        mine: whether a hook is of this program.
    """
    root = read(text, path)
    mines = [one for one in hooks_of(root) if one[0] == event and mine(one[3])]
    wanted = group["hooks"]
    assert isinstance(wanted, list)
    if mines:
        _, at, place, hook = mines[0]
        if hook == wanted[0]:
            return text
        node = _hook(root, event, at, place)
        return replace(text, node, wanted[0], depth=5)
    events = root.member("hooks")
    if events is None:
        return append(text, root, {event: [group]}, depth=1, name="hooks")
    _demand(events, dict, path, "hooks")
    groups = events.member(event)
    if groups is None:
        return append(text, events, [group], depth=2, name=event)
    _demand(groups, list, path, f"hooks.{event}")
    return append(text, groups, group, depth=3)


def drop(text: str, path: str, mine: Callable[[Json], bool], event: str = "") -> str:
    """A settings file without the hooks of this program (of one event)."""
    while True:
        root = read(text, path)
        mines = [one for one in hooks_of(root) if mine(one[3]) and event in ("", one[0])]
        if not mines:
            return text
        text = _drop(text, root, *mines[-1][:3])


def _drop(text: str, root: Node, event: str, at: int, place: int) -> str:
    events = root.member("hooks")
    groups = None if events is None else events.member(event)
    assert events is not None and groups is not None
    group = groups.items[at][2]
    hooks = group.member("hooks")
    assert hooks is not None
    if len(hooks.items) > 1:
        return remove(text, hooks, place)
    if len(groups.items) > 1 or not was_made_here(text, groups):
        return remove(text, groups, at)
    if len(events.items) > 1 or not was_made_here(text, events):
        return remove(text, events, [name for name, _, _ in events.items].index(event))
    return remove(text, root, [name for name, _, _ in root.items].index("hooks"))


def _hook(root: Node, event: str, at: int, place: int) -> Node:
    events = root.member("hooks")
    groups = None if events is None else events.member(event)
    assert groups is not None
    hooks = groups.items[at][2].member("hooks")
    assert hooks is not None
    return hooks.items[place][2]


def _demand(node: Node, kind: type, path: str, what: str) -> None:
    if not isinstance(node.value, kind):
        raise Refused(f"'{what}' in '{path}' is not what it should be", hint="mend it first")
