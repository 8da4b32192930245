"""Marks of changed slots, one set per reader."""

from pathdex.training.stream.changed_slots import ChangedSlots


def test_every_reader_sees_every_change_once():
    changed = ChangedSlots("published", "saved")
    changed.mark([3, 1])
    changed.mark([])
    changed.mark([3])
    assert changed.pending("published").tolist() == [1, 3]
    changed.clear("published")
    changed.mark([2000])
    assert changed.pending("published").tolist() == [2000]
    assert changed.pending("saved").tolist() == [1, 3, 2000]


def test_marks_stay_until_they_are_cleared():
    changed = ChangedSlots("published")
    changed.mark([0])
    assert changed.pending("published").tolist() == changed.pending("published").tolist() == [0]
