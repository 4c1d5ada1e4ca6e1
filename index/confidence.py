"""How likely a hit answers the question: a logistic function of what speaks for it.

What speaks for a hit is the share of the question's words that it holds, by what they are worth,
how rare these words are, and the cosine of the two vectors where they were compared.  Names of
speakers count for nothing: in a conversation anybody is named.  The weights were fitted to
questions asked of the conversation that they are about and of others that know nothing of it, as
many of the one as of the other, so 0.5 means: as good an answer as chance has it there.

An answer is as sure as its surest hit.  Only hits that may be shown are looked at, so nothing can
be told of what is withheld.

Source: Platt 1999, "Probabilistic outputs for support vector machines".
"""

from __future__ import annotations

from math import exp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LOW = 0.1  # an answer below this is said to be weak

# Weights of: the share held, the rarity held, the cosine; and the constant.
_WORDS = (7.0, 1.4, 0.0, -4.7)
_BOTH = (5.0, 1.3, 7.5, -6.5)


def of_hit(held: float, mass: float, cosine: float | None) -> float:
    """The confidence of one hit, 0 to 1.

    Args:
        held: share of what the question's words are worth, names of speakers apart.
        mass: what those words are worth, in words that occur nowhere else.
        cosine: of the vectors of question and hit, or None where they were not compared or come
            from an embedder that this is not calibrated for.
    """
    a, b, c, d = _WORDS if cosine is None else _BOTH
    return 1.0 / (1.0 + exp(-(a * held + b * mass + c * (cosine or 0.0) + d)))


def of_answer(hits: Iterable[float]) -> float:
    """The confidence of an answer from that of its hits; 0 without any."""
    return max(hits, default=0.0)
