"""Random structure models and their packed weights."""

import torch

from pathdex.index.postings import Postings
from pathdex.kernels.beam import Trie
from pathdex.kernels.structure import StructureWeights
from pathdex.model.structure import STRUCTURES, MLPStructure, RecurrentStructure

DIM = 5


def random_structure(kind: str, nodes: int, depth: int, seed: int) -> MLPStructure | RecurrentStructure:
    torch.manual_seed(seed)
    structure = STRUCTURES[kind](DIM, nodes, depth, 8, 3)
    for parameter in structure.parameters():
        parameter.data.normal_(0, 1)
    return structure


def packed(structure: torch.nn.Module) -> StructureWeights:
    return StructureWeights.pack({name: value.numpy() for name, value in structure.state_dict().items()})


def trie_of(postings: Postings) -> Trie:
    return Trie.pack(postings.prefixes, postings.children, postings.num_nodes)
