"""What the admission gate did, said on standard error: counts, never what was taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects.receipts import count

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.objects.receipts import Receipt


def note(context: Context, receipt: Receipt) -> None:
    """Say what was taken out of one text, and whether it is held back."""
    note_counts(context, count(receipt.codes, "redacted"), count(receipt.codes, "private"), 0)
    if receipt.status == "quarantined":
        why = [code for code in receipt.codes if not code.startswith(("redacted:", "private:"))]
        context.note(f"held back: {', '.join(why)}; 'remem quarantine list' shows what waits")


def note_counts(context: Context, redacted: int, private: int, quarantined: int) -> None:
    """Say how many secrets and regions were taken out, and how many texts are held back."""
    if redacted:
        context.note(f"{redacted:,} secret{'' if redacted == 1 else 's'} redacted")
    if private:
        context.note(f"{private:,} private region{'' if private == 1 else 's'} removed")
    if quarantined:
        context.note(f"held back: {quarantined:,}; 'remem quarantine list' shows what waits")
