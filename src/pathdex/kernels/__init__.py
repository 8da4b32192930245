"""A query from history to ranked items as compiled code: no torch, no lock on the interpreter, arrays mapped from disk.

The same model as `pathdex.model`, written once more for one query at a time; the tests hold the two against each other.
"""
