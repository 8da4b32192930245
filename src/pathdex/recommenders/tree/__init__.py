"""Tree-based retrieval: a binary tree over the catalogue, a model that scores its nodes, a beam search down the levels.

TDM, JTM and OTM are three ways to train it and to learn the tree.
"""
