"""Draws small bar charts, before and after, as inline SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Bars of a chart; what is above is put into the last one.
MOST_BARS = 12

#: The size of a chart in its own units; the page scales it to its width.
WIDTH, HEIGHT, BASELINE = 640, 216, 180

#: The width of a digit above a bar, and what a number may take of the gaps beside its bar.
DIGIT, GAPS = 8, 8


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


@dataclass(frozen=True)
class Bar:
    """A bar: its place, height and label."""

    x: float
    width: float
    height: float
    #: "before" or "after": its color.
    kind: str
    title: str
    #: Its number, short, where there is room for it; and whether there still is in large letters.
    label: str = ""
    is_roomy: bool = True

    @property
    def y(self) -> float:
        return BASELINE - self.height


@dataclass(frozen=True)
class Label:
    """The name under a group of bars."""

    x: float
    text: str


@dataclass(frozen=True)
class Chart:
    """Groups of bars with names under them."""

    title: str
    bars: list[Bar]
    labels: list[Label]
    #: The series that have a color of their own, for the legend.
    series: list[str]
    kind: str = "bars"
    width: int = WIDTH
    height: int = HEIGHT
    baseline: int = BASELINE


def bar_chart(
    title: str, axis: str, noun: str, series: Mapping[str, Mapping[int, int]]
) -> Chart | None:
    """Draws bars for one or two counts by a small number; None when there is nothing to show.

    >>> chart = bar_chart("Tokens of words", "tokens", "words", {"before": {2: 5}, "after": {1: 5}})
    >>> [(bar.kind, bar.title) for bar in chart.bars]
    [('after', '5 words, 1 tokens, after'), ('before', '5 words, 2 tokens, before')]
    """
    folded = {name: _folded(counts) for name, counts in series.items()}
    largest = max((number for counts in folded.values() for number in counts), default=0)
    smallest = min((number for counts in folded.values() for number in counts), default=0)
    highest = max((count for counts in folded.values() for count in counts.values()), default=0)
    if not highest:
        return None
    groups = range(smallest, largest + 1)
    step = WIDTH / max(len(groups), 4)
    width = step * 0.8 / len(folded)
    more = any(number > MOST_BARS for counts in series.values() for number in counts)
    bars, labels = [], []
    for place, number in enumerate(groups):
        name = f"{number}+" if more and number == MOST_BARS else str(number)
        labels.append(Label(round(place * step + step / 2, 1), name))
        for rank, (kind, counts) in enumerate(folded.items()):
            if count := counts.get(number, 0):
                x = place * step + step * 0.1 + rank * width
                height = max(count / highest * (BASELINE - 32), 1.5)
                suffix = f", {kind}" if len(folded) > 1 else ""
                what = f"{count:,} {noun}, {name} {axis}{suffix}"
                label, room = short(count), width + GAPS * (len(folded) == 1)
                # The number of the tallest bar has room above its neighbors.
                if len(label) * DIGIT > room and count < highest:
                    label = ""
                roomy = 2 * len(label) * DIGIT <= room or count == highest
                sizes = (round(x, 1), round(width, 1), round(height, 1))
                bars.append(Bar(*sizes, kind, what, label, roomy))
    return Chart(title, bars, labels, list(folded) if len(folded) > 1 else [])


def _folded(counts: Mapping[int, int]) -> dict[int, int]:
    """Counts with everything above the last bar put into it."""
    folded: dict[int, int] = {}
    for number, count in counts.items():
        place = min(number, MOST_BARS)
        folded[place] = folded.get(place, 0) + count
    return folded
