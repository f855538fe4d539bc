"""How pictures look: one SVG serves light and dark, since its colors are CSS variables."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter, MaxNLocator

from ddpk8s_trainer.report.words import ticks

# Placeholders that matplotlib writes as they are; `to_svg` puts the variables of style.css in their place.
INK, MUTED, GRID, BAD = "#010101", "#020202", "#030303", "#040404"
SERIES = tuple(f"#0500{number:02x}" for number in range(8))
_VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", BAD: "bad"} | {
    color: f"series-{number}" for number, color in enumerate(SERIES)
}
# A point is a pixel of the picture, which the page shows about 1.2 times as large.
WIDTH, HEIGHT = 5.6, 2.7
_DPI = 72
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ddpk8s",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "lines.solid_capstyle": "round",
    "path.simplify_threshold": 0.5,
}


class Ticks(Formatter):
    """Writes all ticks of an axis alike: the same unit, as many decimals as they need."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - matplotlib's signature
        """Return one tick by itself."""
        return ticks([x])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the texts of all ticks."""
        return ticks([float(value) for value in values])


@contextmanager
def look() -> Iterator[None]:
    """Draw with our settings, and leave those of others alone."""
    with mpl.rc_context(_SETTINGS):
        yield


def new_axes(
    unit: str, x_label: str = "optimizer step", height: float = HEIGHT, *, logarithmic: bool = False
) -> tuple[Figure, Axes]:
    """Return an empty picture; the unit of y stands above its axis, where there is room for it."""
    figure = Figure(figsize=(WIDTH, height), dpi=_DPI)
    FigureCanvasSVG(figure)
    inch = 1 / height
    axes = figure.add_axes((0.105, 0.52 * inch, 0.875, 1 - 0.82 * inch))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(which="both", length=0, pad=5)
    axes.tick_params(axis="x", length=3)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(Ticks())
    if logarithmic:
        axes.set_yscale("log")
        unit += " (logarithmic)"
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(Ticks())
    axes.margins(x=0.01)
    figure.text(0.0, 1 - 0.02 * inch, unit, va="top", ha="left", color=MUTED)
    axes.set_xlabel(x_label, loc="right", labelpad=3)
    return figure, axes


def to_svg(figure: Figure, description: str) -> str:
    """Return the picture as an `<svg>` element to be put into a page.

    Args:
        figure: From `new_axes`.
        description: One sentence for people who cannot see it; our own words only, not a user's.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.S)
    text = re.sub(r"#0[1-5]0[0-9a-f]0[0-9a-f]", lambda match: _variable(match[0]), text)
    # Hundredths of a pixel are enough; what stands between tags is text.
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d\d)\d+", r"\1", tag[0]), text)
    text = _unique_ids(text)
    text = re.sub(r"\n\s*", "\n", text)
    head = text.index(">")
    box = re.search(r'viewBox="[^"]*"', text[:head])
    opening = f'<svg {box[0] if box else ""} role="img" aria-label="{description}"'
    return f'{opening} xmlns:xlink="http://www.w3.org/1999/xlink"{text[head:]}'


def _variable(color: str) -> str:
    return f"var(--{_VARIABLES[color]})" if color in _VARIABLES else color


def _unique_ids(text: str) -> str:
    """Drop ids that nothing refers to: several pictures stand in one page, all with a `figure_1`.

    Those that are left are hashes of what they name, so that the same id means the same thing.
    """
    used = set(re.findall(r"#([\w.-]+)", text))
    return re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", text)
