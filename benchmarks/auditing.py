"""What a record of a stream costs: ``llmstream.audit`` beside a straightforward Python and json script.

    python -m benchmarks.auditing            # in memory, on one core, then files on one core and on two
    python -m benchmarks.auditing --quick

Both make the same records, as JSON: text, tokens, stop reason, counts, and the digests of text and bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from . import twins
from .streams import build
from .timing import Case, interleave, pinned

STREAMS = {
    "draft-mixed": "llm-stream",
    "anthropic-text": "anthropic",
    "chat-text": "openai",
    "gemini-text": "gemini",
}
MIB = 1 << 20


def straightforward(stream_id: str, dialect: str, body: bytes, version: str, wire_digest: bool) -> bytes:
    """The record as somebody would write it for his own use, line by line."""
    state: dict[str, Any] = {"texts": [], "stops": [], "gaps": [], "seq": None, "first": None, "events": 0, "usages": 0}
    take = TAKERS[dialect]
    data: list[str] = []
    for line in body.decode("utf-8", "replace").split("\n"):
        if not line:
            if data:
                take(state, "\n".join(data))
                data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
    text = "".join(state["texts"])
    record = {
        "stream_id": stream_id,
        "request_id": state.get("request_id"),
        **dict.fromkeys(("provider", "endpoint", "user_id", "session_id", "started_at", "first_token_at", "ended_at")),
        "dialect": dialect,
        "model": state.get("model"),
        "created": state.get("created"),
        "complete": state.get("complete", False),
        "text": text,
        "text_length": len(text),
        "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "tool_calls": [],
        "tool_call_count": 0,
        "stops": state["stops"],
        "input_tokens": state.get("input_tokens"),
        "output_tokens": state.get("output_tokens"),
        "usage_count": state["usages"],
        **dict.fromkeys(("error_code", "vendor_error_code", "error_message")),
        "event_count": state["events"],
        "unknown_event_count": 0,
        "first_seq": state["first"],
        "last_seq": state["seq"],
        "gaps": state["gaps"],
        "violations": [],
        "violation_count": 0,
        "fault_count": 0,
        "byte_count": len(body),
        "wire_sha256": hashlib.sha256(body).hexdigest() if wire_digest else None,
        "parser_version": version,
        "fault": None,
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def take_draft(state: dict[str, Any], data: str) -> None:
    event = json.loads(data)
    seq, kind = event["seq"], event["type"]
    if state["seq"] is None:
        state["first"] = seq
    elif seq > state["seq"] + 1:
        state["gaps"].append([state["seq"] + 1, seq - 1])
    state["seq"] = seq
    state["events"] += 1
    if kind == "content.delta":
        state["texts"].append(event["delta"]["text"])
    elif kind == "stream.start":
        state.update(model=event["model"], created=event["created"], request_id=event.get("request_id"))
    elif kind == "content.stop":
        state["stops"].append({"index": event["index"], "reason": event["stop_reason"], "vendor_reason": None})
    elif kind == "usage":
        state["usages"] += 1
        state.update(input_tokens=event["input_tokens"], output_tokens=event["output_tokens"])
    elif kind == "stream.end":
        state["complete"] = True


def take_anthropic(state: dict[str, Any], data: str) -> None:
    event = json.loads(data)
    kind = event["type"]
    if kind == "content_block_delta":
        if event["delta"]["type"] != "text_delta":
            return
        state["texts"].append(event["delta"]["text"])
    elif kind == "message_start":
        message = event["message"]
        state.update(model=message["model"], request_id=message["id"], first=0)
        count(state, 1)
        state["usages"] += 1
        state.update(input_tokens=message["usage"]["input_tokens"], output_tokens=message["usage"]["output_tokens"])
    elif kind == "message_delta":
        reason = event["delta"]["stop_reason"]
        state["stops"].append({"index": 0, "reason": reason, "vendor_reason": reason})
        count(state, 1)
        state["usages"] += 1
        state["output_tokens"] = event["usage"]["output_tokens"]
    elif kind == "message_stop":
        state["complete"] = True
    else:
        return
    count(state, 1)


def take_openai(state: dict[str, Any], data: str) -> None:
    if data == "[DONE]":
        state["complete"] = True
        count(state, 1)
        return
    event = json.loads(data)
    if state["first"] is None:
        state.update(model=event["model"], created=event["created"], request_id=event["id"], first=0)
        count(state, 1)
    for choice in event["choices"]:
        content = choice["delta"].get("content")
        if content and not choice["index"]:
            state["texts"].append(content)
            count(state, 1)
        reason = choice["finish_reason"]
        if reason is not None:
            word = {"stop": "end_turn", "length": "max_tokens"}.get(reason, reason)
            state["stops"].append({"index": choice["index"], "reason": word, "vendor_reason": reason})
            count(state, 1)


def take_gemini(state: dict[str, Any], data: str) -> None:
    event = json.loads(data)
    if state["first"] is None:
        state.update(model=event["modelVersion"], request_id=event["responseId"], first=0)
        count(state, 1)
    for candidate in event["candidates"]:
        for part in candidate["content"]["parts"]:
            if not candidate["index"] and not part.get("thought"):
                state["texts"].append(part["text"])
                count(state, 1)
        reason = candidate.get("finishReason")
        if reason is not None:
            word = {"STOP": "end_turn", "MAX_TOKENS": "max_tokens"}.get(reason, reason)
            state["stops"].append({"index": candidate["index"], "reason": word, "vendor_reason": reason})
            state["complete"] = True
            count(state, 2)
    usage = event.get("usageMetadata")
    if usage is not None:
        count(state, 1)
        state["usages"] += 1
        state.update(input_tokens=usage["promptTokenCount"], output_tokens=usage["candidatesTokenCount"])


def count(state: dict[str, Any], events: int) -> None:
    state["events"] += events
    state["seq"] = state["events"] - 1


TAKERS = {"llm-stream": take_draft, "anthropic": take_anthropic, "openai": take_openai, "gemini": take_gemini}


def bodies(name: str, events: int) -> list[bytes]:
    stream = build(name, events)
    assert stream is not None
    return [b"".join(body) for body in stream.bodies]


def in_memory(
    twin: str, events: int, rounds: int, wire_digest: bool, tick: Callable[[str], object]
) -> dict[str, dict[str, float]]:
    """Stream -> megabytes a second of both, and their ratio; fails where the records differ."""
    package = twins.package(twin)
    from importlib import import_module

    audit, version = import_module("llmstream.audit").audit, package.__version__
    found = {}
    for name, dialect in STREAMS.items():
        given = bodies(name, events)

        def ours(given: list[bytes] = given) -> list[bytes]:
            return [audit(body, "s", wire_digest=wire_digest).to_json() for body in given]

        def theirs(given: list[bytes] = given, dialect: str = dialect) -> list[bytes]:
            return [straightforward("s", dialect, body, version, wire_digest) for body in given]

        wanted, made = ([json.loads(line) for line in write()] for write in (theirs, ours))
        if made != wanted:
            names = [key for key in wanted[0] if wanted[0][key] != made[0].get(key)]
            raise AssertionError(f"{name}: the records differ in {names}")
        repeat = max(1, 2 * MIB // sum(map(len, given)))
        cases = [
            Case("ours", lambda ours=ours, repeat=repeat: [ours() for _ in range(repeat)]),  # type: ignore[misc]
            Case("script", theirs),
        ]
        interleave(cases, rounds, 20, tick)
        size = sum(map(len, given))
        rates = (size * repeat / cases[0].best / 1e6, size / cases[1].best / 1e6)
        found[name] = {"ours": rates[0], "script": rates[1], "ratio": rates[0] / rates[1]}
    return found


def files(mebibytes: int, rounds: int) -> dict[int, float]:
    """Workers -> megabytes a second of ``llmstream audit`` over files of 1 MiB that are in memory already, start-up and
    all: the best run."""
    body = b"".join(bodies("draft-mixed", 8_000))
    found: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "in"
        folder.mkdir()
        number = mebibytes * MIB // len(body)
        one = Path(name) / "one.sse"
        one.write_bytes(body)
        for at in range(number):
            os.link(one, folder / f"{at:06}.sse")
        for _ in range(rounds):
            for workers in (1, 2):
                output = str(Path(name) / "out.jsonl")
                command = [
                    sys.executable,
                    "-m",
                    "llmstream",
                    "audit",
                    str(folder),
                    "-o",
                    output,
                    "--jobs",
                    str(workers),
                ]
                start = perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                rate = number * len(body) / (perf_counter() - start) / 1e6
                found[workers] = max(found.get(workers, 0.0), rate)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--twin", choices=twins.NAMES, default="cython")
    found = options.parse_args()
    rounds = 3 if found.quick else 9
    with pinned():
        for wire_digest in (True, False):
            for events in (1_000, 8_000):
                with_it = "with" if wire_digest else "without"
                print(f"In memory, one core, streams of {events} events, {with_it} SHA-256 of all bytes, MB/s")
                for name, row in in_memory(found.twin, events, rounds, wire_digest, lambda name: None).items():
                    print(f"  {name:16} ours {row['ours']:8.1f}  script {row['script']:6.1f}  {row['ratio']:5.1f} x")
    os.environ["LLMSTREAM_IMPLEMENTATION"] = found.twin
    rates = files(512 if found.quick else 8192, 2 if found.quick else 5)
    print(f"Files, MB/s: one core {rates[1]:.1f}, two cores {rates[2]:.1f} ({rates[2] / rates[1]:.2f} x)")


if __name__ == "__main__":
    main()
