"""TDM: the contract."""

from pathdex.baselines.tdm import TDM
from tests.baselines.tree.tiny import TINY
from tests.contract import RecommenderContract


class TestContract(RecommenderContract):
    def make(self) -> TDM:
        return TDM(**TINY)
