"""Taking the spool in while a process serves: what a shell noted is found at the next question.

A command takes the spool in when it starts; a process that lives long has to look each time it is
asked.  It looks at names and sizes only.  Where something is new, a thread takes it in by small
transactions, and the question waits for a moment: a few lines are there by then, and thousands go
on while it is answered.

Whoever asks, what comes in is the owner's: the process acts for the user whose files these are, as
the hooks and every command do, and in the scope in which it was captured.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from remem.hooks import glance
from remem.objects.errors import RememError

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.hooks.intake import Intake
    from remem.objects.store import Store

PATIENCE_S = 0.15  # that a question waits for what it may want to find
BREATH_S = 0.002  # between two transactions, for others of the process that write


class Beside:
    """Takes the spool of a store in, in a thread of its own when there is something."""

    def __init__(self, how: Callable[[], Intake], say: Callable[[str], None]) -> None:
        """Bind what is needed.

        Args:
            how: how it is taken in, by the settings as they are then.
            say: takes what went wrong.
        """
        self._how = how
        self._say = say
        self._lock = threading.Lock()
        self._settled: dict[str, int] = {}  # the spool when all of it was taken in
        self._thread: threading.Thread | None = None
        self._began = 0.0
        self._ending = False

    def look(self, store: Store) -> None:
        """Take in what is new, and wait for it for a moment.

        Args:
            store: open for writing; it stays open until `end` or the end of what was begun.
        """
        if store.readonly:
            return
        try:
            seen = glance.sizes(store.root)
        except OSError as error:
            self._say(f"the spool waits: {error}")
            return
        with self._lock:
            if seen == self._settled or self._ending:
                return
            thread = self._thread
            if thread is None or not thread.is_alive():
                self._began = time.monotonic()
                thread = threading.Thread(target=self._take, args=(store, seen), daemon=True)
                self._thread = thread
                thread.start()
            left_s = self._began + PATIENCE_S - time.monotonic()
        if left_s > 0:
            thread.join(left_s)

    def end(self, most_s: float) -> bool:
        """Begin nothing more and wait for what was begun; True when it came to its end."""
        with self._lock:
            self._ending = True
            thread = self._thread
        if thread is None:
            return True
        thread.join(most_s)
        return not thread.is_alive()

    def _proceed(self) -> bool:
        time.sleep(BREATH_S)
        return not self._ending

    def _take(self, store: Store, before: dict[str, int]) -> None:
        from remem.hooks import intake

        try:
            done = intake.beside(store, self._how(), proceed=self._proceed)
            after = glance.sizes(store.root)
        except (RememError, OSError) as error:
            self._say(f"the spool waits: {error}")
            return
        if done is None or done.left:
            return  # another process is at it, or there is more: the next question looks again
        for trouble in done.troubles:
            self._say(trouble)
        # Files that are gone leave nothing to be taken in; what grew meanwhile does.
        with self._lock:
            self._settled = after if after.items() <= before.items() else before
