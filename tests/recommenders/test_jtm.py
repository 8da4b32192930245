"""JTM: the contract."""

from pathdex.recommenders.jtm import JTM
from tests.recommender_contract import RecommenderContract
from tests.recommenders.tree.tiny import TINY


class TestContract(RecommenderContract):
    def make(self) -> JTM:
        return JTM(**TINY)
