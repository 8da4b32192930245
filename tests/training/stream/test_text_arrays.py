"""Texts in checkpoints."""

from hypothesis import given
from hypothesis import strategies as st

from pathdex.training.stream.text_arrays import pack_texts, unpack_texts


@given(st.lists(st.text(st.characters()), max_size=9))
def test_what_is_packed_is_unpacked(texts):
    assert unpack_texts(pack_texts(texts)) == texts
