"""The truth: objects, scopes, ref log, tombstones, audit, and the rules that change them."""
