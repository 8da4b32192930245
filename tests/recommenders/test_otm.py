"""OTM: the contract."""

from pathdex.recommenders.otm import OTM
from tests.recommender_contract import RecommenderContract, ResumeContract
from tests.recommenders.tree.tiny import TINY


class TestContract(RecommenderContract, ResumeContract):
    def make(self) -> OTM:
        return OTM(**{**TINY, "beam_size": 8}, training_beam=8, beam_epochs=6)
