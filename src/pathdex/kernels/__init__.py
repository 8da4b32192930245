"""Every compiled kernel, once: products, exponentials, top-k, hashing, the structure model and the encoders.

A query runs through these kernels from history to ranked items without torch and without the interpreter lock, on
arrays mapped from disk. They compute the same functions as `pathdex.model`; the tests compare the two.
"""
