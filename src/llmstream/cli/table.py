"""Rows as a table that fits: one line a row where they fit, else one line a field.

A terminal gets it drawn by rich where that is installed; everything else gets plain aligned text.
"""

from __future__ import annotations

import sys

from .terminal import visible, width, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["show"]


def show(names: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[str]) -> None:
    """Prints rows under their names; columns in ``numbers`` stand to the right."""
    columns = width()
    clean = [[visible(cell, None if columns is None else 60) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *clean, strict=True)]
    fits = columns is None or sum(widths) + 2 * len(widths) <= columns
    if columns is None or not _show_rich(names, clean, numbers, fits):
        _show_plain(names, clean, numbers, widths if fits else None)


def _show_plain(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: frozenset[str],
    widths: Sequence[int] | None,
) -> None:
    if widths is None:
        longest = max(map(len, names))
        for at, row in enumerate(rows):
            lines = [f"{name:{longest}}  {cell}" for name, cell in zip(names, row, strict=True)]
            write(("\n" if at else "") + "\n".join(lines) + "\n")
        return
    for row in (names, *rows):
        cells = [
            cell.rjust(size) if name in numbers else cell.ljust(size)
            for name, cell, size in zip(names, row, widths, strict=True)
        ]
        write("  ".join(cells).rstrip() + "\n")


def _show_rich(names: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[str], fits: bool) -> bool:
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ModuleNotFoundError:
        return False
    console = Console(file=sys.stdout, highlight=False, emoji=False, markup=False)
    if fits:
        table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")
        for name in names:
            table.add_column(name, justify="right" if name in numbers else "left", no_wrap=True)
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
        return True
    for at, row in enumerate(rows):
        if at:
            console.print()
        grid = Table.grid(padding=(0, 2, 0, 0))
        for name, cell in zip(names, row, strict=True):
            grid.add_row(Text(name, style="bold"), Text(cell, overflow="fold"))
        console.print(grid)
    return True
