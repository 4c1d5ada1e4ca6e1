"""What a check of the store found: the report and the collector that fills it.

The report has the shape of ``remem verify --json``.  A problem names a place and what is wrong
there; places are written the same way everywhere:

    FORMAT, GENERATION, canon      a file or folder of the store
    meta audit, meta clock         a row of the meta table
    audit 12                       a row of the audit chain
    log 1/5                        partition 1, entry 5
    ref 3f2a…, object 3f2a…        hex digits; likewise rev, source, receipt, chain, alias, job
    tombstone 3f2a…, value 3f2a…   likewise
    cites 3f2a… 9c01…              hex digits of both ids; likewise replaces
    part 1, heads 1, lane 1/3      partition 1, its counter, its lane 3
    sign 1/5, sign 0/12            the signature of entry 5 of partition 1, of audit row 12
    meta owner, meta gate          rows of the meta table; likewise store, retain, derived 1 NAME
    aliases 1                      all other names of partition 1
    checkpoint FILE 2              the second checkpoint of a file
    table objects                  an LMDB table that could not be read to its end
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import kv
from remem.objects.errors import RememError

if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Callable[[str, int, int], None]

STEP = 4096  # items between two calls of the progress function


class Problem(msgspec.Struct, frozen=True):
    """One thing that is not as the format says."""

    where: str
    what: str


class AuditReport(msgspec.Struct):
    """The chain: rows read, hash of the last one, first position that does not hold."""

    rows: int = 0
    head: str = ""
    first_bad: int | None = None


class ObjectsReport(msgspec.Struct):
    """Objects read, and the ids of those that are wrong or missing."""

    checked: int = 0
    bad: list[str] = []


class RefsReport(msgspec.Struct):
    """Refs whose fold equals its cache, entries that the folds took, ids of the refs that fail."""

    checked: int = 0
    entries: int = 0
    bad: list[str] = []


class TombstonesReport(msgspec.Struct):
    """Erased refs, those among them that wait for a purge, and what is wrong with them."""

    count: int = 0
    waiting: int = 0
    problems: list[Problem] = []


class SignaturesReport(msgspec.Struct):
    """Decisions by how they are signed.

    Attributes:
        signed: with a good signature.
        unsigned: without one, made while none was needed.
        bad: with a bad one, or with none though it was needed.
        protected: the audit chain says that decisions need a signature now.
        key: the public key that it names, or empty.
    """

    signed: int = 0
    unsigned: int = 0
    bad: int = 0
    protected: bool = False
    key: str = ""


class CheckpointReport(msgspec.Struct):
    """One checkpoint that the store was held against.

    Attributes:
        where: file or commit, and its number there.
        origin: which store it is of.
        rows: rows that the chain had.
        clock: record time then, microseconds UTC.
        ok: the store still holds what it vouches for.
        what: what is wrong.
    """

    where: str
    origin: str = ""
    rows: int = 0
    clock: int = 0
    ok: bool = True
    what: list[str] = []


class Report(msgspec.Struct):
    """What ``remem verify`` found.

    Attributes:
        ok: there is no problem (warnings do not count).
        fast: only the chain was walked.
        checkpoints: what was compared, where it was asked for.
        index: what the projections' own check answered; empty when it was not asked.
        warnings: what is no damage yet should be looked at (modes of files, left-over folders).
    """

    ok: bool = True
    fast: bool = False
    audit: AuditReport = msgspec.field(default_factory=AuditReport)
    objects: ObjectsReport = msgspec.field(default_factory=ObjectsReport)
    refs: RefsReport = msgspec.field(default_factory=RefsReport)
    tombstones: TombstonesReport = msgspec.field(default_factory=TombstonesReport)
    signatures: SignaturesReport = msgspec.field(default_factory=SignaturesReport)
    checkpoints: list[CheckpointReport] = []
    index: dict[str, object] = {}
    problems: list[Problem] = []
    warnings: list[Problem] = []


class Findings:
    """Collects problems while the tables are read; never stops and never raises."""

    def __init__(self, report: Report, progress: Progress | None) -> None:
        """Fill this report, telling progress now and then how far the work is."""
        self.report = report
        self.progress = progress
        self._bad_objects: set[bytes] = set()
        self._bad_refs: set[bytes] = set()

    def problem(self, where: str, what: str) -> None:
        """Note one problem."""
        self.report.problems.append(Problem(where, what))

    def warn(self, where: str, what: str) -> None:
        """Note one warning."""
        self.report.warnings.append(Problem(where, what))

    def bad_row(self, seq: int, what: str) -> None:
        """Note a position of the audit chain that does not hold."""
        self.problem(f"audit {seq}", what)
        first = self.report.audit.first_bad
        self.report.audit.first_bad = seq if first is None else min(first, seq)

    def bad_object(self, object_id: bytes, what: str) -> None:
        """Note what is wrong with an object; it is listed once however much is."""
        self.problem(f"object {object_id.hex()}", what)
        if object_id not in self._bad_objects:
            self._bad_objects.add(object_id)
            self.report.objects.bad.append(object_id.hex())

    def bad_ref(self, ref: bytes, what: str) -> None:
        """Note what is wrong with a ref; it is listed once however much is."""
        self.problem(f"ref {ref.hex()}", what)
        if ref not in self._bad_refs:
            self._bad_refs.add(ref)
            self.report.refs.bad.append(ref.hex())

    def bad_tomb(self, ref: bytes, what: str) -> None:
        """Note what is wrong with the tombstone of a ref."""
        found = Problem(f"tombstone {ref.hex()}", what)
        self.problem(found.where, what)
        self.report.tombstones.problems.append(found)

    def is_bad_ref(self, ref: bytes) -> bool:
        """True when something is known to be wrong with the ref."""
        return ref in self._bad_refs

    def remains(self, object_id: bytes) -> None:
        """Note that the bytes of something erased are still there."""
        found = Problem(f"object {object_id.hex()}", "it was erased, but its bytes are still there")
        self.bad_object(object_id, found.what)
        self.report.tombstones.problems.append(found)

    def tell(self, phase: str, done: int, total: int) -> None:
        """Tell how far a phase is."""
        if self.progress is not None:
            self.progress(phase, min(done, total), total)

    def guard(self, where: str, path: str, check: Callable[[], None]) -> None:
        """Run a check; whatever damaged bytes make it raise becomes one problem."""
        try:
            check()
        except RememError as error:
            self.problem(where, str(error))
        except Exception as error:  # damaged pages surface as errors of LMDB, of which kv knows
            self.problem(where, f"cannot be read to its end: {kv.translate(error, path)}")
