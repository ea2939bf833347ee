"""JSON text that goes on as it came: read and written again, it keeps its numbers, whatever Python makes of them."""

from __future__ import annotations

from . import payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

__all__ = ["compact", "members"]

_patterns: list[re.Pattern[str]] = []  # compiled when they are first needed, to keep the import light


def _compiled() -> list[re.Pattern[str]]:
    """A token or several without space between them; a name with a value that is no array or object; all up to and with
    the next bracket."""
    if not _patterns:
        import re

        string = r'"(?:[^"\\]++|\\.)*+"'
        _patterns[:] = (
            re.compile(rf'{string}|[^" \t\r\n]++', re.DOTALL),
            re.compile(rf'({string}):({string}|[^"\[\]{{}},]*+)', re.DOTALL),
            re.compile(rf'(?:{string}|[^"\[\]{{}}]++)*+[\[\]{{}}]', re.DOTALL),
        )
    return _patterns


def compact(text: str) -> str:
    """``text``, which is valid JSON, without the space between its tokens. Nothing else of it changes."""
    return "".join(_compiled()[0].findall(text))


def members(text: str) -> dict[str, str]:
    """The members of a JSON object by name, each value as compact JSON text. ``text`` has to be valid, at any depth; of
    members with one name the last counts (resolution A-16)."""
    _, member, to_bracket = _compiled()
    text = compact(text)
    found: dict[str, str] = {}
    at = 1
    while text[at] != "}":
        match = member.match(text, at)
        if match is None:
            raise ValueError("not a JSON object")
        name, value = match.groups()
        at = match.end()
        if not value:
            begin, at = at, _end_of_nested(to_bracket, text, at)
            value = text[begin:at]
        found[payload.loads(name) if "\\" in name else name[1:-1]] = value
        at += text[at] == ","
    return found


def _end_of_nested(to_bracket: re.Pattern[str], text: str, at: int) -> int:
    depth = 0
    for match in to_bracket.finditer(text, at):
        depth += 1 if text[match.end() - 1] in "[{" else -1
        if depth <= 0:
            return match.end()
    raise ValueError("not a JSON object")
