"""Helpers of the store tests, and the processes they start.

Run as a script it is one worker: ``python _workers.py COMMAND ROOT ...``.  Test files load it with
runpy.  A command that wants many processes forks them from one that has imported everything.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from remem.objects import audit, encode, oid, refs
from remem.objects.admit import Admitted, admit
from remem.objects.errors import RememError
from remem.objects.model import Incoming, Observation, Scope
from remem.objects.reader import Part, Reader
from remem.objects.scope import Actor, Grant, maintenance_grant, owner_grant
from remem.objects.store import Store
from remem.objects.tx import Tx

HOME = Scope("local", "default", "home", "none", "main")
MIB = 1 << 20


def actor(scope: Scope = HOME, grant: Grant | None = None) -> Actor:
    return Actor(grant or owner_grant(scope), "api", scope)


def add(store: Store, text: str, scope: Scope = HOME, **fields: object) -> Admitted:
    record = Incoming(text=text, **fields)  # type: ignore[arg-type]
    return store.write(actor(scope), lambda tx: admit(tx, record))


def observation(text: str, scope: Scope = HOME, **fields: object) -> Observation:
    """An observation with the zero salt."""
    values: dict[str, object] = {
        "raw": None,
        "role": "",
        "speaker": "",
        "origin": "owner",
        "source": None,
        "asserted": None,
        "offset": None,
        "corrects": None,
        "kind": "",
        "meta": {},
    }
    return Observation(salt=encode.ZERO_SALT, scope=scope, text=text, **(values | fields))  # type: ignore[arg-type]


def change(store: Store, op: str, ref: bytes, **fields: object) -> refs.Entry:
    """One change of a ref; with ``text`` the new head is an observation of that text."""

    def act(tx: Tx) -> refs.Entry:
        part = tx.part(HOME)
        state = tx.reader.state(part, ref)
        assert state is not None
        values = dict(fields)
        text = values.pop("text", None)
        if text is not None:
            values["new"] = tx.put_object(part, observation(str(text), corrects=ref))
        return tx.record(part, op, ref, state, **values)  # type: ignore[arg-type]

    return store.write(actor(), act)


def check_books(store: Store) -> int:
    """Recompute what one snapshot says of itself; the number of entries of all ref logs.

    Written from the description of the format, not from the code that verify runs.
    """
    with store.read(maintenance_grant()) as reader:
        rows: dict[tuple[int, int], bytes | None] = {}
        seq, prev, clock = 0, bytes(32), 0
        for number, data, row in reader.audit_rows():
            seq += 1
            assert number == row.seq == seq, f"row {number} stands where {seq} belongs"
            assert row.prev == prev, f"row {number} does not follow the one before"
            assert row.time >= clock, f"row {number} goes back in time"
            prev, clock = audit.row_hash(data), row.time
            if row.entry:
                assert (row.part, row.entry) not in rows, f"entry {row.entry} has two rows"
                rows[row.part, row.entry] = row.digest
        head = reader.audit_head()
        assert (head.seq, head.hash) == (seq, prev), "the head of the chain is another one"
        entries = 0
        for part in reader.parts:
            entries += _check_part(reader, part, rows)
        assert not rows, f"rows without an entry: {list(rows)}"
        return entries


def _check_part(reader: Reader, part: Part, rows: dict[tuple[int, int], bytes | None]) -> int:
    states: dict[bytes, refs.RefState] = {}
    last = 0
    for key, data in reader.txn.scan_prefix("log", part.prefix):
        entry = refs.decode_entry(data)
        last += 1
        assert entry.seq == int.from_bytes(key[4:], "big") == last, f"entry {last} is missing"
        digest = rows.pop((part.number, last), None)
        assert digest == oid.digest(data), f"entry {last} has no row with its digest"
        states[entry.ref] = refs.step(states.get(entry.ref), entry)
        if entry.new is not None:
            kept = reader.txn.get("objects", part.prefix + entry.new)
            assert kept is not None, "a head is missing"
    assert last == reader.last_seq(part), "the head of the log is another one"
    assert states == dict(reader.states(part)), "the cached states are not the fold of the log"
    for key, data in reader.txn.scan_prefix("objects", part.prefix):
        assert oid.digest(data) == key[4:], "an id is not that of its bytes"
        assert encode.salted_by(data, part.key), "a salt is not of this partition"
    return last


def start(command: str, *args: object, **options: object) -> subprocess.Popen[str]:
    """A worker with pipes on stdin and stdout."""
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        [sys.executable, __file__, command, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def run(command: str, *args: object, timeout_s: float = 60.0) -> list[str]:
    """The lines of a worker that ended well."""
    done = subprocess.run(
        [sys.executable, __file__, command, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()


# -- worker side ----------------------------------------------------------------------------------


def say(line: str) -> None:
    """One line in one write: lines of several processes do not mix."""
    os.write(1, line.encode() + b"\n")


def fan(works: list[Callable[[], None]], kill: Callable[[list[int]], None] | None = None) -> None:
    """Run each work in a process of its own, all let go at the same moment.

    A work that raises says so and ends with status 1.  Ends with the first bad status, where
    SIGKILL is a good one if there is a killer.
    """
    gate_r, gate_w = os.pipe()
    pids = []
    for work in works:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(gate_w)
                os.read(gate_r, 1)
                work()
                status = 0
            except BaseException as error:
                say(f"error {type(error).__name__} {error}")
            finally:
                os._exit(status)
        pids.append(pid)
    os.close(gate_w)
    if kill is not None:
        kill(pids)
    bad = []
    for pid in pids:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code and not (kill is not None and code == -signal.SIGKILL):
            bad.append(code)
    if bad:
        say(f"bad exits {bad}")
        sys.exit(1)


def do_adds(
    root: str, count: str, size_b: str, tag: str, map_b: str = "0", batch: str = "1"
) -> None:
    """Add texts and say each id once it is committed; count 0 means without end."""
    store = Store(root, map_b=int(map_b) or None)
    number = 0
    while number < int(count) or count == "0":
        texts = [f"{tag} {number + i} ".ljust(int(size_b), "x") for i in range(int(batch))]
        number += len(texts)

        def act(tx: Tx, texts: list[str] = texts) -> list[bytes]:
            return [admit(tx, Incoming(text=text)).id for text in texts]

        for object_id in store.write(actor(), act):
            say(object_id.hex())


def do_many(root: str, writers: str, count: str, size_b: str, batch: str, readers: str) -> None:
    """Writers and readers at once on a store with a tiny map."""

    def write(index: int) -> Callable[[], None]:
        return lambda: do_adds(root, count, size_b, f"writer{index}", str(MIB), batch)

    def read() -> None:
        store, seen = Store(root, map_b=MIB), 0
        until = int(writers) * int(count)
        while seen < until:
            with store.read(actor().grant) as reader:
                last = sum(reader.last_seq(part) for part in reader.parts)
                assert last >= seen, "the log became shorter"
                if last:
                    entry = reader.entry(reader.parts[0], last)
                    reader.object(reader.parts[0], entry.ref)
                seen = last
            time.sleep(0.002)

    fan([write(i) for i in range(int(writers))] + [read] * int(readers))


def do_short_readers(root: str, count: str) -> None:
    """Many short readers at once; half of them are killed while they read."""
    told_r, told_w = os.pipe()

    def read(index: int) -> Callable[[], None]:
        def work() -> None:
            store = Store(root)
            with store.read(actor().grant) as reader:
                assert len(list(reader.states(reader.parts[0])))
                if index % 2:
                    say("reading")
                    os.write(told_w, b".")
                    time.sleep(60)
            say("read")

        return work

    def kill(pids: list[int]) -> None:
        victims = pids[1::2]
        for _ in victims:
            os.read(told_r, 1)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)

    fan([read(i) for i in range(int(count))], kill)


def do_revise(root: str, ref: str, head: str, count: str, tag: str) -> None:
    """Many processes revise one ref, each naming the head that all of them read."""

    def work(index: int) -> Callable[[], None]:
        def revise() -> None:
            try:
                change(
                    Store(root),
                    "revise",
                    bytes.fromhex(ref),
                    text=f"version {tag} of process {index}",
                    expected=bytes.fromhex(head),
                )
                say(f"won {index}")
            except RememError as error:
                say(f"{type(error).__name__} {index}")

        return revise

    fan([work(i) for i in range(int(count))])


def do_create(folder: str, rounds: str) -> None:
    """Two processes make one store at once, again and again."""
    for number in range(int(rounds)):
        root = os.path.join(folder, f"s{number}")

        def make(root: str = root) -> None:
            store = Store.create(root)
            say(add(store, "the same words").status)

        fan([make, make])


def do_kill_create(folder: str) -> None:
    """Make a store and die by SIGKILL at the first, second, ... step that Python is told of.

    For each step: the store is made again after that, takes a text and is sound.
    """
    step = 0
    while True:
        root = os.path.join(folder, f"s{step}")
        pid = os.fork()
        if pid == 0:
            sys.addaudithook(_killer(step))
            Store.create(root)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        store = Store.create(root)
        assert add(store, "first words").status == "new"
        assert check_books(store) == 1
        left_over = [name for name in os.listdir(root) if name.endswith(".new")]
        assert not left_over, left_over
        store.close()
        if code == 0:
            break
        assert code == -signal.SIGKILL, code
        step += 1
    say(str(step))


def _killer(steps: int) -> Callable[[str, object], None]:
    left = steps

    def hook(event: str, args: object) -> None:
        nonlocal left
        if event != "os.kill" and event.split(".")[0] in ("os", "open", "fcntl"):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def do_hold_lock(folder: str, name: str) -> None:
    """Hold a lock until the end of stdin."""
    from remem.objects.lock import hold

    with hold(folder, name):
        say("held")
        sys.stdin.read()


def do_hold_write(root: str) -> None:
    """Stay inside a write transaction until the end of stdin."""

    def act(tx: Tx) -> None:
        admit(tx, Incoming(text="never committed"))
        say("inside")
        sys.stdin.read()
        raise SystemExit(0)

    Store(root).write(actor(), act)


def do_limit(root: str, limit_mib: str, count: str) -> None:
    """Work under a limit of virtual memory: add as much as fits, read it again."""
    import resource

    limit = int(limit_mib) * MIB
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    store = Store.create(root)
    ids = []
    try:
        for number in range(int(count)):
            ids.append(add(store, f"{number} ".ljust(MIB, "y")).id)
    except RememError as error:
        say(f"{type(error).__name__} {error} / {error.hint}")
    with store.read(actor().grant) as reader:
        for object_id in ids:
            reader.object(reader.parts[0], object_id)
    say(f"read {len(ids)}")


def do_probe(root: str) -> None:
    """Open a store that may be damaged and read all of it: "ok N", or the error in one line."""
    try:
        say(f"ok {check_books(Store(root))}")
    except (RememError, AssertionError) as error:
        say(f"{type(error).__name__} {error}")


def do_fork_pool(root: str, rounds: str) -> None:
    """A pool of four forked workers reads and writes while the parent does, again and again."""
    import multiprocessing

    context = multiprocessing.get_context("fork")
    store = Store(root)
    for number in range(int(rounds)):
        with store.read(actor().grant) as held, context.Pool(4, _pool_store, (root,)) as pool:
            before = held.last_seq(held.parts[0])
            states = dict(held.states(held.parts[0]))
            new = pool.map(_pool_add, [f"round {number} item {i}" for i in range(8)])
            assert held.last_seq(held.parts[0]) == before, "the snapshot moved"
            assert dict(held.states(held.parts[0])) == states
        assert len(set(new)) == 8
        add(store, f"round {number} parent")
        with store.read(actor().grant) as reader:
            assert reader.last_seq(reader.parts[0]) == before + 9
    say(f"{check_books(store)} {store.env().stale_readers()}")


def _pool_store(root: str) -> None:
    global _pool
    _pool = Store(root)


def _pool_add(text: str) -> bytes:
    object_id = add(_pool, text).id
    with _pool.read(actor().grant) as reader:
        reader.object(reader.parts[0], object_id)
    return object_id


def do_fork_held(root: str) -> None:
    """Fork inside a snapshot; the child works and ends; the snapshot must not move meanwhile."""
    store = Store(root, map_b=MIB)
    with store.read(actor().grant) as reader:
        part = reader.parts[0]
        before = dict(reader.states(part))
        texts = {ref: reader.object(part, ref) for ref in before}
        pid = os.fork()
        if pid == 0:
            try:
                list(reader.states(part))
                say("the child reads its parent's snapshot")
            except RememError as error:
                say(f"{type(error).__name__} {error}")
            child = Store(root, map_b=MIB)
            say(add(child, "said by the child").status)
            with child.read(actor().grant) as own:
                say(str(own.last_seq(own.parts[0])))
            sys.exit(7)  # through every finally and the end of the interpreter
        say(f"child {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")
        # Free pages of the snapshot would be used again by this many changes of one ref.
        churn = subprocess.run([sys.executable, __file__, "churn", root, "300"], check=True)
        assert churn.returncode == 0
        assert dict(reader.states(part)) == before, "the snapshot moved"
        assert {ref: reader.object(part, ref) for ref in before} == texts
    with store.read(actor().grant) as reader:
        say(f"then {reader.last_seq(reader.parts[0])}")


def do_fork_thread(root: str) -> None:
    """Fork while another thread is inside a write and a third one reads."""
    import threading

    store = Store(root)
    inside, go = threading.Event(), threading.Event()

    def write(tx: Tx) -> None:
        admit(tx, Incoming(text="by a thread"))
        inside.set()
        go.wait(30)

    writer = threading.Thread(target=lambda: store.write(actor(), write))
    writer.start()
    inside.wait(30)
    pid = os.fork()
    if pid == 0:
        with store.read(actor().grant) as reader:
            say(f"child reads {reader.last_seq(reader.parts[0])}")
        sys.exit(3)
    say(f"child {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")
    go.set()
    writer.join()
    say(f"parent {check_books(store)}")


def do_fork_inside(root: str) -> None:
    """Fork inside a change: the child must not commit what its parent began."""
    store = Store(root)

    def act(tx: Tx) -> None:
        admit(tx, Incoming(text="half done"))
        pid = os.fork()
        if pid:
            say(f"child {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")
        admit(tx, Incoming(text="in both" if pid else "in the child"))

    parent = os.getpid()
    try:
        store.write(actor(), act)
    except RememError as error:
        say(f"{type(error).__name__} {error}")
    if os.getpid() != parent:
        sys.exit(5)
    say(f"parent {check_books(store)}")


def do_churn(root: str, count: str) -> None:
    """Change one ref again and again."""
    store = Store(root)
    ref = add(store, "what changes", source_id="churn").ref
    for number in range(int(count)):
        change(store, "unpin" if number % 2 else "pin", ref)


def do_slow_reader(root: str) -> None:
    """Read from 4 threads without end, print errors only; says "reading" at first."""
    import threading

    store = Store(root, map_b=MIB)
    stop = threading.Event()
    counts = [0] * 4

    def read(index: int) -> None:
        while not stop.is_set():
            with store.read(actor().grant) as reader:
                for ref, _ in reader.states(reader.parts[0]):
                    reader.object(reader.parts[0], ref)
                    time.sleep(0.0002)
            counts[index] += 1

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    say("reading")
    for line in sys.stdin:
        if line.strip() == "add":  # grows the map of this process while its threads read
            add(store, f"{random.random()} ".ljust(4 * MIB, "z"))
        say(str(store.env().info()["map_b"]))
    stop.set()
    for thread in threads:
        thread.join()
    say(f"rounds {min(counts)}")


def _commands() -> Iterator[tuple[str, Callable[..., None]]]:
    for name, value in globals().items():
        if name.startswith("do_"):
            yield name[3:].replace("_", "-"), value


if __name__ == "__main__":
    sys.setrecursionlimit(1000)
    Path(sys.argv[2]).parent.mkdir(parents=True, exist_ok=True)
    dict(_commands())[sys.argv[1]](*sys.argv[2:])
