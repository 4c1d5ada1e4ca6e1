"""Scope patterns and capabilities: how they are written and what they cover.

Source: remem-principal(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects.errors import UsageError
from remem.objects.scope import TOKEN_PREFIX, check_name

if TYPE_CHECKING:
    from collections.abc import Iterable

CAPABILITIES = ("read", "write", "propose", "review")
PARTS = ("tenant", "profile", "collection", "agent", "session")
ALL = "*"

_ESCAPES = (("%", "%25"), ("/", "%2F"), ("*", "%2A"))


class Pattern(msgspec.Struct, frozen=True, array_like=True):
    """A scope with parts left open: None stands for every collection, agent or session."""

    tenant: str
    profile: str
    collection: str | None = None
    agent: str | None = None
    session: str | None = None

    def covers(self, other: Pattern) -> bool:
        """True when the other one reaches nowhere that this one does not."""
        if (self.tenant, self.profile) != (other.tenant, other.profile):
            return False
        pairs = zip(_open_parts(self), _open_parts(other), strict=True)
        return all(mine in (None, theirs) for mine, theirs in pairs)

    def __str__(self) -> str:
        """The pattern as it is written: parts between slashes, ``*`` for all."""
        named = [_escaped(self.tenant), _escaped(self.profile)]
        return "/".join(named + [ALL if p is None else _escaped(p) for p in _open_parts(self)])


def parse(text: str) -> Pattern:
    """A scope pattern from ``TENANT/PROFILE/COLLECTION[/AGENT[/SESSION]]``.

    ``*`` stands for every collection, agent or session; a slash, a per cent sign or a star within a
    name is written ``%2F``, ``%25`` or ``%2A``.

    Raises:
        UsageError: it is none.
    """
    parts = text.split("/")
    if not 3 <= len(parts) <= len(PARTS):
        raise UsageError(
            f"'{text[:80]}' is no scope",
            hint="write TENANT/PROFILE/COLLECTION[/AGENT[/SESSION]]; a slash in a name is %2F",
        )
    if ALL in parts[:2]:
        raise UsageError("the tenant and the profile of a scope must be named")
    names: list[str | None] = [
        None if p == ALL else check_name(what, _plain(p))
        for what, p in zip(PARTS, parts, strict=False)
    ]
    names += [None] * (len(PARTS) - len(names))
    tenant, profile, collection, agent, session = names
    assert tenant is not None and profile is not None
    return Pattern(tenant, profile, collection, agent, session)


def capabilities(words: Iterable[str]) -> list[str]:
    """Capabilities in their order, each once.

    Raises:
        UsageError: there is none, or one is unknown.
    """
    wanted = {word.strip() for text in words for word in text.split(",") if word.strip()}
    unknown = sorted(wanted - set(CAPABILITIES))
    if unknown or not wanted:
        what = f"'{unknown[0][:40]}' is no capability" if unknown else "no capability was named"
        raise UsageError(what, hint="some of " + ", ".join(CAPABILITIES))
    return [word for word in CAPABILITIES if word in wanted]


def shown(name: str) -> str:
    """A name as a message has it; a token in its place is not repeated."""
    return "(a token)" if name.strip().startswith(TOKEN_PREFIX) else f"'{name[:80]}'"


def _open_parts(pattern: Pattern) -> tuple[str | None, str | None, str | None]:
    return pattern.collection, pattern.agent, pattern.session


def _escaped(name: str) -> str:
    for char, code in _ESCAPES:
        name = name.replace(char, code)
    return name


def _plain(part: str) -> str:
    if ALL in part:
        raise UsageError(
            f"'{part[:80]}': a star stands for a whole part", hint="a literal * is %2A"
        )
    for char, code in reversed(_ESCAPES):
        part = part.replace(code, char).replace(code.lower(), char)
    return part
