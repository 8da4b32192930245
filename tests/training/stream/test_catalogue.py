"""Ids, slots and tokens of a catalogue that grows and shrinks."""

from hypothesis import given
from hypothesis import strategies as st

from pathdex.data.vocabulary import UNKNOWN
from pathdex.training.stream.catalogue import StreamCatalogue


def filled(*items):
    catalogue = StreamCatalogue()
    for item in items:
        catalogue.add(item)
    return catalogue


def test_new_items_get_the_next_slots():
    catalogue = filled("a", "b", "a")
    assert [catalogue.slot(one) for one in ("a", "b", "c")] == [0, 1, UNKNOWN]
    assert len(catalogue) == catalogue.num_slots == 2


def test_a_number_and_its_text_are_one_item():
    catalogue = filled(12, "12")
    assert len(catalogue) == 1
    assert 12 in catalogue
    assert catalogue.slot("12") == 0


def test_a_removed_item_is_gone_and_its_slot_is_used_again():
    catalogue = filled("a", "b")
    assert catalogue.remove("a") == 0
    assert catalogue.remove("a") == UNKNOWN
    assert "a" not in catalogue
    assert catalogue.free_slots == (0,)
    assert catalogue.add("c") == 0
    assert catalogue.num_slots == 2


def test_the_token_of_a_removed_item_never_names_the_next_one_in_its_slot():
    catalogue = filled("a", "b")
    tokens = [catalogue.token(slot) for slot in (0, 1)]
    assert catalogue.slots_of(tokens) == [0, 1]
    catalogue.remove("a")
    assert catalogue.slots_of(tokens) == [1]
    catalogue.add("c")
    assert catalogue.slots_of(tokens) == [1]
    assert catalogue.slots_of([catalogue.token(0), *tokens]) == [0, 1]


def test_the_vocabulary_has_integers_if_all_ids_are():
    ids, slots = filled(5, "7").vocabulary()
    assert (ids.kind, ids.ids(range(2)), slots.tolist()) == ("int", [5, 7], [0, 1])
    ids, _ = filled(5, "07").vocabulary()
    assert (ids.kind, ids.ids(range(2))) == ("str", ["5", "07"])
    assert filled(2**63).vocabulary()[0].kind == "str"


def test_ids_are_integers_again_once_the_last_text_is_gone():
    catalogue = filled(5, "tea")
    assert catalogue.vocabulary()[0].kind == "str"
    catalogue.remove("tea")
    for one in (catalogue, StreamCatalogue.from_state_dict(catalogue.state_dict())):
        assert one.vocabulary()[0].kind == "int"


def test_the_vocabulary_leaves_out_free_slots():
    catalogue = filled("a", "b", "c")
    catalogue.remove("b")
    ids, slots = catalogue.vocabulary()
    assert (ids.ids(range(2)), slots.tolist()) == (["a", "c"], [0, 2])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), max_size=40))
def test_a_restored_catalogue_continues_as_the_original(steps):
    catalogue, alive, tokens = StreamCatalogue(), {}, {}
    for adds, item in steps:
        if adds:
            slot = catalogue.add(item)
            alive[item], tokens[catalogue.token(slot)] = slot, item
        else:
            catalogue.remove(item)
            alive.pop(item, None)
    restored = StreamCatalogue.from_state_dict(catalogue.state_dict())
    for one in (catalogue, restored):
        assert {item: one.slot(item) for item in range(9) if item in one} == alive
        current = [token for token, item in tokens.items() if item in alive and one.token(alive[item]) == token]
        assert one.slots_of(tokens) == [token & (2**32 - 1) for token in tokens if token in current]
    assert restored.add("new") == catalogue.add("new")
