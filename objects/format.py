"""Names, versions and layout of a store on disk.

Source: remem-store(5), LAYOUT.
"""

from __future__ import annotations

import os

from remem.objects.errors import NewerFormat, StoreCorrupt, StoreMissing

FORMAT_VERSION = 1
FORMAT_LINE = f"remem store {FORMAT_VERSION}\n"
FORMAT_FILE = "FORMAT"
GENERATION_FILE = "GENERATION"
CONFIG_FILE = "config.toml"
OWNER_KEY_FILE = "owner.key"
CANON = "canon"
INDEX = "index"
SPOOL = "spool"
LOCKS = "locks"

TABLES = (
    "meta",  # audit head, clock
    "parts",  # scope partitions: names, key
    "lanes",  # (agent, session) of a partition
    "heads",  # partition -> last seq of its ref log
    "objects",  # partition + id -> object bytes
    "refs",  # partition + ref -> cached fold
    "revs",  # partition + id -> ref, for heads that are not the first
    "log",  # partition + seq -> entry
    "audit",  # seq -> row
    "sources",  # partition + keyed digest of the source's own id -> ref
    "cites",  # partition + observation + memory ref -> nothing
    "receipts",  # partition + id -> admission receipt
    "replaces",  # partition + ref + the ref that it replaced -> nothing
    "chains",  # partition + keyed digest of subject and predicate + memory ref -> nothing
    "aliases",  # partition + keyed digest of a folded name -> (name, the name it stands for)
    "jobs",  # partition + observation ref + deriver -> attempts, lease, error class
    "tombs",  # partition + ref -> tombstone
    "values",  # partition + keyed digest of a normalised value -> ref of the tombstone
    "waits",  # partition + ref that is pending or quarantined -> since when
    "refused",  # partition + keyed digest of a value held back or rejected -> its ref
    "proposed",  # partition + id that a draft rests on + ref of the draft -> nothing
    "lists",  # partition + letter + id -> nothing: loops, tasks, briefs, short notes, pins
    "principals",  # number -> principal; name -> number; digest of a token -> number
    "signs",  # partition + seq (of an audit row: 0 + seq) -> key id, signature
)
# Tables that the first stores of this format lack; they are made, empty, where they are missing.
LATER = frozenset(("waits", "refused", "proposed", "lists", "principals", "signs"))


def check_format(root: str) -> None:
    """Raise unless the folder holds a store that this version can read.

    Raises:
        StoreMissing: no store there.
        NewerFormat: written by a later version.
        StoreCorrupt: the FORMAT file says something else.
    """
    try:
        with open(os.path.join(root, FORMAT_FILE), encoding="utf-8", errors="replace") as file:
            line = file.read(200)
    except FileNotFoundError as error:
        if os.path.exists(os.path.join(root, GENERATION_FILE)):
            raise headless(root) from error
        raise StoreMissing(f"there is no store in '{root}'") from error
    if line == FORMAT_LINE:
        return
    words = line.split()
    if len(words) == 3 and words[:2] == ["remem", "store"] and words[2].isdigit():
        if int(words[2]) > FORMAT_VERSION:
            raise NewerFormat(
                f"'{root}' has format {words[2]}, this version reads {FORMAT_VERSION}"
            )
    raise StoreCorrupt(f"'{os.path.join(root, FORMAT_FILE)}' does not name a format")


def headless(root: str) -> StoreCorrupt:
    """The error for a store that has lost the file that says what it is."""
    return StoreCorrupt(
        f"'{root}' holds the data of a store but no {FORMAT_FILE} file",
        hint=f"put back {FORMAT_FILE} and {GENERATION_FILE} from a backup of the store",
    )


def write_file(path: str, text: str) -> None:
    """Write a small file 0600 so that a crash leaves the old or the new one, never a part."""
    temporary = f"{path}.{os.getpid()}.new"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(handle, text.encode("utf-8", "surrogateescape"))
        os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(temporary, path)
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Flush a folder's entries to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
