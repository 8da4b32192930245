"""JTM: the contract."""

from pathdex.recommenders.jtm import JTM
from tests.recommender_contract import RecommenderContract, ResumeContract
from tests.recommenders.tree.tiny import TINY


class TestContract(RecommenderContract, ResumeContract):
    def make(self) -> JTM:
        return JTM(**TINY)
