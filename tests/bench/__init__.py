"""The measuring bench: retrieval quality beside baselines, and cost beside bare loops.

Run it from the root of the checkout with ``python -m tests.bench``.  Every figure is a ratio, or
stands beside one, taken in the same run on the same machine; no file of earlier figures is kept.
"""
