"""Grids: which are legal, where their boundaries lie, and which line up (C4, C5, C13)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE
from airflow_chronon.core.partitions.grid import LEGAL_INTERVALS, IllegalGrid, PartitionGrid, misalignment
from tests.support.confs import at


@st.composite
def grids(draw: st.DrawFn) -> PartitionGrid:
    """Any legal grid with an offset in whole minutes."""
    interval = draw(st.sampled_from(LEGAL_INTERVALS))
    return PartitionGrid(interval, draw(st.integers(0, interval // MINUTE - 1)) * MINUTE)


INSTANTS = st.integers(0, at("2100-01-01"))


class TestLegalIntervals:  # C4
    @pytest.mark.parametrize("minutes", [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440])
    def test_an_interval_that_tiles_the_day_simply_is_legal(self, minutes: int) -> None:
        assert PartitionGrid(minutes * MINUTE).interval == minutes * 60

    @pytest.mark.parametrize(
        "minutes", [0, -60, 7, 8, 9, 16, 18, 24, 36, 40, 45, 48, 72, 80, 90, 144, 288, 300, 420, 1441, 2880, 10080]
    )
    def test_every_other_interval_is_refused_with_the_legal_ones(self, minutes: int) -> None:
        with pytest.raises(IllegalGrid) as refused:
            PartitionGrid(minutes * MINUTE)
        assert refused.value.fault.rule == "C4"
        assert "1d" in refused.value.fault.remedy and "30 minutes" in refused.value.fault.remedy

    def test_the_refusal_names_the_value_as_people_write_it(self) -> None:
        with pytest.raises(IllegalGrid, match="interval of 90m"):
            PartitionGrid(90 * MINUTE)

    def test_seconds_are_no_interval(self) -> None:
        with pytest.raises(IllegalGrid, match="90s"):
            PartitionGrid(90)


class TestLegalOffsets:  # C5
    @pytest.mark.parametrize("offset", [0, MINUTE, HOUR, 2 * HOUR, 3 * HOUR - MINUTE])
    def test_an_offset_below_the_interval_is_legal(self, offset: int) -> None:
        assert PartitionGrid(3 * HOUR, offset).offset == offset

    @pytest.mark.parametrize("offset", [-HOUR, 3 * HOUR, 4 * HOUR, DAY])
    def test_every_other_offset_is_refused(self, offset: int) -> None:
        with pytest.raises(IllegalGrid) as refused:
            PartitionGrid(3 * HOUR, offset)
        assert refused.value.fault.rule == "C5"


class TestBoundaries:
    def test_they_count_from_the_epoch_with_the_offset(self) -> None:
        grid = PartitionGrid(3 * HOUR, HOUR)
        assert grid.floor(at("2026-06-01 04:15")) == at("2026-06-01 04:00")
        assert grid.floor(at("2026-06-01 00:59")) == at("2026-05-31 22:00")
        assert grid.ceil(at("2026-06-01 04:01")) == at("2026-06-01 07:00")

    @given(grids(), INSTANTS)
    def test_floor_and_ceil_are_the_nearest_boundaries(self, grid: PartitionGrid, instant: int) -> None:
        below, above = grid.floor(instant), grid.ceil(instant)
        assert below <= instant <= above
        assert grid.is_boundary(below) and grid.is_boundary(above)
        assert above - below == (0 if grid.is_boundary(instant) else grid.interval)

    @given(grids(), INSTANTS, st.integers(1, 3 * DAY))
    def test_the_starts_of_a_window_are_the_partitions_that_touch_it(
        self, grid: PartitionGrid, start: int, length: int
    ) -> None:
        end = start + length
        starts = list(grid.starts(start, end))
        assert starts[0] <= start < starts[0] + grid.interval
        assert starts[-1] < end <= starts[-1] + grid.interval
        assert all(later - earlier == grid.interval for earlier, later in itertools.pairwise(starts))

    def test_an_empty_window_touches_nothing(self) -> None:
        assert not PartitionGrid(HOUR).starts(HOUR, HOUR)
        assert not PartitionGrid(HOUR).starts(2 * HOUR, HOUR)

    @pytest.mark.parametrize(
        ("grid", "text"),
        [
            (PartitionGrid(DAY), "1d"),
            (PartitionGrid(3 * HOUR, HOUR), "3h@1h"),
            (PartitionGrid(15 * MINUTE, 5 * MINUTE), "15m@5m"),
            (PartitionGrid(DAY, 90 * MINUTE), "1d@90m"),
        ],
    )
    def test_it_reads_as_interval_at_offset(self, grid: PartitionGrid, text: str) -> None:
        assert str(grid) == text


class TestLiningUp:  # C13
    @pytest.mark.parametrize(
        ("consumer", "producer", "fits"),
        [
            pytest.param((6, 4), (3, 1), True, id="6h@4h over 3h@1h"),
            pytest.param((6, 2), (3, 1), False, id="6h@2h over 3h@1h"),
            pytest.param((3, 1), (24, 0), False, id="3h@1h over 1d"),
            pytest.param((24, 0), (3, 1), False, id="1d over 3h@1h"),
            pytest.param((24, 0), (1, 0), True, id="1d over 1h"),
            pytest.param((24, 1), (3, 1), True, id="1d@1h over 3h@1h"),
            pytest.param((24, 2), (24, 0), False, id="1d@2h over 1d"),
            pytest.param((1, 0), (1, 0), True, id="1h over 1h"),
            pytest.param((8, 0), (6, 0), False, id="8h over 6h"),
        ],
    )
    def test_the_examples_of_the_rule(self, consumer: tuple[int, int], producer: tuple[int, int], fits: bool) -> None:
        upper, lower = (PartitionGrid(i * HOUR, o * HOUR) for i, o in (consumer, producer))
        assert upper.lines_up_with(lower) is fits

    @given(grids(), grids())
    def test_it_means_that_every_boundary_is_one_of_the_producers(
        self, consumer: PartitionGrid, producer: PartitionGrid
    ) -> None:
        boundaries = range(consumer.offset, consumer.offset + 2 * DAY, consumer.interval)
        assert consumer.lines_up_with(producer) is all(producer.is_boundary(boundary) for boundary in boundaries)

    @given(grids(), grids())
    def test_the_first_cut_lies_inside_a_partition_and_none_comes_before_it(
        self, consumer: PartitionGrid, producer: PartitionGrid
    ) -> None:
        if consumer.lines_up_with(producer):
            return
        cut = consumer.first_cut(producer)
        assert cut >= 0 and consumer.is_boundary(cut) and not producer.is_boundary(cut)
        assert all(producer.is_boundary(boundary) for boundary in range(consumer.ceil(0), cut, consumer.interval))

    @given(grids(), grids())
    def test_the_grid_that_would_fit_is_legal_and_lines_up(
        self, consumer: PartitionGrid, producer: PartitionGrid
    ) -> None:
        fitting = consumer.fitting(producer)
        assert fitting.lines_up_with(producer)
        assert fitting.interval >= consumer.interval

    @given(grids())
    def test_a_grid_that_fits_is_left_alone(self, grid: PartitionGrid) -> None:
        assert grid.fitting(grid) == grid

    def test_the_message_names_both_grids_and_the_partition_that_is_cut(self) -> None:
        text = misalignment(PartitionGrid(6 * HOUR, 2 * HOUR), PartitionGrid(3 * HOUR, HOUR))
        assert "6h@2h" in text and "3h@1h" in text and "02:00 cuts the partition [01:00, 04:00)" in text
