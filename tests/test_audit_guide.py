"""The examples of the guide on audits, and that it tells of every field."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from streams import BODY

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "audit.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_examples(llmstream, capsys):
    first, second, third = blocks()
    names: dict[str, Any] = {"body": BODY}
    exec(first, names)
    assert capsys.readouterr().out == "writer-1 4 True 0\n"
    assert names["record"].user_id == "u-1"

    sent: list[bytes] = []
    names = {"chunks": [BODY[:100], BODY[100:]], "send": sent.append}
    exec(second, names)
    record = names["record"]
    assert b"".join(sent) == BODY
    assert record.started_at <= record.first_token_at <= record.ended_at

    names = {}
    exec(third, names)
    body = BODY.replace(b"Hello", b"Write to a.b@example.org, ")
    audit = import_module("llmstream.audit").audit
    redacted = audit(body, redact=names["redact"])
    assert redacted.text.startswith("Write to [address], ")
    assert audit(body, content=False, redact=names["redact"]).text is None


def test_every_field(llmstream):
    names: tuple[str, ...] = import_module("llmstream.audit.record").NAMES
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    table = "".join(line.split("|")[1] for line in lines if line.startswith("| `"))
    assert set(names) <= set(re.findall(r"`([a-z0-9_]+)`", table))
