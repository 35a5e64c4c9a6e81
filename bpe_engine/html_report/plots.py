"""Draws plots as inline SVG: bars by group, and lines over a logarithmic axis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
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


#: Points of a line, in shares of the axes; places on an axis, and their labels.
_Points = Mapping[str, Sequence[tuple[float, float]]]
_Ticks = Sequence[tuple[float, str]]


def growth(
    title: str, x_name: str, y_name: str, series: Mapping[str, Sequence[int]]
) -> LinePlot | None:
    """Plots cumulative sums over the number of items; both axes are linear.

    >>> plot = growth("Saved", "new ids", "tokens", {"saved": [10, 15]})
    >>> plot.x_ticks[-1].text, plot.y_ticks[-1].text, plot.lines[0].points.split()[-1]
    ('2', '15', '626.0,12.0')
    """
    longest = max((len(sums) for sums in series.values()), default=0)
    highest = max((sums[-1] for sums in series.values() if sums), default=0)
    if longest < 2 or highest <= 0:
        return None
    lines = {}
    for name, sums in series.items():
        step = max(len(sums) // POINTS, 1)
        at = [*range(step, len(sums), step), len(sums)]
        lines[name] = [(0.0, 0.0), *((x / longest, sums[x - 1] / highest) for x in at)]
    x_ticks = [(mark / longest, short(mark)) for mark in _marks(longest)]
    y_ticks = [(mark / highest, short(mark)) for mark in _marks(highest)]
    return _plot(title, x_name, y_name, lines, x_ticks, y_ticks)


def _marks(highest: int) -> list[int]:
    """Returns round numbers from 0 on, a quarter of the highest apart or more, and the highest.

    >>> _marks(582), _marks(19), _marks(2)
    ([0, 200, 400, 582], [0, 5, 10, 19], [0, 1, 2])
    """
    power = 10 ** max(len(str(highest // 4)) - 1, 0)
    step = next(n * power for n in (1, 2, 5, 10) if n * power * 4 >= highest)
    return [*(mark for mark in range(0, highest, step) if highest - mark > 0.8 * step), highest]


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
    highest = max((counts[0] for counts in series.values() if counts), default=1)
    span = max(math.log10(highest), 0.1)
    heights = {
        name: [math.log10(count) / span for count in counts] for name, counts in series.items()
    }
    return _by_rank(title, x_name, "times", heights, _powers(span))


def cumulative_cover(series: Mapping[str, Sequence[int]]) -> LinePlot | None:
    """Plots the share of the text's tokens that are among the most frequent ones.

    >>> cumulative_cover({"a": [3, 1]}).y_ticks[-1].text
    '100%'
    """
    heights = {
        name: [covered / sum(counts) for covered in itertools.accumulate(counts)]
        for name, counts in series.items()
    }
    return _by_rank(
        "Share of the text in the most frequent tokens",
        "tokens, the most frequent first",
        "share",
        heights,
        [(share / 100, f"{share}%") for share in range(0, 101, 20)],
    )


def _by_rank(
    title: str, x_name: str, y_name: str, heights: Mapping[str, Sequence[float]], y_ticks: _Ticks
) -> LinePlot | None:
    """Plots heights, in shares of the axis, over the logarithm of their rank."""
    longest = max(map(len, heights.values()), default=0)
    if longest < 2:
        return None
    span = math.log10(longest)
    lines = {
        name: [(math.log10(rank) / span, some[rank - 1]) for rank in _ranks(len(some))]
        for name, some in heights.items()
    }
    return _plot(title, x_name, y_name, lines, _powers(span), y_ticks)


def _powers(span: float) -> _Ticks:
    """Returns the powers of ten on a logarithmic axis that ends at the power ``span``."""
    return [
        (power / span, short(10**power).replace(".0", "")) for power in range(int(span + 1e-9) + 1)
    ]


def _ranks(count: int) -> list[int]:
    """Returns ranks from 1 to ``count``, evenly spaced on a logarithmic axis."""
    if count < 2:
        return [1][:count]
    top = math.log10(count)
    ranks = {round(10 ** (top * step / (POINTS - 1))) for step in range(POINTS)}
    return sorted(min(max(rank, 1), count) for rank in ranks)


def _plot(
    title: str, x_name: str, y_name: str, lines: _Points, x_ticks: _Ticks, y_ticks: _Ticks
) -> LinePlot:
    def across(share: float) -> float:
        return LEFT + share * (RIGHT - LEFT)

    def up(share: float) -> float:
        return BOTTOM - share * (BOTTOM - TOP)

    drawn = [
        Line(number % COLORS, " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points), name)
        for number, (name, points) in enumerate(lines.items())
        if points
    ]
    return LinePlot(
        title,
        x_name,
        y_name,
        drawn,
        [Tick(round(across(at), 1), text) for at, text in x_ticks],
        [Tick(round(up(at), 1), text) for at, text in y_ticks],
    )
