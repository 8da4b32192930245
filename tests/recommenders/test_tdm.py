"""TDM: the contract."""

from pathdex.recommenders.tdm import TDM
from tests.recommender_contract import RecommenderContract, ResumeContract
from tests.recommenders.tree.tiny import TINY


class TestContract(RecommenderContract, ResumeContract):
    def make(self) -> TDM:
        return TDM(**TINY)
