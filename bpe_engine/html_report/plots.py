"""Figures of a report as inline SVG: bars, bars by group, and lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

#: The size of a figure in units of the drawing; the page scales the figure to its width.
WIDTH, BAR_HEIGHT, LINE_HEIGHT = 640, 216, 320

#: Baseline of vertical bars.
BASELINE = 180

#: Maximum bars of a chart; the last one takes all larger numbers.
MOST_BARS = 12

#: Width of a digit above a bar, and the usable share of the gaps around a bar.
DIGIT, GAPS = 8, 8

#: Axes of a line plot.
LEFT, TOP, RIGHT, BOTTOM = 64, 12, 626, 272

#: Maximum points of a line, colors of series, and groups of bars (largest first).
POINTS, COLORS, MOST_GROUPS = 120, 6, 14

#: Left end of horizontal bars.
BARS_LEFT = 140


@dataclass(frozen=True)
class Figure:
    """A drawing with a title and a legend."""

    title: str
    #: The SVG elements.
    drawn: str
    #: The CSS classes and the names of series.
    legend: Sequence[tuple[str, str]] = ()
    #: The CSS class, "bars" or "plot".
    kind: str = "plot"
    height: int = LINE_HEIGHT
    width: int = WIDTH


def _element(name: str, text: str = "", title: str = "", **attributes: object) -> str:
    """Returns an SVG element.

    >>> _element("text", "<a>", x=1, class_="under")
    '<text x="1" class="under">&lt;a&gt;</text>'
    """
    given = (f' {key.rstrip("_").replace("_", "-")}="{value}"' for key, value in attributes.items())
    inside = f"<title>{escape(title)}</title>" if title else escape(text)
    return f"<{name}{''.join(given)}>{inside}</{name}>"


def short(count: int) -> str:
    """Returns a count in few characters.

    >>> short(950), short(1234), short(98592), short(7_654_321)
    ('950', '1.2k', '99k', '7.7M')
    """
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            share = count / size
            return f"{share:.1f}{unit}" if share < 9.95 else f"{share:.0f}{unit}"
    return str(count)


def bar_chart(
    title: str, axis: str, noun: str, series: Mapping[str, Mapping[int, int]]
) -> Figure | None:
    """Draws bars of one or two counts by a small number; None without data.

    >>> chart = bar_chart("Tokens of words", "tokens", "words", {"before": {2: 5}, "after": {1: 5}})
    >>> "<title>5 words, 1 tokens, after</title>" in chart.drawn
    True
    """
    folded = {name: _folded(counts) for name, counts in series.items()}
    numbers = [number for counts in folded.values() for number in counts]
    highest = max((count for counts in folded.values() for count in counts.values()), default=0)
    if not highest:
        return None
    groups = range(min(numbers), max(numbers) + 1)
    step = WIDTH / max(len(groups), 4)
    width = step * 0.8 / len(folded)
    more = any(number > MOST_BARS for counts in series.values() for number in counts)
    drawn = [_element("line", class_="axis", x1=0, y1=BASELINE, x2=WIDTH, y2=BASELINE)]
    for place, number in enumerate(groups):
        name = f"{number}+" if more and number == MOST_BARS else str(number)
        middle = round(place * step + step / 2, 1)
        drawn.append(_text(name, middle, BASELINE + 8, "middle", "under"))
        for rank, (kind, counts) in enumerate(folded.items()):
            if count := counts.get(number, 0):
                suffix = f", {kind}" if len(folded) > 1 else ""
                what = f"{count:,} {noun}, {name} {axis}{suffix}"
                x, room = place * step + step * 0.1 + rank * width, width
                drawn += _bar(
                    x, room + GAPS * (len(folded) == 1), width, count, highest, kind, what
                )
    legend = [(name, name) for name in folded] if len(folded) > 1 else []
    return Figure(title, "".join(drawn), legend, "bars", BAR_HEIGHT)


def _bar(
    x: float, room: float, width: float, count: int, highest: int, kind: str, title: str
) -> Iterator[str]:
    height = round(max(count / highest * (BASELINE - 32), 1.5), 1)
    label = short(count)
    # The number of the tallest bar has room above its neighbors.
    if len(label) * DIGIT <= room or count == highest:
        is_tight = 2 * len(label) * DIGIT > room and count != highest
        middle = round(x + width / 2, 1)
        yield _text(
            label, middle, round(BASELINE - height - 5, 1), "middle", "tight" if is_tight else ""
        )
    yield _element(
        "rect",
        title=title,
        class_=kind,
        x=round(x, 1),
        y=round(BASELINE - height, 1),
        width=round(width, 1),
        height=height,
    )


def _text(text: str, x: float, y: float, anchor: str = "start", kind: str = "") -> str:
    of_kind = {"class_": kind} if kind else {}
    return _element("text", text, **of_kind, x=x, y=y, text_anchor=anchor)


def _folded(counts: Mapping[int, int]) -> dict[int, int]:
    folded: dict[int, int] = {}
    for number, count in counts.items():
        place = min(number, MOST_BARS)
        folded[place] = folded.get(place, 0) + count
    return folded


def group_bars(title: str, x_name: str, series: Mapping[str, Mapping[str, float]]) -> Figure | None:
    """Draws one bar per series and group; None without data.

    >>> plot = group_bars("Tokens", "per word", {"a": {"latin": 1.5}, "b": {"latin": 3.0}})
    >>> plot.legend, ">3.00</text>" in plot.drawn
    ([('s0', 'a'), ('s1', 'b')], True)
    """
    names = dict.fromkeys(name for values in series.values() for name in values)
    groups = list(names)[:MOST_GROUPS]
    highest = max((value for found in series.values() for value in found.values()), default=0.0)
    if not highest:
        return None
    thickness = 20.0 if len(series) < 4 else 16.0
    step = thickness * len(series) + 12
    room = WIDTH - BARS_LEFT - 60
    drawn = []
    for place, group in enumerate(groups):
        for number, (name, of_group) in enumerate(series.items()):
            value = of_group.get(group, 0.0)
            y = round(place * step + number * thickness + 6, 1)
            width = round(max(value / highest * room, 1.0), 1)
            drawn.append(
                _element(
                    "rect",
                    title=f"{group}, {name}: {value:.2f} {x_name}",
                    class_=f"s{number % COLORS}",
                    x=BARS_LEFT,
                    y=y,
                    width=width,
                    height=thickness - 2,
                )
            )
            drawn.append(
                _text(f"{value:.2f}", BARS_LEFT + width + 5, y + thickness - 4, kind="value")
            )
        middle = round(place * step + thickness * len(series) / 2 + 10, 1)
        drawn.append(_text(group, BARS_LEFT - 8, middle, "end"))
    height = round(len(groups) * step + 28)
    drawn.append(_text(x_name, WIDTH, height - 6, "end", "name"))
    return Figure(title, "".join(drawn), _legend(series), height=height)


def _legend(series: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(f"s{number % COLORS}", name) for number, name in enumerate(series)]


#: Points of a line in shares of the axes; tick positions and labels.
_Points = Mapping[str, Sequence[tuple[float, float]]]
_Ticks = Sequence[tuple[float, str]]


def growth(
    title: str, x_name: str, y_name: str, series: Mapping[str, Sequence[int]]
) -> Figure | None:
    """Plots cumulative sums over the number of items; both axes are linear.

    >>> "626.0,12.0" in growth("Saved", "new ids", "tokens", {"saved": [10, 15]}).drawn
    True
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
    return _plot(title, x_name, lines, x_ticks, y_ticks)


def _marks(highest: int) -> list[int]:
    """Returns round numbers from 0, at least a quarter of the highest apart, and the highest.

    >>> _marks(582), _marks(19), _marks(2)
    ([0, 200, 400, 582], [0, 5, 10, 19], [0, 1, 2])
    """
    power = 10 ** max(len(str(highest // 4)) - 1, 0)
    step = next(n * power for n in (1, 2, 5, 10) if n * power * 4 >= highest)
    return [*(mark for mark in range(0, highest, step) if highest - mark > 0.8 * step), highest]


def rank_frequency(
    series: Mapping[str, Sequence[int]],
    title: str = "Frequency of each token",
    x_name: str = "tokens by descending frequency",
) -> Figure | None:
    """Plots token counts by rank on logarithmic axes.

    >>> [f">{count}</text>" in rank_frequency({"a": [100, 10, 1]}).drawn for count in (10, 100)]
    [True, True]
    """
    highest = max((counts[0] for counts in series.values() if counts), default=1)
    span = max(math.log10(highest), 0.1)
    heights = {
        name: [math.log10(count) / span for count in counts] for name, counts in series.items()
    }
    return _by_rank(title, x_name, heights, _powers(span))


def cumulative_cover(series: Mapping[str, Sequence[int]]) -> Figure | None:
    """Plots the cumulative share of the text by rank of its tokens.

    >>> ">100%</text>" in cumulative_cover({"a": [3, 1]}).drawn
    True
    """
    heights = {
        name: [covered / sum(counts) for covered in itertools.accumulate(counts)]
        for name, counts in series.items()
    }
    title = "Share of the text by token rank"
    y_ticks = [(share / 100, f"{share}%") for share in range(0, 101, 20)]
    return _by_rank(title, "tokens by descending frequency", heights, y_ticks)


def _by_rank(
    title: str, x_name: str, heights: Mapping[str, Sequence[float]], y_ticks: _Ticks
) -> Figure | None:
    longest = max(map(len, heights.values()), default=0)
    if longest < 2:
        return None
    span = math.log10(longest)
    lines = {
        name: [(math.log10(rank) / span, some[rank - 1]) for rank in _ranks(len(some))]
        for name, some in heights.items()
    }
    return _plot(title, x_name, lines, _powers(span), y_ticks)


def _powers(span: float) -> _Ticks:
    return [
        (power / span, short(10**power).replace(".0", "")) for power in range(int(span + 1e-9) + 1)
    ]


def _ranks(count: int) -> list[int]:
    if count < 2:
        return [1][:count]
    top = math.log10(count)
    ranks = {round(10 ** (top * step / (POINTS - 1))) for step in range(POINTS)}
    return sorted(min(max(rank, 1), count) for rank in ranks)


def _plot(title: str, x_name: str, lines: _Points, x_ticks: _Ticks, y_ticks: _Ticks) -> Figure:
    def across(share: float) -> float:
        return round(LEFT + share * (RIGHT - LEFT), 1)

    def up(share: float) -> float:
        return round(BOTTOM - share * (BOTTOM - TOP), 1)

    drawn = []
    for at, text in x_ticks:
        x = across(at)
        drawn.append(_element("line", class_="axis", x1=x, y1=TOP, x2=x, y2=BOTTOM))
        drawn.append(_text(text, x, BOTTOM + 22, "middle"))
    for at, text in y_ticks:
        y = up(at)
        drawn.append(_element("line", class_="axis", x1=LEFT, y1=y, x2=RIGHT, y2=y))
        drawn.append(_text(text, LEFT - 8, y + 5, "end"))
    shown = {name: points for name, points in lines.items() if points}
    for (kind, name), points in zip(_legend(shown), shown.values()):
        places = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        drawn.append(_element("polyline", title=name, class_=kind, points=places))
    drawn.append(_text(x_name, RIGHT, LINE_HEIGHT - 6, "end", "name"))
    return Figure(title, "".join(drawn), _legend(shown))
