"""Scopes, grants and actors: who may see and change what.

A grant is bound when the process starts.  Every read and write of the store takes one; there is no
read without it.  Agent and session narrow within a partition (tenant, profile, collection).  The
grants of principals other than the owner come from `remem.objects.principals`.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import msgspec

from remem.objects.errors import ScopeRefused, UsageError
from remem.objects.model import Scope

if TYPE_CHECKING:
    from remem.objects.admit import Admitted
    from remem.objects.keys import Signer

OWNER = "owner"
UNKNOWN = "unknown"  # who could not say who it is
DERIVER = "deriver"  # the store's own work: deriving
CONSOLIDATION = "consolidation"  # the store's own work: drafting while nobody types
BUILT_IN = frozenset((DERIVER, CONSOLIDATION))
TOMBSTONE = "tombstone"  # reason code of what was forgotten here
RESERVED = frozenset((OWNER, UNKNOWN, *BUILT_IN))  # no principal can have these names
DEFAULT_TENANT = "local"
DEFAULT_PROFILE = "default"
DEFAULT_COLLECTION = "home"
DEFAULT_AGENT = "none"
DEFAULT_SESSION = "main"
MAX_NAME_B = 200
TOKEN_PREFIX = "remem_"  # of the tokens of principals
_TOKEN_CHARS = 43  # behind it, at least
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
        writes: may add evidence, and change what it wrote itself.
        owner: may verify, maintain and change what others wrote.
        everything: every tenant and profile (maintenance by the owner only).
        reads: sees what lies within the grant; without it nothing is there to see.
        proposes: may write drafts, on which others decide.
        reviews: may decide on what others proposed and on what is held back.
        number: number of the principal in the store, 0 where it has none (the owner).
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
    reads: bool = True
    proposes: bool = False
    reviews: bool = False
    number: int = 0

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

    @property
    def changes(self) -> bool:
        """May change the store at all; what exactly, `remem.objects.authorship` says."""
        return self.owner or self.writes or self.proposes or self.reviews

    def word(self, origin: str) -> str:
        """Whose word it is that this principal hands in: never the owner's but by the owner."""
        return "agent" if origin == "owner" and not self.owner else origin


class Actor(msgspec.Struct, frozen=True):
    """Who writes, through which surface, into which scope by default, under which grant.

    Attributes:
        signer: the owner's unlocked key, where what is done needs a signature.
    """

    grant: Grant
    surface: str
    scope: Scope
    signer: Signer | None = None

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
        proposes=True,
        reviews=True,
    )


def maintenance_grant() -> Grant:
    """The owner's grant over every partition, for verify, statistics and upkeep."""
    return Grant(OWNER, "", "", None, owner=True, everything=True, proposes=True, reviews=True)


def told(grant: Grant, admitted: Admitted) -> Admitted:
    """What a principal learns of an admission.

    One that may not read must not find out by writing what is there, or what was forgotten: its
    texts are always new to it, and their receipts plain.
    """
    if grant.reads:
        return admitted
    if admitted.status == "blocked" and admitted.receipt.codes != [TOMBSTONE]:
        return admitted  # what the gate says of the text itself
    plain = msgspec.structs.replace(admitted.receipt, status="provisional", codes=[])
    return msgspec.structs.replace(admitted, status="new", receipt=plain)


def check_name(part: str, name: str) -> str:
    """A part of a scope as it is stored: NFC, no control characters, not blank, bounded.

    Names are kept and shown in clear, so a token given in place of one is refused and not repeated.

    Raises:
        UsageError: it cannot be a name.
    """
    bare = name.strip()
    if bare.startswith(TOKEN_PREFIX) and len(bare) >= len(TOKEN_PREFIX) + _TOKEN_CHARS:
        raise UsageError(f"a token cannot be the name of the {part}")
    clean = unicodedata.normalize("NFC", name)
    if not clean.strip() or not clean.isprintable():
        raise UsageError(f"the {part} {name[:80]!r} is blank or not printable")
    if len(clean.encode("utf-8", "surrogatepass")) > MAX_NAME_B:
        raise UsageError(f"the name of the {part} is longer than {MAX_NAME_B} bytes")
    return clean
