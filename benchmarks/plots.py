"""Plots as SVG, written by hand: they follow the reader's light or dark colours and need no library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from .readers import READERS
from .results import Results

__all__ = ["event_size", "framing", "readers"]

WIDTH = 760
COLOURS = {
    "ink": ("#1f2328", "#e6edf3"),
    "soft": ("#656d76", "#8d96a0"),
    "grid": ("#d0d7de", "#3d444d"),
    "own": ("#0969da", "#4493f8"),
    "own2": ("#54aeff", "#1f6feb"),
    "peer": ("#8c959f", "#656c76"),
    "bad": ("#cf222e", "#f85149"),
    "floor": ("#c9d1d9", "#484f58"),
    "violet": ("#8250df", "#ab7df8"),
    "amber": ("#bf8700", "#d29922"),
}
"""On light and on dark ground."""


def rules(dark: int) -> str:
    return "\n".join(
        f".{name} {{ fill: {pair[dark]}; }} .{name}-line {{ stroke: {pair[dark]}; }}" for name, pair in COLOURS.items()
    )


STYLE = f"""<style>
text {{ font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; }}
.title {{ font-size: 15px; font-weight: 600; }}
{rules(0)}
@media (prefers-color-scheme: dark) {{
{rules(1)}
}}
</style>"""


def document(height: float, title: str, about: str, body: list[str]) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">'
    title_line = f'<text class="title ink" x="12" y="24">{escape(title)}</text>'
    about_line = f'<text class="soft" x="12" y="42">{escape(about)}</text>'
    return "\n".join([head, STYLE, title_line, about_line, *body, "</svg>\n"])


def colour(name: str) -> str:
    reader = READERS[name]
    if reader.floor:
        return "floor"
    if reader.twin == "cython":
        return "own"
    if reader.twin == "python":
        return "own2"
    return "bad" if name == "naive-front" else "peer"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}"


def bars(title: str, about: str, values: Sequence[tuple[str, float, str]]) -> str:
    """Horizontal bars on a logarithmic scale; each has a label, a value and a colour."""
    left, right, top, step = 262, 70, 58, 22
    low = 10 ** math.floor(math.log10(min(value for _, value, _ in values)))
    high = max(value for _, value, _ in values)
    scale = (WIDTH - left - right) / math.log10(high / low)
    bottom = top + step * len(values)
    body = []
    for power in range(round(math.log10(low)), math.ceil(math.log10(high)) + 1):
        x = left + scale * (power - math.log10(low))
        if x <= WIDTH - right + 1:
            body.append(f'<line class="grid-line" x1="{x:.1f}" y1="{top - 4}" x2="{x:.1f}" y2="{bottom}"/>')
            body.append(f'<text class="soft" x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{10**power:,g}</text>')
    for at, (label, value, fill) in enumerate(values):
        y = top + step * at
        length = max(scale * math.log10(value / low), 2)
        body.append(f'<text class="ink" x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>')
        body.append(f'<rect x="{left}" y="{y + 2}" width="{length:.1f}" height="{step - 7}" rx="2" class="{fill}"/>')
        body.append(f'<text class="ink" x="{left + length + 6:.1f}" y="{y + 13}">{number(value)}</text>')
    return document(bottom + 26, title, about, body)


def readers(results: Results) -> str | None:
    """Nanoseconds an event by reader."""
    stream, cut = "draft-mixed", 16384
    cells = {key[3]: cell for key, cell in results.cells.items() if key[:3] == (stream, cut, "kept")}
    values = [(READERS[name].label, cell.ns, colour(name)) for name, cell in cells.items()]
    text = results.cells.get((stream, cut, "text", "cython"))
    if text is not None:
        values.append(("llmstream, feed_text", text.ns, "own"))
    if not values:
        return None
    about = "Draft stream, chunks of 16 KiB, logarithmic scale; floors are parts of the work done alone"
    return bars("Nanoseconds an event, by reader", about, sorted(values, key=lambda row: row[1]))


def framing(results: Results) -> str | None:
    """Server-Sent Events against length prefixes."""
    wanted: list[tuple[int | str, str, str, str]] = [
        (16384, "kept", "cython", "SSE: llmstream"),
        ("framed:16384", "kept", "framed-cython", "Length prefix: llmstream"),
        ("payload", "payload", "cython", "No framing at all: llmstream"),
        (16384, "kept", "split-msgspec", "SSE: split + msgspec"),
        ("framed:16384", "kept", "framed-msgspec", "Length prefix: msgspec"),
        (16384, "kept", "memcpy", "floor: copy the bytes"),
        (16384, "kept", "boundaries", "floor: find the line ends"),
    ]
    values = [
        (label, cell.ns, colour(reader))
        for cut, task, reader, label in wanted
        if (cell := results.cells.get(("draft-mixed", cut, task, reader)))
    ]
    if len(values) < 3:
        return None
    about = "The same envelopes, chunks of 16 KiB, events kept, logarithmic scale"
    return bars("SSE against length-prefixed framing, ns per event", about, values)


LINES = ["bad", "amber", "violet", "peer", "own2", "own"]


def event_size(results: Results) -> str | None:
    """Time against the size of one event: quadratic readers against linear ones, both axes logarithmic."""
    found: Mapping[str, Mapping[int, float]] = results.figures.get("versus", {})
    points = [(int(size), time * 1e3) for row in found.values() for size, time in row.items()]
    if not points:
        return None
    left, right, top, bottom = 76, 190, 60, 340
    x0, x1 = math.log10(min(x for x, _ in points)), math.log10(max(x for x, _ in points))
    y0 = math.floor(math.log10(min(y for _, y in points)))
    y1 = math.ceil(math.log10(max(y for _, y in points)))

    def place(size: float, time: float) -> tuple[float, float]:
        x = left + (math.log10(size) - x0) / (x1 - x0) * (WIDTH - left - right)
        return x, bottom - (math.log10(time) - y0) / (y1 - y0) * (bottom - top)

    body = []
    for power in range(y0, y1 + 1):
        y = place(points[0][0], 10.0**power)[1]
        body.append(f'<line class="grid-line" x1="{left}" y1="{y:.1f}" x2="{WIDTH - right}" y2="{y:.1f}"/>')
        body.append(f'<text class="soft" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:,g} ms</text>')
    for size in sorted({size for size, _ in points}):
        x = place(size, points[0][1])[0]
        label = f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
        body.append(f'<text class="soft" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>')
    ends = []
    for (name, row), fill in zip(found.items(), LINES, strict=False):
        dots = [place(int(size), time * 1e3) for size, time in row.items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
        body.append(f'<polyline points="{path}" fill="none" class="{fill}-line" stroke-width="2"/>')
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="{fill}"/>' for x, y in dots]
        ends.append((dots[-1], READERS[name].label, fill))
    taken: list[float] = []
    for (x, y), label, fill in sorted(ends, key=lambda end: end[0][1]):
        while any(abs(y - other) < 15 for other in taken):
            y += 3
        taken.append(y)
        y += 4 if x > WIDTH - right - 1 else -8  # clear of the other lines
        body.append(f'<text x="{x + 8:.1f}" y="{y:.1f}" class="{fill}">{escape(label)}</text>')
    about = "One event of the draft in chunks of 64 bytes; both axes logarithmic: steeper is worse"
    return document(bottom + 34, "Time against the size of one event", about, body)
