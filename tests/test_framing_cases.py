"""The handed vectors and captures of the framings that are not SSE, at every split."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import import_module

import pytest

import frames
import handed
import splits

LIMIT = 16 * 2**20

# What the vectors say is wrong -> the reason that the framing gives.
BROKEN = {
    "aws/botocore-bad/corrupt-headers-length": "checksum of the prelude",
    "aws/botocore-bad/corrupt-headers": "checksum of the message",
    "aws/botocore-bad/corrupt-length": "checksum of the prelude",
    "aws/botocore-bad/corrupt-payload": "checksum of the message",
    "aws/own-bad/total-15": "total length",
    "aws/own-bad/headers-over-total": "length of the headers",
    "aws/own-bad/total-2^32-1": "too large",
    "connect/bad/reserved-bit": "reserved flags",
    "connect/bad/after-end": "bytes after the end of the stream",
    "connect/bad/compressed-no-encoding": "compressed without a known encoding",
    "connect/bad/end-not-json": "end of the stream is not JSON",
    "grpc/bad/flag-2": "reserved flags",
    "grpc/bad/compressed-no-encoding": "compressed without a known encoding",
    "grpc/bad/4GiB": "too large",
}
UNFINISHED = {
    "aws/own-bad/short-prelude": "frame cut",
    "aws/own-bad/short-message": "frame cut",
    "connect/bad/no-end": "no end of the stream",
    "connect/bad/cut-header": "frame cut",
    "connect/bad/cut-body": "frame cut",
    "signalr/bad/no-rs": "record cut",
}
REPORTED = {
    "aws/botocore-bad/duplicate-header": "a header is repeated",
    "connect/bad/end-error-null": "end of the stream of another form",
    "signalr/bad/both": "result and error together",
}
NOT_JSON = ("signalr/bad/empty-record", "signalr/bad/raw-rs-in-string")
DELIVERED = {"connect/bad/after-end": 1, "connect/bad/no-end": 1, **dict.fromkeys(REPORTED, 1)}
ENDLESS = ("connect/data", "connect/gzip", "connect/empty-message")  # no whole streams: single envelopes


def maker(row_or_file, llmstream):
    """Of the framing of a vector or capture, and the limit."""
    kind = row_or_file if isinstance(row_or_file, str) else row_or_file["protocol"]
    if kind.startswith(("aws", "bedrock")):
        return lambda: import_module("llmstream.framing.aws_event_stream").AWSEventStreamFraming(LIMIT)
    if kind.startswith("signalr"):
        return lambda: import_module("llmstream.framing.signalr").SignalRFraming(LIMIT)
    connect = import_module("llmstream.framing.connect")
    cls = connect.GRPCWebFraming if "grpcweb" in kind else connect.GRPCFraming if kind == "grpc" else None
    encoding = "gzip"
    if not isinstance(row_or_file, str) and "no-encoding" in row_or_file["name"]:
        encoding = None
    return lambda: (cls or connect.ConnectFraming)(LIMIT, encoding)


def test_vectors(llmstream):
    rows = handed.rows("framing.jsonl")
    assert {*BROKEN, *UNFINISHED, *REPORTED, *NOT_JSON} == {row["name"] for row in rows if "error" in row["expect"]}
    for row in rows:
        data = base64.b64decode(row["bytes_b64"])
        found = frames.same(maker(row, llmstream), splits.every_way(data))
        check_vector(row, found)
        handed.handed("framing.jsonl", row["name"])


def check_vector(row, found):
    name, expect = row["name"], row["expect"]
    if "error" in expect:
        assert found.broken == (name in BROKEN), name
        assert found.unfinished == (name in UNFINISHED), name
        assert found.reason == (BROKEN.get(name) or UNFINISHED.get(name) or ""), name
        assert [reason for _, reason in found.reports] == ([REPORTED[name]] if name in REPORTED else []), name
        if name in NOT_JSON:
            assert found.frames
            for frame in found.frames:
                with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
                    json.loads(frame.data)
        else:
            assert len(found.frames) == DELIVERED.get(name, 0), name
        return
    assert not found.broken, name
    assert not found.reports, name
    assert found.unfinished == (name in ENDLESS), name
    if "frames" in expect or isinstance(expect.get("records"), int):
        assert len(found.frames) == expect.get("frames", expect.get("records")), name
        return
    if "records" in expect:
        assert [json.loads(data) for data in found.data] == expect["records"], name
        return
    (frame,) = found.frames
    if "headers" in expect:
        headers = [[key, kind, value.decode() if type(value) is bytes else value] for key, kind, value in frame.fields]
        if name == "aws/botocore/all-types":
            assert [value for _, _, value in frame.fields[:2]] == [True, False]
            headers[0][2] = headers[1][2] = None
        assert headers == expect["headers"], name
        if not (name == "aws/botocore/error" and expect["payload"] == ""):
            assert frame.data == expect["payload"].encode(), name
    elif "end" in expect:
        assert frame.event == ("error" if "error" in expect["end"] else "end"), name
        assert json.loads(frame.data) == frame.value == expect["end"], name
    else:
        assert frame.event is None
        wanted = bytes.fromhex(expect["message_hex"]) if "message_hex" in expect else expect["message"].encode()
        assert frame.data == wanted, name


def test_captures(llmstream):
    rows = handed.rows("framed captures")
    for row in rows:
        data = (handed.SHARED / "captures" / row["file"]).read_bytes()
        found = frames.same(maker(row["file"], llmstream), splits.every_way(data))
        check_capture(row, data, found)
        handed.handed("framed captures", row["file"])


def check_capture(row, data, found):
    name = row["file"]
    if row["api"] == "event-stream vectors":
        if row["error"]:
            assert found.broken
            assert "prelude" in row["error"] or found.reason == "checksum of the message"
            assert "message" in row["error"] or found.reason == "checksum of the prelude"
        else:
            assert [message["payload"].encode() for message in row["messages"]] == found.data
            for message, frame in zip(row["messages"], found.frames, strict=True):
                assert {key: value for key, _, value in frame.fields} == frame.headers
                wanted = {key: decoded(key, value) for key, value in message["headers"].items()}
                assert frame.headers == wanted, name
    elif "envelopes" in row:
        for envelope, frame in zip(row["envelopes"], found.frames, strict=True):
            body = data[frame.offset + 5 : frame.offset + 5 + envelope["length"]]
            assert hashlib.sha256(body).hexdigest() == envelope["sha256"], name
            assert data[frame.offset] == envelope["flags"]
            assert (frame.event is None) == (envelope["flags"] == 0)
            if envelope["flags"] < 0x80:
                assert frame.data == body, name
        assert found.frames[-1].event in ("end", "error")
    elif "types" in row:
        values = [json.loads(each) for each in found.data]
        assert [value["type"] for value in values] == row["types"]
        assert row["error"] in [value.get("error") for value in values]
    else:
        assert len(found.frames) == row["events"], name
        assert all(json.loads(each) for each in found.data)
        kinds = {frame.kind for frame in found.frames}
        assert kinds == ({"exception"} if row["error"] else {"event"}), name
        if row["error"]:
            assert found.events == [f"exception:{row['error']['type']}"]
            assert json.loads(found.data[0])["message"] == row["error"]["message"]
    faulty = bool(row["error"]) and row["api"] == "event-stream vectors"
    assert (found.broken, found.unfinished) == (faulty, False), name


def decoded(key, value):
    return {"byte buf": b"I'm a little teapot!", "uuid": bytes(range(1, 17))}.get(key, value)


@pytest.mark.parametrize(
    ("file", "error", "metadata"),
    [
        ("connect-end-stream-missing-code", {"message": "oops"}, {}),
        ("connect-end-stream-missing-message", {"code": "unauthenticated"}, {}),
        ("connect-server-stream-empty-response", None, {"x-custom-trailer": ["bing"]}),
        ("grpcweb-bidi-stream-half-duplex-empty-response", None, {"x-custom-trailer": ["bing"]}),
        (
            "grpcweb-unary-trailers-in-body-duplicate-metadata",
            {"code": "failed_precondition", "message": "error"},
            {"x-custom-trailer": ["bing", "quuz"]},
        ),
        (
            "grpcweb-server-stream-trailers-in-body-mixed-case",
            {"code": "failed_precondition", "message": "error"},
            {"x-custom-trailer": ["bing"]},
        ),
        ("grpcweb-trailers-in-body-missing-status", {"code": "unknown", "message": "error"}, {}),
    ],
)
def test_ends(llmstream, file, error, metadata):
    path = handed.SHARED / "captures" / "connect" / f"{file}.connect"
    if not path.is_file():
        pytest.skip("no captures")
    found = frames.read(maker(path.name, llmstream)(), [path.read_bytes()])
    end = found.frames[-1]
    assert (end.error, end.metadata) == (error, metadata)
    assert end.event == ("end" if error is None else "error")
    assert bool(found.reports) == ("missing-code" in file or "missing-status" in file)


def test_a_cut_capture_is_never_taken_for_a_whole_one(llmstream):
    for row in handed.rows("framed captures"):
        if row["api"] == "event-stream vectors":
            continue
        data = (handed.SHARED / "captures" / row["file"]).read_bytes()
        make = maker(row["file"], llmstream)
        whole = frames.read(make(), [data])
        between = {0, len(data)} | {frame.offset for frame in whole.frames}
        for cut in range(0, len(data), 1 + len(data) // 500):
            part = frames.read(make(), [data[:cut]])
            assert part.frames == whole.frames[: len(part.frames)]
            if cut not in between:
                assert part.unfinished, (row["file"], cut)
