"""From payload to object: by the templates of the stream, and by the SDK itself wherever there is a doubt."""

from __future__ import annotations

import json
import sys

from .template import learn, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .template import Template, Values

__all__ = ["Matched", "Templates", "Unmatched", "process"]

MAX_TEMPLATES = 8
"""Templates kept for one stream."""

MAX_TRIES = 8
"""Payloads that are learned from in one stream, beside one more for each 16 that were built by a template."""


class Templates:
    """The templates of one stream of the SDK ``package``."""

    __slots__ = ("hits", "known", "package", "tries")

    def __init__(self, package: str) -> None:
        self.package = package
        self.known: list[Template] = []
        self.tries = 0
        self.hits = 0

    def load(self, data: str) -> Any:
        """The JSON of a payload, in a form that tells ``process`` what is known of it."""
        for template in self.known:
            free = template.match(data)
            if free is not None:
                if not template.proved:
                    return Unmatched(data, json.loads(data), self, template)
                self.hits += 1
                return Matched(data, template, free)
        payload = json.loads(data)
        if type(payload) is dict and self.tries < MAX_TRIES + self.hits // 16:
            return Unmatched(data, payload, self, None)
        return payload

    def learn(self, payload: Unmatched, built: Any, cast_to: object) -> None:
        """The SDK built this of a payload: a template is proved by it, dropped for it, or learned from it."""
        template = payload.template
        if template is None:
            self.tries += 1
            learned = learn(payload.data, payload.plain, built, cast_to, self.package)
            if learned is not None:
                self.known = [learned, *self.known[: MAX_TEMPLATES - 1]]
        elif same(template.build(template.match(payload.data) or ()), built) and template.cast_to is cast_to:
            template.proved = True
        else:
            self.stop()

    def stop(self) -> None:
        """This stream is left to the SDK."""
        self.known = []
        self.tries = sys.maxsize


class Unmatched(dict):  # type: ignore[type-arg]
    """The JSON object of a payload that the SDK builds, and that is then learned from.

    The SDK's own code is handed ``plain``, so that no object ever holds one of this class.
    """

    __slots__ = ("data", "plain", "template", "templates")

    def __init__(self, data: str, plain: dict[str, Any], templates: Templates, template: Template | None) -> None:
        super().__init__(plain)
        self.data = data
        self.plain = plain
        self.templates = templates
        self.template = template


class Matched(dict):  # type: ignore[type-arg]
    """The JSON object of a payload that a template builds; it is read only if somebody asks for more than a member
    that is not there (the SDK asks each payload whether it is an error).
    """

    __slots__ = ("data", "free", "template")

    def __init__(self, data: str, template: Template, free: Values) -> None:
        self.data = data
        self.template: Template | None = template
        self.free = free

    def fill(self) -> None:
        """Becomes the whole object. It may be changed from now on, and is no longer built by a template."""
        if self.template is not None:
            self.template = None
            dict.update(self, json.loads(self.data))

    def get(self, name: str, default: Any = None) -> Any:
        template = self.template
        if template is not None and name not in template.names:
            return default
        self.fill()
        return dict.get(self, name, default)


def _filled(name: str) -> Callable[..., Any]:
    method = getattr(dict, name)

    def call(self: Matched, *arguments: Any, **keywords: Any) -> Any:
        self.fill()
        return method(self, *arguments, **keywords)

    call.__name__ = call.__qualname__ = name
    return call


for _name in (
    "__contains__", "__delitem__", "__eq__", "__ge__", "__getitem__", "__gt__", "__ior__", "__iter__", "__le__",
    "__len__", "__lt__", "__ne__", "__or__", "__repr__", "__reversed__", "__ror__", "__setitem__", "clear", "copy",
    "items", "keys", "pop", "popitem", "setdefault", "update", "values",
):  # fmt: skip
    setattr(Matched, _name, _filled(_name))


def process(original: Callable[..., Any], is_text: Callable[[object], bool]) -> Callable[..., Any]:
    """A client's ``_process_response_data`` that builds what its streams' templates know, and leaves the rest to
    ``original``.

    ``is_text``  whether a stream of this class is one of texts, from which templates are learned
    """

    def _process_response_data(self: Any, *, data: Any, cast_to: Any, response: Any) -> Any:
        kind = type(data)
        if kind is Matched:
            template = data.template
            if template is not None and template.cast_to is cast_to and not self._strict_response_validation:
                return template.build(data.free)
        if kind is not Unmatched:
            return original(self, data=_plain(data), cast_to=cast_to, response=response)
        built = original(self, data=data.plain, cast_to=cast_to, response=response)
        try:
            if is_text(cast_to) and not self._strict_response_validation:
                data.templates.learn(data, built, cast_to)
            else:
                data.templates.stop()
        except Exception:  # noqa: BLE001 (whatever it is, the SDK has built its object, and builds those to come)
            data.templates.stop()
        return built

    return _process_response_data


def _plain(data: Any) -> Any:
    """The payload as JSON gives it, also within the wrapper of an assistant's event."""
    if type(data) is Matched:
        data.fill()
        return dict(data)
    if type(data) is Unmatched:
        return data.plain
    if type(data) is dict and type(data.get("data")) in (Matched, Unmatched):
        return {**data, "data": _plain(data["data"])}
    return data
