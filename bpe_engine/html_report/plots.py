"""Draws plots as inline SVG: bars by group, and lines over a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .charts import short

#: The size of a plot in its own units; the page scales it to its width.
WIDTH, HEIGHT = 640, 320

#: Where the axes are.
LEFT, TOP, RIGHT, BOTTOM = 64, 12, 626, 272

#: A line is drawn through this many points.
POINTS = 120

#: Series that have a color of their own; further ones begin again.
COLORS = 6

#: Groups of bars, the largest first.
MOST_GROUPS = 14


@dataclass(frozen=True)
class Tick:
    """A place on an axis, and its label."""

    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """A line: its series, its points as SVG has them, and its name."""

    series: int
    points: str
    name: str


@dataclass(frozen=True)
class LinePlot:
    """Lines over a logarithmic axis."""

    title: str
    x_name: str
    y_name: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    kind: str = "lines"
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def legend(self) -> list[tuple[int, str]]:
        """Series and names."""
        return [(line.series, line.name) for line in self.lines]


@dataclass(frozen=True)
class RowBar:
    """A bar that lies: its series, and where it is."""

    series: int
    y: float
    height: float
    width: float
    text: str
    title: str


@dataclass(frozen=True)
class Group:
    """The name of a group of bars, and its place."""

    y: float
    text: str


@dataclass(frozen=True)
class BarPlot:
    """Bars that lie, in groups, one of each series in a group."""

    title: str
    x_name: str
    bars: list[RowBar]
    groups: list[Group]
    legend: list[tuple[int, str]]
    height: int
    kind: str = "rows"
    width: int = WIDTH
    left: int = 140


def group_bars(
    title: str, x_name: str, series: Mapping[str, Mapping[str, float]]
) -> BarPlot | None:
    """Draws bars for each group, one for each series; None when there is nothing to show.

    >>> plot = group_bars("Tokens", "per word", {"a": {"latin": 1.5}, "b": {"latin": 3.0}})
    >>> [(bar.series, bar.text) for bar in plot.bars], [group.text for group in plot.groups]
    ([(0, '1.50'), (1, '3.00')], ['latin'])
    """
    groups = list(dict.fromkeys(name for values in series.values() for name in values))[
        :MOST_GROUPS
    ]
    values = [value for of_group in series.values() for value in of_group.values()]
    highest = max(values, default=0.0)
    if not highest:
        return None
    thickness = 20.0 if len(series) < 4 else 16.0
    step = thickness * len(series) + 12
    room = WIDTH - BarPlot.left - 60
    bars = []
    for place, group in enumerate(groups):
        for number, (name, of_group) in enumerate(series.items()):
            value = of_group.get(group, 0.0)
            y = place * step + number * thickness + 6
            text = f"{value:.2f}"
            title_ = f"{group}, {name}: {text} {x_name}"
            width = max(value / highest * room, 1.0)
            bars.append(
                RowBar(number % COLORS, round(y, 1), thickness - 2, round(width, 1), text, title_)
            )
    names = [
        Group(round(place * step + 6 + thickness * len(series) / 2 + 4, 1), group)
        for place, group in enumerate(groups)
    ]
    legend = [(number % COLORS, name) for number, name in enumerate(series)]
    return BarPlot(title, x_name, bars, names, legend, round(len(groups) * step + 28))


def growth(
    title: str, x_name: str, y_name: str, series: Mapping[str, Sequence[int]]
) -> LinePlot | None:
    """Plots sums that grow, over the number of what they are of; both axes are linear.

    >>> plot = growth("Saved", "new ids", "tokens", {"saved": [10, 15]})
    >>> plot.x_ticks[-1].text, plot.y_ticks[-1].text, plot.lines[0].points.split()[-1]
    ('2', '15', '626.0,12.0')
    """
    longest = max((len(sums) for sums in series.values()), default=0)
    highest = max((sums[-1] for sums in series.values() if sums), default=0)
    if longest < 2 or highest <= 0:
        return None

    def place(x: int, y: int) -> str:
        across, up = x / longest * (RIGHT - LEFT), y / highest * (BOTTOM - TOP)
        return f"{LEFT + across:.1f},{BOTTOM - up:.1f}"

    lines = []
    for number, (name, sums) in enumerate(series.items()):
        step = max(len(sums) // POINTS, 1)
        at = [*range(step, len(sums), step), len(sums)]
        points = " ".join([place(0, 0), *(place(x, sums[x - 1]) for x in at)])
        lines.append(Line(number % COLORS, points, name))
    quarters = range(5) if longest >= 4 else range(0, 5, 4)
    x_ticks = [
        Tick(round(LEFT + part / 4 * (RIGHT - LEFT), 1), short(round(longest * part / 4)))
        for part in quarters
    ]
    y_ticks = [
        Tick(round(BOTTOM - part / 4 * (BOTTOM - TOP), 1), short(round(highest * part / 4)))
        for part in range(5)
    ]
    return LinePlot(title, x_name, y_name, lines, x_ticks, y_ticks)


def rank_frequency(
    series: Mapping[str, Sequence[int]],
    title: str = "Frequency of each token",
    x_name: str = "tokens, the most frequent first",
) -> LinePlot | None:
    """Plots the count of the most frequent token, the next, and so on; both axes are logarithmic.

    >>> plot = rank_frequency({"a": [100, 10, 1]})
    >>> [tick.text for tick in plot.y_ticks]
    ['1', '10', '100']
    """
    return _plot(
        title,
        x_name,
        "times",
        series,
        lambda counts, rank: counts[rank - 1],
        is_log=True,
    )


def cumulative_cover(series: Mapping[str, Sequence[int]]) -> LinePlot | None:
    """Plots the share of the text's tokens that are among the most frequent ones.

    >>> cumulative_cover({"a": [3, 1]}).y_ticks[-1].text
    '100%'
    """
    sums = {name: _sums(counts) for name, counts in series.items()}
    return _plot(
        "Share of the text in the most frequent tokens",
        "tokens, the most frequent first",
        "share",
        sums,
        lambda counts, rank: counts[rank - 1] / counts[-1],
        is_log=False,
    )


def _sums(counts: Sequence[int]) -> list[int]:
    sums, total = [], 0
    for count in counts:
        total += count
        sums.append(total)
    return sums


def _plot(
    title: str,
    x_name: str,
    y_name: str,
    series: Mapping[str, Sequence[int]],
    value: Callable[[Sequence[int], int], float],
    *,
    is_log: bool,
) -> LinePlot | None:
    longest = max((len(counts) for counts in series.values()), default=0)
    if longest < 2:
        return None
    highest = max(value(counts, 1) for counts in series.values() if counts) if is_log else 1.0
    x_span = math.log10(longest)
    y_span = max(math.log10(highest), 0.1) if is_log else 1.0

    def place(rank: int, height: float) -> str:
        x = LEFT + math.log10(rank) / x_span * (RIGHT - LEFT)
        share = math.log10(height) / y_span if is_log else height
        return f"{x:.1f},{BOTTOM - share * (BOTTOM - TOP):.1f}"

    lines = []
    for number, (name, counts) in enumerate(series.items()):
        if counts:
            points = " ".join(place(rank, value(counts, rank)) for rank in _ranks(len(counts)))
            lines.append(Line(number % COLORS, points, name))
    x_ticks = [
        Tick(round(LEFT + power / x_span * (RIGHT - LEFT), 1), short(10**power).replace(".0", ""))
        for power in range(int(x_span) + 1)
    ]
    if is_log:
        y_ticks = [
            Tick(
                round(BOTTOM - power / y_span * (BOTTOM - TOP), 1),
                short(10**power).replace(".0", ""),
            )
            for power in range(int(y_span + 1e-9) + 1)
        ]
    else:
        y_ticks = [
            Tick(round(BOTTOM - share / 100 * (BOTTOM - TOP), 1), f"{share}%")
            for share in range(0, 101, 20)
        ]
    return LinePlot(title, x_name, y_name, lines, x_ticks, y_ticks)


def _ranks(count: int) -> list[int]:
    """Returns ranks from 1 to ``count``, evenly spaced on a logarithmic axis."""
    if count == 1:
        return [1]
    top = math.log10(count)
    ranks = {round(10 ** (top * step / (POINTS - 1))) for step in range(POINTS)}
    return sorted(min(max(rank, 1), count) for rank in ranks)
