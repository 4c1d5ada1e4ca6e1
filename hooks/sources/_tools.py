"""Calls of tools and their results, rendered for reading and searching.

A call becomes its tool's name, its main input on the same line and the other inputs below.  A
value is kept whole or left out whole with its size: never cut, so that a cut cannot hide a secret
from the redaction that follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

VALUE_CHARS = 4_000  # a longer input value is left out
CALL_CHARS = 16_000  # once a rendered call has this many, further values are left out

_MAIN = (
    "command",
    "cmd",
    "file_path",
    "notebook_path",
    "path",
    "absolute_path",
    "pattern",
    "query",
    "url",
    "skill",
    "subject",
    "description",
)
_SHELLS = ("sh", "bash", "zsh", "dash", "fish")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_DEPTH = 4


def render_call(name: str, given: object) -> str:
    """Render a call of a tool.

    Args:
        name: the tool.
        given: its input: an object, a text, or nothing.

    Returns:
        For example "Grep: def subtract" and, on the next line, "path: /project".
    """
    if isinstance(given, str):
        return _render_text(name, given)
    if not isinstance(given, dict):
        return name if given is None else f"{name}: {_inline(given, 0)}"
    main = next((key for key in _MAIN if _is_main(given.get(key))), None)
    head = name if main is None else f"{name}: {_main_text(given[main])}"
    out = [head]
    size = len(head)
    over = 0
    for key, value in given.items():
        if key == main or value is None or value == "" or value == []:
            continue
        for line in _entry(str(key), value, 0):
            if size + len(line) > CALL_CHARS:
                over += 1
                continue
            out.append(line)
            size += len(line)
    if over:
        out.append(f"({over:,} further values left out)")
    return "\n".join(out)


def render_result(value: object) -> str:
    """Gather the readable text of a tool's result, whatever it is wrapped in."""
    return "\n".join(part for part in _texts(value, 0) if part.strip())


def command_text(words: list[object]) -> str:
    """Render a command given as words; of "zsh -lc COMMAND", the command."""
    texts = [str(word) for word in words]
    if len(texts) == 3 and texts[0].rsplit("/", 1)[-1] in _SHELLS and texts[1] in ("-c", "-lc"):
        return texts[2]
    import shlex

    return shlex.join(texts)


def _render_text(name: str, given: str) -> str:
    # A patch names the files that it touches; they say more than its first line does.
    files = _PATCHED.findall(given)
    head = f"{name}: {', '.join(files)}" if files else name
    if len(given) > VALUE_CHARS:
        return f"{head}\n{_left_out('input', given)}"
    if files:
        return f"{head}\n{given}"
    return f"{name}: {given}" if given.strip() else name


def _is_main(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(word, str) for word in value)
    return isinstance(value, str) and 0 < len(value) <= VALUE_CHARS


def _main_text(value: object) -> str:
    return command_text(value) if isinstance(value, list) else str(value)


def _entry(key: str, value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) > VALUE_CHARS:
            yield _left_out(key, value)
        else:
            yield f"{key}:\n{value}" if "\n" in value else f"{key}: {value}"
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        yield f"{key}:"
        for item in value:
            if isinstance(item, dict) and _is_flat(item):
                yield f"- {_inline(item, depth)}"
            elif isinstance(item, dict) and depth < _DEPTH:
                for inner, found in item.items():
                    yield from _entry(str(inner), found, depth + 1)
            else:
                yield f"- {_inline(item, depth)}"
    elif isinstance(value, dict) and value and depth < _DEPTH:
        for inner, found in value.items():
            yield from _entry(f"{key}.{inner}", found, depth + 1)
    else:
        yield f"{key}: {_inline(value, depth)}"


def _is_flat(item: dict[str, object]) -> bool:
    return all(
        not isinstance(value, dict | list) and "\n" not in str(value) for value in item.values()
    )


def _inline(value: object, depth: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if len(value) <= VALUE_CHARS else f"({len(value):,} characters left out)"
    if isinstance(value, list | dict) and depth >= _DEPTH:
        return f"({len(value)} entries left out)"
    if isinstance(value, list):
        return ", ".join(_inline(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_inline(item, depth + 1)}" for key, item in value.items())
    return "" if value is None else str(value)


def _left_out(key: str, value: str) -> str:
    return f"{key}: ({len(value):,} characters left out)"


def _texts(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth > 2 * _DEPTH:
        yield "(nested too deeply, left out)"
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, dict):
        kind = value.get("type")
        if kind in ("image", "input_image", "image_url"):
            yield "[image]"
            return
        for key in (
            "functionResponse",
            "response",
            "output",
            "content",
            "text",
            "summary",
            "error",
        ):
            if value.get(key):
                yield from _texts(value[key], depth + 1)
                return
        flat = {key: item for key, item in value.items() if not isinstance(item, dict | list)}
        if flat:
            yield _inline(flat, 0)
    elif value is not None:
        yield _inline(value, 0)
