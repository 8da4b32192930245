"""Tree-based retrieval: a binary tree over the items, a model that scores nodes, and beam search by level.

TDM, JTM and OTM differ in how they train the model and learn the tree.
"""
