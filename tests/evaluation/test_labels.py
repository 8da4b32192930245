"""Labels stay near what they name and never cover each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from pathdex.evaluation.labels import Box, best_place, clearest_first, label_ends, label_lines, label_points, move_apart
from tests.figure_checks import cut_off, overlapping

places = st.lists(st.tuples(st.floats(0, 100), st.floats(1, 8)), min_size=1, max_size=12)


def test_labels_with_room_stay_where_they_are() -> None:
    assert move_apart([50, 10, 90], [8, 8, 8], 0, 100) == [50, 10, 90]


def test_two_that_touch_move_by_the_same_amount() -> None:
    assert move_apart([50, 52], [10, 10], 0, 100) == [46, 56]


def test_three_that_touch_share_the_move() -> None:
    # The mean of the wanted places is kept, which is what least squares asks for.
    assert move_apart([50, 50, 56], [10, 10, 10], 0, 100) == pytest.approx([42, 52, 62])


def test_the_bounds_hold() -> None:
    assert move_apart([0, 1], [10, 10], 0, 100) == [5, 15]
    assert move_apart([99, 100], [10, 10], 0, 100) == [85, 95]


def test_labels_without_room_begin_at_the_lower_bound() -> None:
    assert move_apart([5, 5, 5], [10, 10, 10], 0, 20) == [5, 15, 25]
    assert move_apart([], [], 0, 1) == []


@given(places)
def test_nothing_overlaps_and_the_order_is_kept(given_places: list[tuple[float, float]]) -> None:
    wanted, sizes = map(list, zip(*given_places, strict=True))
    found = move_apart(wanted, sizes, 0, 100)
    order = np.argsort(wanted, kind="stable")
    for first, second in itertools.pairwise(order):
        assert found[second] - found[first] >= (sizes[first] + sizes[second]) / 2 - 1e-6
    assert min(np.subtract(found, np.divide(sizes, 2))) >= -1e-6
    assert max(np.add(found, np.divide(sizes, 2))) <= 100 + 1e-6


PAGE = Box(0, 0, 200, 100)


def test_a_free_label_is_to_the_right_of_its_point() -> None:
    assert best_place((50, 50), (30, 10), [], PAGE, gap=6) == Box(56, 45, 86, 55)


def test_an_obstacle_or_the_edge_moves_it_to_the_left() -> None:
    left = Box(14, 45, 44, 55)
    assert best_place((50, 50), (30, 10), [Box(60, 40, 70, 60)], PAGE, gap=6) == left
    assert best_place((50, 50), (30, 10), [], Box(0, 0, 60, 100), gap=6) == left


def test_where_nothing_is_free_the_least_is_covered() -> None:
    wall = [Box(0, 0, 200, 48), Box(0, 52, 200, 100)]
    box = best_place((50, 50), (30, 10), wall, PAGE)
    assert sum(box.overlap(one) for one in wall) == pytest.approx(180)


def test_boxes_overlap_and_hold() -> None:
    assert Box(0, 0, 10, 10).overlap(Box(5, 5, 20, 20)) == 25
    assert Box(0, 0, 10, 10).overlap(Box(10, 0, 20, 10)) == 0
    assert PAGE.holds(Box(0, 0, 10, 10))
    assert not PAGE.holds(Box(-1, 0, 10, 10))


def test_the_clearest_point_is_the_furthest_from_the_others() -> None:
    points = np.array([[0.0, 0.0], [10.0, 0.0], [4.0, 0.0]])
    assert clearest_first(points, np.array([[0.0, 1.0]])).tolist() == [[10, 0], [4, 0], [0, 0]]


def test_lines_that_end_together_have_names_apart_at_their_colour() -> None:
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(["one", "two", "three", "four"]):
        axes.plot([0, 1], [number, 1 + 0.001 * number], label=name, color="#D55D00")
    axes.plot([0, 1], [0, 0])
    label_ends(axes)
    assert overlapping(figure) == []
    assert cut_off(figure) == []
    by_height = sorted(axes.texts, key=lambda text: text.get_position()[1])
    assert [text.get_text() for text in by_height] == ["one", "two", "three", "four"]


def test_a_line_without_values_has_no_name() -> None:
    axes = Figure().subplots()
    axes.plot([], [], label="nothing")
    label_ends(axes)
    assert not axes.texts


@pytest.mark.parametrize("dpi", [72, 150])
def test_names_cover_neither_points_nor_whiskers(dpi: int) -> None:
    figure = Figure(dpi=dpi, layout="constrained")
    axes = figure.subplots()
    xs, ys = [1.0, 1.02, 1.04, 3.0], [1.0, 1.01, 0.99, 1.0]
    axes.errorbar(xs, ys, yerr=0.2, fmt="o")
    label_points(axes, [(x, y, f"point {number}", "#0072B2") for number, (x, y) in enumerate(zip(xs, ys, strict=True))])
    assert overlapping(figure) == []
    pixels = axes.transData.transform(np.column_stack([xs, ys]))
    for text in axes.texts:
        box = text.get_window_extent()
        assert not any(box.contains(*point) for point in pixels)


def test_a_line_is_named_where_it_is_alone() -> None:
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1, 2], [0, 0, 5], label="up")
    axes.plot([0, 1, 2], [0, 0, -5], label="down")
    label_lines(axes)
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert heights["up"] > 1
    assert heights["down"] < -1
    assert overlapping(figure) == []
