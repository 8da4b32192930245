"""YouTube's product DNN (Covington et al. 2016): a pooled history, a small network, a sampled softmax."""

from __future__ import annotations

from pathdex.config import RunOptions
from pathdex.recommenders.vector_model import VectorRecommender


class YouTubeDNN(VectorRecommender):
    """The mean of the history's item vectors and the last one go through two dense layers to the user vector; the next
    item is classified by a softmax over the catalogue; retrieval is exhaustive search by inner product.

    The names and meanings of the hyper-parameters are those of Deep Retrieval's encoder.
    """

    name = "youtube-dnn"

    def __init__(
        self,
        *,
        embedding_dim: int = 64,
        history_length: int = 69,
        dropout: float = 0.5,
        shared_items: bool = True,
        softmax: str = "auto",
        negatives: str = "uniform",
        num_negatives: int = 1000,
        next_items: int = 1,
        epochs: int = 10,
        batch_size: int = 1024,
        learning_rate: float = 3e-3,
        item_learning_rate: float = 0.03,
        weight_decay: float = 0.0,
        seed: int = 0,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        super().__init__(
            {
                "encoder": "pooled",
                "embedding_dim": embedding_dim,
                "history_length": history_length,
                "dropout": dropout,
                "shared_items": shared_items,
                "softmax": softmax,
                "negatives": negatives,
                "num_negatives": num_negatives,
                "next_items": next_items,
                "epochs": epochs,
                "batch_size": batch_size,
                "learning_rate": learning_rate,
                "item_learning_rate": item_learning_rate,
                "weight_decay": weight_decay,
            },
            RunOptions(seed=seed, device=device, threads=threads),
        )
