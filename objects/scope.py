"""Scopes, grants and actors: who may see and change what.

A grant is bound when the process starts.  Every read and write of the store takes one; there is no
read without it.  Agent and session narrow within a partition (tenant, profile, collection).
"""

from __future__ import annotations

import unicodedata

import msgspec

from remem.objects.errors import ScopeRefused, UsageError
from remem.objects.model import Scope

OWNER = "owner"
DEFAULT_TENANT = "local"
DEFAULT_PROFILE = "default"
DEFAULT_COLLECTION = "home"
DEFAULT_AGENT = "none"
DEFAULT_SESSION = "main"
MAX_NAME_B = 200
SURFACES = ("cli", "hook", "mcp", "cron", "api")


class Grant(msgspec.Struct, frozen=True):
    """What a principal may see.

    Attributes:
        principal: label of who acts.
        tenant: the only tenant it sees.
        profile: the only profile it sees.
        collections: the collections it sees, or None for all of this tenant and profile.
        agent: the only agent it sees, or None for all.
        session: the only session it sees, or None for all.
        writes: may add evidence.
        owner: may verify, maintain and change what others wrote.
        everything: every tenant and profile (maintenance by the owner only).
    """

    principal: str
    tenant: str
    profile: str
    collections: tuple[str, ...] | None
    agent: str | None = None
    session: str | None = None
    writes: bool = True
    owner: bool = False
    everything: bool = False

    def sees(self, tenant: str, profile: str, collection: str) -> bool:
        """True when the partition lies within the grant."""
        if self.everything:
            return True
        if tenant != self.tenant or profile != self.profile:
            return False
        return self.collections is None or collection in self.collections

    def sees_lane(self, agent: str, session: str) -> bool:
        """True when agent and session lie within the grant."""
        return self.agent in (None, agent) and self.session in (None, session)


class Actor(msgspec.Struct, frozen=True):
    """Who writes, through which surface, into which scope by default, under which grant."""

    grant: Grant
    surface: str
    scope: Scope

    def place(self, collection: str | None, agent: str | None, session: str | None) -> Scope:
        """The scope of a record that may name its own collection, agent and session.

        Raises:
            ScopeRefused: the grant does not cover it, or covers no writing.
        """
        scope = Scope(
            self.scope.tenant,
            self.scope.profile,
            check_name("collection", collection or self.scope.collection),
            check_name("agent", agent or self.scope.agent),
            check_name("session", session or self.scope.session),
        )
        grant = self.grant
        allowed = grant.writes and grant.sees(scope.tenant, scope.profile, scope.collection)
        if not allowed or not grant.sees_lane(scope.agent, scope.session):
            raise ScopeRefused(f"'{grant.principal}' may not write to this scope")
        return scope


def owner_grant(
    scope: Scope,
    *,
    collections: tuple[str, ...] | None = None,
    agent: str | None = None,
    session: str | None = None,
) -> Grant:
    """The owner's grant: own tenant and profile, this collection unless others are named."""
    return Grant(
        principal=OWNER,
        tenant=scope.tenant,
        profile=scope.profile,
        collections=(scope.collection,) if collections is None else collections,
        agent=agent,
        session=session,
        owner=True,
    )


def maintenance_grant() -> Grant:
    """The owner's grant over every partition, for verify, statistics and upkeep."""
    return Grant(OWNER, "", "", None, owner=True, everything=True)


def check_name(part: str, name: str) -> str:
    """A part of a scope as it is stored: NFC, no control characters, not blank, bounded.

    Raises:
        UsageError: it cannot be a name.
    """
    clean = unicodedata.normalize("NFC", name)
    if not clean.strip() or not clean.isprintable():
        raise UsageError(f"the {part} '{name[:80]!r}' is blank or not printable")
    if len(clean.encode("utf-8", "surrogatepass")) > MAX_NAME_B:
        raise UsageError(f"the name of the {part} is longer than {MAX_NAME_B} bytes")
    return clean
