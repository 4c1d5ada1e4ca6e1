"""Errors of the store: one base class, an exit code on each class, a hint with a way out.

The message says what went wrong, lower case, without a full stop, the subject in single quotes.
The hint says what to do about it.  Exit codes are those of remem(1), EXIT STATUS.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs more than the rest of a short command
if TYPE_CHECKING:
    from typing import ClassVar, Self


class RememError(Exception):
    """Base of every error that a person may see.

    Attributes:
        exit_code: process exit status for this kind of error.
        kind: stable word for scripts, see remem(1), OUTPUT.
        hint: what to do about it, or an empty string.
    """

    exit_code: ClassVar[int] = 5
    kind: ClassVar[str] = "error"
    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        """Keep the message and the hint (the class's own hint when none is given)."""
        super().__init__(message)
        self.hint = hint or self.default_hint


class PartMissing(RememError):
    """Another program, or a package that is not always there, is not installed."""

    kind = "missing_part"


class NotFound(RememError):
    """Nothing matched: an unknown id and an id of another scope answer alike."""

    kind = "not_found"
    exit_code = 1


class UsageError(RememError):
    """The command's words are wrong."""

    kind = "usage"
    exit_code = 2


class AmbiguousId(UsageError):
    """A prefix that names several objects of the granted scopes."""

    kind = "ambiguous"


class BadTime(UsageError):
    """A time that does not parse."""

    kind = "bad_time"
    default_hint = "write 2026-03-01, 2026-03-01T09:30:00Z, @1700000000 or '2 days ago'"


class BadInput(UsageError):
    """Text or a file that cannot be taken as it is (empty, not UTF-8, too large)."""

    kind = "bad_input"


class BadConfig(UsageError):
    """A settings file that does not parse or a setting that is not known."""

    kind = "bad_config"


class Refused(RememError):
    """The store could, but must not: scope, tombstone, hold, review."""

    kind = "refused"
    exit_code = 3
    refusal: tuple[str, str, int, bytes | None] | None = None

    def audited(self, action: str, outcome: str, part: int, ref: bytes | None) -> Self:
        """Ask for an audit row of this refusal, written once the change has been undone."""
        self.refusal = (action, outcome, part, ref)
        return self


class ScopeRefused(Refused):
    """The principal holds no grant for what was asked."""

    kind = "scope"


class ReviewRefused(Refused):
    """Who produced something does not decide on it, and neither does who may not review."""

    kind = "review"
    default_hint = "ask the owner of the store to decide: 'remem review'"


class Stale(Refused):
    """What an operation of a draft was made for has changed since; it was not applied."""

    kind = "stale"
    default_hint = "'remem draft show' tells what changed; it can be proposed again"


class Blocked(Refused):
    """A tombstone keeps this value from coming back."""

    kind = "blocked"
    default_hint = "it was forgotten here; 'remem tombstones' lists what blocks"


class Forgotten(Refused):
    """What was asked for was forgotten: its bytes are gone or wait for a purge."""

    kind = "forgotten"
    default_hint = "'remem tombstones' lists what was forgotten here"


class HeadMoved(Refused):
    """Compare-and-set failed: another change came first."""

    kind = "head_moved"
    default_hint = "read the ref again with 'remem show' and repeat the change on its new head"


class IntegrityError(RememError):
    """Bytes that do not match their id, chain or format."""

    kind = "integrity"
    exit_code = 4
    default_hint = "run 'remem verify' to see everything that does not match"


class StoreError(RememError):
    """The store or the disk below it does not do what was asked."""

    kind = "store"


class StoreMissing(StoreError):
    """There is no store where one was looked for."""

    kind = "no_store"
    default_hint = "the first 'remem add' or 'remem init' makes one"


class StoreLocked(StoreError):
    """Another process holds a lock for longer than the time allowed."""

    kind = "locked"


class StoreFull(StoreError):
    """The disk or the map limit is exhausted; nothing of the failed change was kept."""

    kind = "full"
    default_hint = "free some space (or raise disk.max_map_gib in config.toml) and run it again"


class StoreReadOnly(StoreError):
    """A write to a store that this user cannot write."""

    kind = "read_only"
    default_hint = "check who owns the folder, or choose another store with --store"


class StoreCorrupt(StoreError):
    """LMDB or a format file says that the bytes on disk are not a store."""

    kind = "corrupt"
    default_hint = "restore canon/ from a backup; 'remem doctor' shows what can still be read"


class NewerFormat(StoreError):
    """The store was written by a later version."""

    kind = "newer_format"
    default_hint = "install a newer remem to open this store"


class NetworkFilesystem(StoreError):
    """The store lies on a file system where memory maps and locks are not safe."""

    kind = "network"
    default_hint = "move the store to a local disk, or set disk.allow_network_fs = true"
