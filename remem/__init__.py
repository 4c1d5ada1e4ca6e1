"""A memory you can correct: content-addressed, cited, verifiable, local.

    import remem

    with remem.open(collection="notes") as store:
        store.observe("The deploy host is beta-3.")
        for hit in store.recall("which host do we deploy to?"):
            print(hit.text, hit.cites)

What stands here is the public interface; everything else may change.  Nothing is imported before it
is asked for, so that ``import remem`` costs nothing.  See remem-python(7).
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # typing costs more than all of this
if TYPE_CHECKING:
    from remem.cli.opening import open as open
    from remem.hooks.api import Store as Store
    from remem.hooks.proposing import Operation as Operation
    from remem.hooks.results import Answer as Answer
    from remem.hooks.results import Briefed as Briefed
    from remem.hooks.results import Case as Case
    from remem.hooks.results import Citation as Citation
    from remem.hooks.results import Context as Context
    from remem.hooks.results import Decision as Decision
    from remem.hooks.results import Draft as Draft
    from remem.hooks.results import Entry as Entry
    from remem.hooks.results import Held as Held
    from remem.hooks.results import Hit as Hit
    from remem.hooks.results import Imported as Imported
    from remem.hooks.results import Loop as Loop
    from remem.hooks.results import Names as Names
    from remem.hooks.results import Observed as Observed
    from remem.hooks.results import Pin as Pin
    from remem.hooks.results import Proposed as Proposed
    from remem.hooks.results import Shown as Shown
    from remem.hooks.results import Status as Status
    from remem.hooks.results import Task as Task
    from remem.hooks.sources import read as read
    from remem.objects.errors import RememError as RememError
    from remem.objects.model import Incoming as Incoming

_RESULTS = (
    "Answer Briefed Case Citation Context Decision Draft Entry Held Hit Imported Loop Names "
    "Observed Pin Proposed Shown Status Task"
)
_WHERE = {
    "open": "remem.cli.opening",
    "Store": "remem.hooks.api",
    "Operation": "remem.hooks.proposing",
    "read": "remem.hooks.sources",
    "RememError": "remem.objects.errors",
    "Incoming": "remem.objects.model",
    **dict.fromkeys(_RESULTS.split(), "remem.hooks.results"),
}
__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> object:
    """Import what is asked for the first time."""
    if name not in _WHERE:
        raise AttributeError(f"module 'remem' has no attribute '{name}'")
    from importlib import import_module

    found = getattr(import_module(_WHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
