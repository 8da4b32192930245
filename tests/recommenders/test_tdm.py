"""TDM: the contract."""

from pathdex.recommenders.tdm import TDM
from tests.recommender_contract import RecommenderContract
from tests.recommenders.tree.tiny import TINY


class TestContract(RecommenderContract):
    def make(self) -> TDM:
        return TDM(**TINY)
