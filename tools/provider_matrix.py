"""Writes docs/providers.md: what was read of each provider's recorded streams, and of no provider what was not.

    python tools/provider_matrix.py [CAPTURES] [--check]

Every recording is read by ``auto`` and by the name of its dialect, whole and cut into chunks of 7 bytes; a feature is
counted where all four ways give it. With ``--check`` nothing is written, and the exit status is 1 where the page is not
what would be written. Without the recordings it is 2.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter, defaultdict
from pathlib import Path

import llmstream
from llmstream import _registry
from llmstream.dialects import VARIANTS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "providers.md"

FEATURES = ("text", "reasoning", "tools", "parallel tools", "usage", "errors", "stop reasons", "several choices")
VECTORS = ("aws-eventstream", "connect", "signalr")

HEAD = """\
# Providers

What was read of recorded streams, by provider and API: the number of recordings in which it occurs. This page is
written by `tools/provider_matrix.py`; an empty cell says that no recording has it, not that it would not be read.

"""

NOTES = """
## Which format it is

With `dialect="auto"` the first payloads tell. Where an HTTP response is read, its Content-Type and its URL are a
presumption, and `llmstream.dialect_for(content_type=..., path=...)` makes one for bytes that come by another way:

- payloads that show another format win: `result.dialect` is what was read;
- a payload that shows none, like a ping, is read as presumed. Without a presumption up to 64 of them wait;
- where nothing tells, payloads are `UnknownEvent`s, and the violation `L-DIALECT` lists the candidates;
- a JSON body that is an error page of a server or gateway (`{"detail": "Not Found"}`) is that error.

Connect with protobuf is known by its Content-Type alone. A chunk of Bedrock's is a model's where it is padded (`p`) or
has all that the payloads of the model's maker have, and else an agent's, whose text may be JSON like any other.

Providers that stream a format of others have a name of their own for it: `dialect="groq"` reads what `dialect="openai"`
reads, and its extensions are called `groq:...`. As `openai` those are `alibaba`, `azure`, `cerebras`, `crusoe`,
`deepseek`, `fireworks`, `github-copilot`, `gpustack`, `groq`, `huggingface`, `hyperbolic`, `litellm`, `lmstudio`,
`mistral`, `moonshot`, `nebius`, `novita`, `nvidia`, `openrouter`, `perplexity`, `sambanova`, `sglang`, `together`,
`vllm`, `writer`, `xai`, `zai`; as `gemini` it is `vertexai`, as `connect` they are `cursor` and `windsurf`, and as
`signalr` it is `microsoft-copilot`.

Under the name of a dialect that is not that of the stream, nothing of the answer may be found. Where payloads came, and
none was of the dialect's form, that is the violation `L-DIALECT`, and a `Transcoder` ends with an error. `connect` and
`signalr` carry payloads of any form: [say where the text is](guides/write-a-provider.md#connect-and-signalr), or their
first message is `L-DIALECT`, and the stream is not complete.

## When a stream is complete

`complete` says that the stream ended as its protocol says, and nothing else: a provider that fails may end its stream
well after the error, so test `error` too. A `Transcoder`'s `complete` is both.

It ends with the provider's end mark (`[DONE]`, `message_stop`, a last frame), or, where it has none, once every choice
that was seen has its stop reason. Torn after that, in the middle of an event, a frame or a JSON array, it is not
complete, since what was lost is not known.

One exception nothing in the bytes can mend: old Gemini models give `finishReason: STOP` with *every* piece of text,
and neither token counts nor an end mark. The last reason is that of the answer. One that is followed by more text or
by a call is taken back, and a warning (`L-STOP`)
says that this stream is one of those; but cut exactly between two events, it is to the byte a shorter answer, and looks
complete. Asked for a JSON array instead of Server-Sent Events (without `alt=sse`), the same models are safe: the array
has to be closed.
"""


def features(result: llmstream.StreamResult) -> set[str]:
    """Those of FEATURES that a stream had."""
    found = {
        "text": result.text,
        "reasoning": result.reasoning,
        "tools": result.tool_calls,
        "parallel tools": len(result.tool_calls) > 1,
        "usage": result.usage,
        "errors": result.error,
        "stop reasons": result.stop_reasons,
        "several choices": len(result.stop_reasons) > 1
        and len(result.texts) > 1
        and set(result.texts) > {0}
        and result.text == result.texts.get(0),
    }
    return {name for name in FEATURES if found[name]}


def read(data: bytes) -> tuple[str, set[str]]:
    """The dialect of a recording, and what every way of reading it finds."""
    told = llmstream.parse(data, dialect="auto").dialect
    pieces = [data[at : at + 7] for at in range(0, len(data), 7)]
    ways = [features(llmstream.parse(chunks, dialect=name)) for chunks in (data, pieces) for name in ("auto", told)]
    return told, set.intersection(*ways)


def matrix(captures: Path) -> str:
    """The page."""
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    with (captures / "manifest.tsv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["vendor"] not in VECTORS]
    for row in rows:
        dialect, found = read((captures / row["file"]).read_bytes())
        counts[row["vendor"], row["api"], dialect].update(["recordings", *found])

    lines = [f"| provider | API | dialect | recordings | {' | '.join(FEATURES)} |"]
    lines.append("|---|---|---|" + "---:|" * (1 + len(FEATURES)))
    for (vendor, api, dialect), count in sorted(counts.items()):
        cells = [str(count[name] or "") for name in ("recordings", *FEATURES)]
        lines.append(f"| {vendor} | {api} | `{dialect}` | {' | '.join(cells)} |")
    lines.append("")

    recorded = {dialect for _, _, dialect in counts} | {vendor for vendor, _, _ in counts}
    families = {name: family for family, names in VARIANTS.items() for name in names}
    rest = [name for name in _registry.names() if name not in recorded and name not in ("auto", _registry.STANDARD)]
    lines += ["Without a recording, tested with streams of our own:", ""]
    for name in rest:
        lines.append(f"- `{name}`" + (f", as `{families[name]}`" if name in families else ""))
    return HEAD + "\n".join(lines) + "\n" + NOTES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="?", type=Path, default=ROOT.parent / "shared" / "captures")
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    options = parser.parse_args()
    if not (options.captures / "manifest.tsv").is_file():
        print(f"no recordings in {options.captures}", file=sys.stderr)
        return 2
    page = matrix(options.captures)
    if options.check:
        return int(not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
