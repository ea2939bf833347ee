"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from . import machine
from .readers import READERS
from .results import Results, Verdict

__all__ = ["figures", "speeds", "targets", "whole"]


def rows(head: Sequence[str], body: Iterable[Sequence[str]], right: int = 1) -> str:
    """A table; all columns but the first ``right`` are numbers."""
    lines = [head, ["---"] * right + ["---:"] * (len(head) - right), *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def targets(verdicts: list[Verdict]) -> str:
    body = []
    for verdict in verdicts:
        target = verdict.target
        least, most = target.at_least, target.at_most
        limit = f"≥ {least:g}" if least is not None else f"≤ {most:g}"
        unit = target.unit
        value = "not measured" if verdict.value is None else f"{verdict.value:.2f} {unit}"
        mark = {True: "met", False: "**short**", None: "-"}[verdict.met]
        work = target.work + (f" ({verdict.note})" if verdict.note else "")
        body.append([work, f"{limit} {unit}", value, mark])
    return rows(["work: against", "target", "measured", ""], body)


def speeds(results: Results) -> str:
    """Nanoseconds an event: a table for each stream and task, a line for each reader, a column for each cut."""
    parts = []
    ordered = sorted(results.cells, key=lambda key: (key[0], key[2]))
    for (stream, task), keys in groupby(ordered, key=lambda key: (key[0], key[2])):
        group = list(keys)
        cuts = list(dict.fromkeys(cut for _, cut, _, _ in group))
        readers = list(dict.fromkeys(reader for *_, reader in group))
        body = []
        for reader in readers:
            cells = [results.cells.get((stream, cut, task, reader)) for cut in cuts]
            body.append([READERS[reader].label, *("" if cell is None else f"{cell.ns:,.1f}" for cell in cells)])
        first = results.cells[group[0]]
        about = f"{first.events:,} events, {first.size / max(first.events, 1):,.0f} bytes each"
        parts.append(
            f"### {stream}, {task}\n\n{about}\n\n" + rows(["ns per event; chunks:", *map(cut_name, cuts)], body)
        )
    return "\n".join(parts)


def cut_name(cut: int | str) -> str:
    if isinstance(cut, int):
        return f"{cut} B" if cut < 1024 else f"{cut >> 10} KiB"
    return {"event": "one event", "payload": "bare payload"}.get(cut, cut.replace("framed:", "length prefix, "))


def figures(found: dict[str, Any]) -> str:
    """Scaling, memory, import time and hit rates."""
    parts = []
    if "event_size" in found:
        body = [
            [
                f"{twin}, {form}",
                *(f"{each * 1e3:,.1f}" for each in row["seconds"]),
                f"{row['worst_doubling']:.2f}",
                f"{row['exponent']:.2f}",
            ]
            for twin, forms in found["event_size"].items()
            for form, row in forms.items()
        ]
        sizes = next(iter(next(iter(found["event_size"].values())).values()))["sizes"]
        head = [
            "one event in 64-byte chunks, ms",
            *(f"{size >> 20} MiB" for size in sizes),
            "worst doubling",
            "exponent",
        ]
        parts.append(rows(head, body))
    if "versus" in found:
        sizes = sorted({int(size) for row in found["versus"].values() for size in row})
        body = [
            [
                READERS[name].label,
                *(f"{row[size] * 1e3:,.2f}" if size in row else "" for size in sizes),
                f"{slope:.2f}" if (slope := found["versus_exponent"].get(name)) else "",
            ]
            for name, row in found["versus"].items()
        ]
        head = ["one event in 64-byte chunks, ms", *(f"{size >> 10} KiB" for size in sizes), "exponent"]
        parts.append(rows(head, body))
    if "events" in found:
        for twin, row in found["events"].items():
            each = [f"{s / n * 1e9:,.1f}" for n, s in zip(row["events"], row["seconds"], strict=True)]
            head = [f"{twin}: events, 16 KiB chunks", *(f"{count:,}" for count in row["events"]), "exponent"]
            parts.append(rows(head, [["ns per event", *each, f"{row['exponent']:.2f}"]]))
    if "memory" in found:
        body = [
            [f"{twin}, {dialect}", *(f"{row[state] / 1024:.2f}" for state in row)]
            for twin, dialects in found["memory"].items()
            for dialect, row in dialects.items()
        ]
        parts.append(
            rows(["memory of a parser, KiB", "new", "between events, shapes learned", "inside an event"], body)
        )
    if "round_robin" in found:
        body = [
            [twin, f"{row['parsers']:,}", f"{row['in_turns_ns']:,.0f}", f"{row['apart_ns']:,.0f}"]
            for twin, row in found["round_robin"].items()
        ]
        parts.append(rows(["many parsers, ns per event", "parsers", "fed in turns", "one after the other"], body))
    if "threads" in found:
        body = [
            [twin, f"{row['small_events']:.2f} x", f"{row['long_strings']:.2f} x"]
            for twin, row in found["threads"].items()
        ]
        parts.append(rows(["two bodies parsed in two threads: gain", "small events", "long strings"], body))
    if "encoder" in found:
        for twin, row in found["encoder"].items():
            lengths = list(next(iter(row["texts"].values())))
            body = [
                [kind, *(f"{cells[each]['ratio']:.2f} ({cells[each]['encoder']:,.0f})" for each in lengths)]
                for kind, cells in row["texts"].items()
            ]
            head = [f"{twin}: Encoder.delta, times orjson's events a second (ns per event); characters", *lengths]
            parts.append(rows(head, body))
    if "startup" in found:
        body = [
            [twin, f"{row['over_start_ms']:.1f}", f"{row['statement_ms']:.1f}"]
            for twin, row in found["startup"].items()
        ]
        parts.append(rows(["import of llmstream, ms", "over the interpreter's start", "the statement alone"], body))
    if "hits" in found:
        streams = list(dict.fromkeys(stream for row in found["hits"].values() for stream in row))
        body = [
            [stream, *(f"{row[stream]:.1f}" if stream in row else "" for row in found["hits"].values())]
            for stream in streams
        ]
        parts.append(rows(["fragments read by a learned shape, %", *found["hits"]], body))
    return "\n".join(parts)


def whole(results: Results, verdicts: list[Verdict], facts: dict[str, Any], command: str) -> str:
    parts = [
        f"# Measured by `{command}`\n",
        f"```\n{machine.text(facts)}```\n",
        "## Targets\n\nRatios of the best of several runs taken in turns in one process.\n",
        targets(verdicts),
        "## Scaling, memory, import\n",
        figures(results.figures),
        "## Nanoseconds an event\n",
        speeds(results),
    ]
    if results.missing:
        parts.append("## Left out\n")
        parts.append("".join(f"- {name}: {why}\n" for name, why in results.missing.items()))
    return "\n".join(parts)
