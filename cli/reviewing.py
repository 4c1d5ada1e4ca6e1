"""A review by hand: one case after the other, each decision committed by itself.

What was decided stays decided however the session ends; what was skipped, or not reached, waits.
Another process may decide meanwhile: each case is read again when its turn comes.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

from remem.cli import cases, pages
from remem.cli.names import snapshot
from remem.cli.passphrase import signed
from remem.cli.plain import one_line
from remem.cli.screen import DOWN, ENDED, PAGE_DOWN, PAGE_UP, RESIZED, UP, Screen
from remem.objects import drafts, instant, review
from remem.objects.errors import RememError
from remem.objects.model import MEMORY_KINDS, Memory
from remem.objects.views import Lens

if TYPE_CHECKING:
    from remem.cli.cases import Case
    from remem.cli.context import Context
    from remem.cli.screen import Row
    from remem.index.engine import Engine
    from remem.index.hits import Hit
    from remem.objects.drafts import Item
    from remem.objects.scope import Actor
    from remem.objects.store import Store
    from remem.objects.tx import Tx

SIMILAR = 4  # memories beside a claim
_FEW = 8  # asked for, before those that the case shows anyway


class Session:
    """One review.

    Attributes:
        decided: how many were approved, denied, released or rejected.
        skipped: how many were passed over.
        stale: how many could not be applied.
    """

    def __init__(
        self,
        context: Context,
        store: Store,
        items: list[Item],
        engine: Engine | None,
        *,
        all_collections: bool,
    ) -> None:
        """Take what waits, oldest first."""
        self.context = context
        self.store = store
        self.items = items
        self.engine = engine
        self.decided = self.skipped = self.stale = 0
        self._all = all_collections
        self._actor: Actor | None = None
        self._message = ""

    def run(self) -> None:
        """Go through all of it, until it is quit or the terminal ends."""
        dumb = self.context.environ.get("TERM", "") in ("", "dumb")
        with Screen(colour=self.context.terminal, dumb=dumb) as screen:
            for number, item in enumerate(self.items, 1):
                with snapshot(self.context, all_collections=self._all) as reader:
                    case = cases.of_item(reader, item)
                if case is None:
                    continue  # it was decided on meanwhile
                if not self._decide_one(screen, case, (number, len(self.items))):
                    return

    # -- one case -----------------------------------------------------------------------------

    def _decide_one(self, screen: Screen, case: Case, place: tuple[int, int]) -> bool:
        """Show one case until it is decided on or skipped; False to end the session."""
        similar = self._similar(case)
        edited: str | None = None
        offset = 0
        while True:
            columns, lines = screen.size
            head, body = pages.page(
                case,
                similar,
                place=place,
                columns=columns,
                coloured=screen.coloured,
                edited=edited,
                message=self._message,
            )
            rows, offset = pages.fitted(
                head, body, pages.KEYS[case.kind], columns=columns, lines=lines, offset=offset
            )
            screen.show(rows)
            key = screen.key()
            step = max(1, lines - len(head) - 3)
            if key == RESIZED:
                continue
            self._message = ""
            if key in ("q", "Q", ENDED):
                return False
            if key in ("s", "S"):
                self.skipped += 1
                return True
            if key in (" ", PAGE_DOWN, "j", DOWN):
                offset += 1 if key in ("j", DOWN) else step
            elif key in ("b", PAGE_UP, "k", UP):
                offset = max(0, offset - (1 if key in ("k", UP) else step))
            elif key == "?":
                if not self._help(screen):
                    return False
            elif key in ("a", "A"):
                if self._do(screen, case, "approve", edited=edited):
                    return True
            elif key in ("d", "D"):
                critique = self._critique(screen, case, rows)
                if critique is not None and self._do(screen, case, "deny", critique=critique):
                    return True
            elif key in ("e", "E"):
                edited = self._edit(screen, case, rows, edited)
            else:
                self._message = "'?' tells what the keys do"

    def _help(self, screen: Screen) -> bool:
        while True:
            screen.show(pages.help_page(screen.size[0]))
            key = screen.key()
            if key != RESIZED:
                return key != ENDED

    def _critique(self, screen: Screen, case: Case, rows: list[Row]) -> str | None:
        """Why an operation is denied; None when that was given up."""
        if case.kind != cases.OPERATION:
            return ""
        found = screen.ask(rows, "why (Enter: nothing, Escape: back)")
        if found is None:
            self._message = "not denied"
        return found

    # -- deciding -----------------------------------------------------------------------------

    def _do(
        self,
        screen: Screen,
        case: Case,
        action: str,
        *,
        edited: str | None = None,
        critique: str = "",
    ) -> bool:
        """Commit one decision; False when it was refused and the case stays."""

        def change(tx: Tx) -> str:
            if case.op is None:
                if action == "approve":
                    review.release(tx, case.part, case.ref, expected=case.state.head)
                else:
                    review.reject(tx, case.part, case.ref)
                return ""
            chosen = [case.op.number]
            if action == "deny":
                done = drafts.deny(tx, case.part, case.ref, chosen, critique)
            else:
                done = drafts.approve(tx, case.part, case.ref, chosen, edited=edited, seen=case.op)
            return done[0].why

        try:
            why = self.store.write(self._who(screen), change)
        except RememError as error:
            self._message = f"{error}" + (f" ({error.hint})" if error.hint else "")
            return False
        if why:
            self.stale += 1
            self._message = f"stale, not applied: {why}"
            return True
        self.decided += 1
        words = one_line(edited if edited is not None else cases.words_of(case), 48)
        self._message = f"{self._done(case, action)}: {words}"
        return True

    def _done(self, case: Case, action: str) -> str:
        if case.kind == cases.OPERATION:
            return "approved" if action == "approve" else "denied"
        if action == "deny":
            return "rejected"
        return "approved" if case.kind == cases.CLAIM else "released"

    def _who(self, screen: Screen) -> Actor:
        """Who decides; the passphrase is asked for once, before the first decision."""
        if self._actor is None:
            with screen.aside():
                self._actor = signed(self.context, self.store, "the decisions of this review")
        return self._actor

    # -- beside the claim ---------------------------------------------------------------------

    def _similar(self, case: Case) -> list[Hit]:
        """Memories that say much the same as a claim."""
        if self.engine is None or case.obj is None:
            return []
        from remem.hooks import questions

        op = case.op
        shown = {case.shown} | (set() if op is None else {op.target, op.into})
        try:
            answer = self.engine.searcher.ask(
                questions.make(
                    case.obj.text[:2000],
                    Lens(instant.now()),
                    limit=_FEW,
                    mode=self.context.settings.text("recall.mode"),
                    kinds=MEMORY_KINDS,
                )
            )
        except RememError:
            return []
        found = [hit for hit in answer.hits if isinstance(hit.obj, Memory)]
        return [hit for hit in found if hit.ref not in shown][:SIMILAR]

    def _edit(self, screen: Screen, case: Case, rows: list[Row], edited: str | None) -> str | None:
        """The claim in the reviewer's own words; as it was when the edit came to nothing."""
        if case.op is None or case.op.proposed is None or case.obj is None:
            self._message = "there is no claim to edit here"
            return edited
        before = case.obj.text if edited is None else edited
        environ = self.context.environ
        editor = environ.get("VISUAL") or environ.get("EDITOR")
        if editor:
            with screen.aside():
                text, why = _in_editor(editor, before)
        else:
            text, why = screen.ask(rows, "claim (Escape: back)", before), "not edited"
        if text is None or not text.strip():
            self._message = why if text is None else "an empty claim is none: not edited"
            return edited
        if text.strip() == before:
            self._message = "nothing was changed"
            return edited
        self._message = "edited; 'a' approves it as your own"
        return text.strip()


def _in_editor(editor: str, text: str) -> tuple[str | None, str]:
    """A text as it was left in an editor, or None and why there is none.

    The file lies in a folder of its own, which goes with whatever the editor leaves beside it.
    """
    folder = tempfile.mkdtemp(prefix="remem-")
    try:
        path = os.path.join(folder, "claim.txt")
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text + "\n")
        try:
            code = subprocess.run([*shlex.split(editor), path], check=False).returncode
        except (OSError, ValueError) as error:
            return None, f"the editor '{editor}' did not start: {error}"
        if code:
            return None, f"the editor ended with status {code}: not edited"
        try:
            with open(path, encoding="utf-8") as file:
                return file.read(), ""
        except (OSError, UnicodeDecodeError):
            return None, "the editor left no text in UTF-8: not edited"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
