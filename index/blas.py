"""One thread for matrix products, whatever the process was started with.

OpenBLAS starts one thread a core and lets them wait for each other by spinning.  A process that
runs for a tenth of a second beside others loses by that: a 300 x 384 by 384 x 1536 product took
15 ms instead of 2.5 ms on two busy cores.  ``OPENBLAS_NUM_THREADS=1`` in the environment before
numpy is imported does the same, and numpy's import then costs 82 ms of processor time instead of
145; it is for the front door to set.  This module is the part that works after the import, in any
process.
"""

from __future__ import annotations

import os

_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)
_done = False


def one_thread() -> bool:
    """Set the OpenBLAS that came with numpy to one thread.

    Returns:
        Whether a setter was found and called; False with another BLAS, which keeps its own count.
    """
    global _done
    if _done:
        return True
    import ctypes

    import numpy as np

    package = os.path.dirname(np.__file__)
    beside = (package + ".libs", os.path.join(package, ".dylibs"))
    for folder in beside:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            if "openblas" in name:
                try:
                    library = ctypes.CDLL(os.path.join(folder, name))
                except OSError:
                    continue
                for setter in _SETTERS:
                    function = getattr(library, setter, None)
                    if function is not None:
                        function(1)
                        _done = True
                        return True
    return False
