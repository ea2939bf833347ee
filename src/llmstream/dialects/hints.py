"""What a response says of its format before its first byte: the media type, and the path that was asked."""

from __future__ import annotations

from functools import partial

from .. import _registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .base import Dialect

__all__ = ["dialect_for", "hint"]

MEDIA_TYPES = {
    "application/connect+json": "connect",
    "application/connect+proto": "connect",
    "application/vnd.amazon.eventstream": "bedrock",
}
"""Media type -> the dialect that has it to itself. Of text/event-stream, application/x-ndjson and application/json
only the payloads tell."""

PATHS = (
    ("/chat/completions", "openai"),
    ("/audio/transcriptions", "openai-transcriptions"),
    ("/completions", "openai-completions"),
    ("/responses", "openai-responses"),
    ("/runs", "openai-assistants"),
    ("/submit_tool_outputs", "openai-assistants"),
    ("/messages", "anthropic"),
    (":streamrawpredict", "anthropic"),
    ("/complete", "anthropic-complete"),
    (":streamgeneratecontent", "gemini"),
    (":generatecontent", "gemini"),
    ("/interactions", "gemini-interactions"),
    ("/converse-stream", "bedrock"),
    ("/invoke-with-response-stream", "bedrock"),
    ("/v2/chat", "cohere"),
    ("/v1/chat", "cohere-v1"),
    ("/v1/generate", "cohere-v1"),
    ("/api/chat", "ollama"),
    ("/api/generate", "ollama"),
    ("/generate_stream", "tgi"),
    ("/text/generation_stream", "watsonx"),
    ("/text/chat_stream", "watsonx"),
    ("/inference:complete", "snowflake"),
    ("/completion", "llamacpp"),
    ("/infill", "llamacpp"),
)
"""How a path ends, in lower case -> the dialect that is answered there; the first that fits counts."""


def hint(content_type: str | None, path: str | None) -> str | None:
    """The name of the dialect that a media type or a path or URL speaks for; None where neither does. The media type
    counts first."""
    media_type, _, parameters = (content_type or "").lower().partition(";")
    found = MEDIA_TYPES.get(media_type.strip())
    if found is None and "profile" in parameters and _registry.STANDARD in parameters:
        return _registry.STANDARD
    asked = (path or "").partition("?")[0].partition("#")[0].rstrip("/").lower()
    if found is None:
        found = next((name for end, name in PATHS if asked.endswith(end)), None)
    if "/agents/" in asked and "/sessions/" in asked and found in (None, "bedrock"):
        return "bedrock-agent"
    return found


def dialect_for(*, content_type: str | None = None, path: str | None = None) -> Callable[[], Dialect]:
    """The dialect of a response, from its Content-Type and the path or URL that was asked: what ``Parser``, ``parse``
    and the others take as ``dialect``::

        llmstream.parse(body, dialect=llmstream.dialect_for(path="/v1/messages"))

    It is ``auto`` with a presumption, and so ``auto`` itself where neither says anything. Payloads that show another
    format than the presumed one win; those that show none are read as it says. ``result.dialect`` is what was read in
    the end. ``parse`` and the others do this by themselves for a response that is read with ``auto``.

    Raises TypeError for what is no str."""
    for name, value in (("content_type", content_type), ("path", path)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must be a str or None, not {type(value).__name__}")
    presumed = hint(content_type, path)
    if presumed == "connect":
        from .connect import Connect

        return partial(Connect, "connect")  # of protobuf no payload shows anything
    from .auto import Auto

    return partial(Auto, presumed=presumed)
