"""Names of things and of what is said of them: folded, through aliases, with their periods apart.

Subjects and predicates are matched case-folded and through aliases.  A period behind a value ("5000
for 2024") belongs to the predicate, so that it does not meet what is said of another year.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import msgspec

from remem.objects import oid

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.model import Memory
    from remem.objects.reader import Part, Reader

# Predicates with one value at a time unless the caller says otherwise; remem-fact(1) lists them.
SINGLE_VALUED = frozenset(
    "address age birth_year birthday born_in born_on budget capital ceo deadline default_branch"
    " email host is is_called is_from job lives_in located_in manager marital_status married_to"
    " moved_to name nationality owner path phone port role state status studies_at title url"
    " version works_at".split()
)
# Predicates whose value is a text as a whole: a period in it is not one of the predicate.
WHOLE_VALUED = frozenset(("task state",))
MAX_FOLLOW = 32  # aliases of aliases

SHELL = "shell:"  # source of commands: one for all shells, as more than one history may have them
COMMAND = "command"  # kind of evidence that is one
MOST_ALIKE = 64  # equal commands of one second that are told apart
_DIGEST_CHARS = 32

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_PERIOD = (
    rf"(?:(?:fy|fiscal(?: year)?|year|early|mid|late|q[1-4]|h[12]|{_MONTHS}|spring|summer|autumn"
    r"|fall|winter)[\s-]*)*(?:(?:19|20)\d\d(?:[-/]\d{1,4})?)?"
)
_QUALIFIER = re.compile(rf"[\s,]+(?:\(|(?:for|in|during) (?:the )?)(?P<period>{_PERIOD})\)?$")
_YEAR = re.compile(r" (?:19|20)\d\d$")


def fold(name: str) -> str:
    """A name as it is compared: compatibility form, case-folded, white space folded."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(folded.replace("_", " ").split())


def alias_key(part: Part, name: str) -> bytes:
    """Key of an alias: a keyed digest of the folded name."""
    return part.prefix + oid.keyed(part.key, b"alias", fold(name).encode())


def canonical(reader: Reader, part: Part, name: str) -> str:
    """The folded name that a name stands for, through aliases."""
    found = fold(name)
    for _ in range(MAX_FOLLOW):
        data = reader.txn.get("aliases", alias_key(part, found))
        if data is None:
            return found
        found = fold(msgspec.msgpack.decode(data, type=tuple[str, str])[1])
    return found


def is_single(predicate: str) -> bool:
    """Whether a predicate has one value at a time by default, its period left aside."""
    words = fold(predicate)
    found = _QUALIFIER.search(words)
    plain = words[: found.start()] if found and found["period"] else _YEAR.sub("", words)
    return plain.replace(" ", "_") in SINGLE_VALUED


def qualifier(obj: str) -> str:
    """The period that a value is limited to ("5000 for 2024": "2024"), or an empty text."""
    folded = fold(obj)
    found = _QUALIFIER.search(folded)
    return "" if found is None or not found.start() else found["period"].strip()


def chain_key(reader: Reader, part: Part, triple: tuple[str, str, str], *, single: bool) -> bytes:
    """Key of the chain that a triple belongs to, without the ref."""
    return key_by(part, triple, single, lambda name: canonical(reader, part, name))


def key_by(
    part: Part, triple: tuple[str, str, str], single: bool, canonical: Callable[[str], str]
) -> bytes:
    """As `chain_key`, with another way to tell the folded name that a name stands for."""
    subject, predicate, obj = triple
    named = fold(predicate)
    period = qualifier(obj)
    if single and period and named not in WHOLE_VALUED:
        named += " / " + period
    words = [canonical(subject).encode(), named.encode()]
    if not single:
        words.append(canonical(obj).encode())
    return part.prefix + oid.keyed(part.key, b"chain", *words)


def keys_of(reader: Reader, part: Part, triple: tuple[str, str, str]) -> tuple[bytes, bytes]:
    """Both chains that a triple could belong to: the single-valued one, the other."""
    return (
        chain_key(reader, part, triple, single=True),
        chain_key(reader, part, triple, single=False),
    )


def command_name(asserted: int, kept: str, nth: int = 0) -> str:
    """Name of a command that was run at a known time.

    Args:
        asserted: when it was started, microseconds UTC; only the second counts.
        kept: the command as it may be kept: a digest of all of it would let a password be guessed.
        nth: how many equal commands of that second came before it.
    """
    digest = oid.digest(kept.encode("utf-8", "surrogatepass")).hex()[:_DIGEST_CHARS]
    return f"{asserted // 1_000_000}-{digest}" + (f"-{nth}" if nth else "")


def find_chain(reader: Reader, part: Part, ref: bytes, memory: Memory) -> bytes | None:
    """Key of the chain that holds a memory, or None when it is in none."""
    if memory.triple is None:
        return None
    for key in keys_of(reader, part, memory.triple):
        if reader.txn.get("chains", key + ref) is not None:
            return key
    return None
