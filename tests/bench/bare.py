"""Bare loops over LMDB, run as a process of their own: what the machine can do at best.

Usage: ``python -I bare.py LOOP INPUT [FOLDER]``; prints one JSON object on stdout.  Imports nothing
of the project and nothing of the bench.

lines     put each line of a file under the BLAKE3 hash of the line
pairs     put every key and value of an existing environment, in the order of the keys
shuffled  the same in a random order, in which content-addressed keys arrive
scan      read and hash every value of an existing environment

Reading the input, hashing the keys and opening the environment are done before the clock starts:
the time is that of the loop and of its one synchronous commit.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator

import lmdb
from blake3 import blake3

MAP_SIZE = 1 << 36  # bytes; address space only
MAX_NAMED = 128
SEED = 7
FLAGS = ("reverse_key", "dupsort", "integerkey", "integerdup", "dupfixed")
RECORD_SIZE = 48  # bytes of the record that stands for a named database in the unnamed one

Parts = list[tuple[bytes | None, dict[str, bool], list[tuple[bytes, bytes]]]]


def put_lines(path: str, folder: str) -> dict[str, float]:
    """Put each line of a file in one transaction.

    Args:
        path: a file of lines.
        folder: where the environment is made.

    Returns:
        ``seconds``, ``count``, ``bytes`` of keys and values.
    """
    with open(path, "rb") as file:
        lines = file.read().splitlines()
    pairs = [(blake3(line).digest(), line) for line in lines]
    return put_pairs([(None, {}, pairs)], folder)


def put_pairs(parts: Parts, folder: str) -> dict[str, float]:
    """Put keys and values, each database's in their order, in one transaction.

    Args:
        parts: name (None for the unnamed database), flags and pairs of each database.
        folder: where the environment is made.

    Returns:
        As `put_lines`.
    """
    with lmdb.open(folder, map_size=MAP_SIZE, max_dbs=MAX_NAMED) as env:
        targets = [(_open(env, name, flags), pairs) for name, flags, pairs in parts]
        began = time.perf_counter()
        with env.begin(write=True) as txn:
            for database, pairs in targets:
                for key, value in pairs:
                    txn.put(key, value, db=database)
        seconds = time.perf_counter() - began
    every = [pair for _, _, pairs in parts for pair in pairs]
    return {
        "seconds": seconds,
        "count": len(every),
        "bytes": sum(len(key) + len(value) for key, value in every),
    }


def scan(path: str) -> dict[str, float]:
    """Read every value of an environment and hash it.

    Args:
        path: the data file.

    Returns:
        As `put_lines`.
    """
    count = size = 0
    began = time.perf_counter()
    for _, _, pairs in databases(path):
        for key, value in pairs:
            blake3(value).digest()
            count += 1
            size += len(key) + len(value)
    return {"seconds": time.perf_counter() - began, "count": count, "bytes": size}


def databases(
    path: str,
) -> Iterator[tuple[bytes | None, dict[str, bool], Iterator[tuple[bytes, bytes]]]]:
    """Walk every database of an environment, read-only and without its lock file.

    Args:
        path: the data file.

    Yields:
        Name (None for the unnamed one), flags, and the pairs in order.
    """
    with (
        lmdb.open(
            path, subdir=False, readonly=True, lock=False, map_size=MAP_SIZE, max_dbs=MAX_NAMED
        ) as env,
        env.begin() as txn,
    ):
        named = {}
        for key, value in txn.cursor():
            if len(value) == RECORD_SIZE:
                try:
                    named[bytes(key)] = env.open_db(key, txn=txn, create=False)
                except lmdb.Error:
                    continue  # a value of that length which is no database
        for name, database in named.items():
            flags = database.flags()
            yield name, {flag: bool(flags.get(flag)) for flag in FLAGS}, iter(txn.cursor(database))
        yield None, {}, (pair for pair in txn.cursor() if bytes(pair[0]) not in named)


def _open(env: lmdb.Environment, name: bytes | None, flags: dict[str, bool]) -> lmdb._Database:
    if name is None:
        return env.open_db()
    return env.open_db(
        name,
        reverse_key=flags["reverse_key"],
        dupsort=flags["dupsort"],
        integerkey=flags["integerkey"],
        integerdup=flags["integerdup"],
        dupfixed=flags["dupfixed"],
    )


def main(words: list[str]) -> int:
    """Run one loop; see the module's text."""
    if len(words) == 3 and words[0] == "lines":
        found = put_lines(words[1], words[2])
    elif len(words) == 3 and words[0] in ("pairs", "shuffled"):
        parts: Parts = [(name, flags, list(pairs)) for name, flags, pairs in databases(words[1])]
        if words[0] == "shuffled":
            for _, _, pairs in parts:
                random.Random(SEED).shuffle(pairs)
        found = put_pairs(parts, words[2])
    elif len(words) == 2 and words[0] == "scan":
        found = scan(words[1])
    else:
        print("usage: bare.py lines|pairs|shuffled INPUT FOLDER | scan INPUT", file=sys.stderr)
        return 2
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
