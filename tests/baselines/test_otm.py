"""OTM: the contract."""

from pathdex.baselines.otm import OTM
from tests.baselines.tree.tiny import TINY
from tests.contract import RecommenderContract


class TestContract(RecommenderContract):
    def make(self) -> OTM:
        return OTM(**{**TINY, "beam_size": 8}, training_beam=8, beam_epochs=6)
