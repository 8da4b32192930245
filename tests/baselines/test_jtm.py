"""JTM: the contract."""

from pathdex.baselines.jtm import JTM
from tests.baselines.tree.tiny import TINY
from tests.contract import RecommenderContract


class TestContract(RecommenderContract):
    def make(self) -> JTM:
        return JTM(**TINY)
