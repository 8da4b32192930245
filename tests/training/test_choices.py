from pathdex.config import Config
from pathdex.training.choices import chosen, next_items

RECORDS = [{"phase": "encoder"}, {"choices": {"next_items": 64}}, {"choices": {"next_items": 1, "path_weight": 0.3}}]


def test_later_choices_win() -> None:
    assert chosen(RECORDS) == {"next_items": 1, "path_weight": 0.3}
    assert chosen([]) == {}


def test_a_set_value_wins_over_a_choice() -> None:
    assert next_items(Config(next_items=5), RECORDS) == 5
    assert next_items(Config(), RECORDS[:2]) == 64
    assert next_items(Config(), RECORDS[:1]) == 1
