"""The look of every figure: colours that follow the page's theme, and axes that hold still.

matplotlib draws with the stand-in colours below; `svg.py` turns each into a CSS variable, and
`page/live.css` gives the variable one value for light pages and one for dark ones.
"""

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, GRID, PAPER = "#010203", "#010204", "#010205"
BLUE, ORANGE, TEAL, PURPLE, BROWN = SERIES = "#0173b2", "#de8f05", "#029e73", "#cc78bc", "#ca9161"

CSS_VARIABLES = {INK: "--live-ink", GRID: "--live-grid", PAPER: "--live-paper"} | {
    colour: f"--live-c{i}" for i, colour in enumerate(SERIES)
}

RC = {
    "svg.fonttype": "none",  # text stays text: selectable, and in the page's own font
    "path.simplify": False,
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.titlesize": 9,
    "axes.prop_cycle": mpl.cycler(color=SERIES),
    "figure.facecolor": "none",
    "figure.subplot.bottom": 0.17,  # room for the labels of an author's own subplots
    "figure.subplot.left": 0.13,
    "figure.subplot.right": 0.97,
    "figure.subplot.top": 0.92,
    "savefig.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "patch.edgecolor": INK,
    "legend.facecolor": PAPER,
    "legend.edgecolor": GRID,
    "legend.framealpha": 0.9,
    "legend.fontsize": 8,
}

LEFT, RIGHT, BOTTOM, TOP, BETWEEN = 0.72, 0.2, 0.5, 0.28, 0.85  # margins, inches


def axes(fig: Figure, *, at: tuple[int, int] = (0, 1), **settings) -> Axes:
    """One panel of `fig` with the book's margins: panel `at[0]` of `at[1]` side by side.

    settings   what `Axes.set` takes: xlabel and ylabel with their units, xlim, ylim, xscale, …
               Give both limits: a reader compares two frames only if the axes hold still.

    Raises ValueError where there is no such panel.

    >>> ax = axes(Figure(figsize=(5.6, 3.2)), xlabel="batch", ylabel="step time, ms", xlim=(0, 8))
    >>> ax.get_xlabel()
    'batch'
    """
    place, count = at
    if not 0 <= place < count:
        raise ValueError(f"at must be (place, count) with 0 <= place < count, not {at!r}")
    width, height = fig.get_size_inches()
    panel = (width - LEFT - RIGHT - BETWEEN * (count - 1)) / count
    left = LEFT + place * (panel + BETWEEN)
    box = (left / width, BOTTOM / height, panel / width, (height - BOTTOM - TOP) / height)
    ax = fig.add_axes(box)
    ax.set(**settings)
    return ax
