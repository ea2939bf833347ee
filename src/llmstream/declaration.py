"""Declared paths: where a payload has the values that the engine reads by itself.

A path is written as in ``choices[0].delta.content``; a member whose name holds a dot or a bracket is written
``["a.b"]``. Both twins compile the same declarations: the extension into tables that its JSON walk follows, the
Python twin into look-ups.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Path = tuple[str | int, ...]

__all__ = ["Declaration", "Delta", "Form", "Node", "declare", "parse_path"]

MAX_PATHS = 60
"""How many different paths one dialect may declare."""

MAX_STEPS = 64
"""How many members and items lie on them, each counted once."""

MAX_CONSTANTS = 8
"""How many values one Delta's ``when`` may ask for."""


class Delta:
    """One form of payload that carries a single fragment and nothing else that counts.

    Exactly one of ``text``, ``reasoning`` and ``arguments`` is the path of the fragment, a string that is not empty. A
    payload has this form when all of the following hold; otherwise the next form is tried, and at last the dialect's
    ``translate``.

    ``when``          path -> the string, ``True`` or ``False`` that has to stand there
    ``absent``        paths that hold nothing or null; an item of an array must not be there at all
    ``empty``         paths that hold nothing, null or an empty string
    ``index``         path of the block's or the choice's number, an integer from 0 (nothing there: 0)
    ``call``          for ``arguments``: path of the tool call's number within the message (nothing there: 0)
    ``input_tokens``, ``output_tokens``   paths of two counts, both there or neither: they give a ``Usage`` beside it
    """

    __slots__ = (
        "absent",
        "arguments",
        "call",
        "empty",
        "index",
        "input_tokens",
        "output_tokens",
        "reasoning",
        "text",
        "when",
    )

    def __init__(
        self,
        *,
        text: str | None = None,
        reasoning: str | None = None,
        arguments: str | None = None,
        index: str | None = None,
        call: str | None = None,
        input_tokens: str | None = None,
        output_tokens: str | None = None,
        when: Mapping[str, str | bool] | None = None,
        absent: Iterable[str] = (),
        empty: Iterable[str] = (),
    ) -> None:
        if sum(path is not None for path in (text, reasoning, arguments)) != 1:
            raise ValueError("a Delta names exactly one of text, reasoning and arguments")
        if (input_tokens is None) != (output_tokens is None):
            raise ValueError("a Delta names both token counts or none")
        if input_tokens is not None and input_tokens == output_tokens:
            raise ValueError("the two token counts of a Delta have the same path")
        if call is not None and arguments is None:
            raise ValueError("call goes with arguments")
        if len(when or {}) > MAX_CONSTANTS:
            raise ValueError(f"more than {MAX_CONSTANTS} constants in a Delta")
        for value in (when or {}).values():
            if not isinstance(value, (str, bool)):
                raise TypeError("what a Delta's when asks for is a str or a bool")
        self.text = text
        self.reasoning = reasoning
        self.arguments = arguments
        self.index = index
        self.call = call
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.when = dict(when or {})
        self.absent = tuple(absent)
        self.empty = tuple(empty)


def parse_path(text: str) -> Path:
    """``choices[0].delta.content`` as ``("choices", 0, "delta", "content")``. Raises ValueError for anything else."""
    steps: list[str | int] = []
    rest = text
    while rest or not steps:
        if rest.startswith('["'):
            name, closed, rest = rest[2:].partition('"]')
            if not closed:
                raise ValueError(f"not a path: {text!r}")
            steps.append(name)
        elif rest.startswith("["):
            number, closed, rest = rest[1:].partition("]")
            if not closed or not (number.isascii() and number.isdigit()) or int(number) > 1000 or not steps:
                raise ValueError(f"not a path: {text!r}")
            steps.append(int(number))
        else:
            if steps:
                if not rest.startswith("."):
                    raise ValueError(f"not a path: {text!r}")
                rest = rest[1:]
            cut = min((at for at in (rest.find("."), rest.find("[")) if at >= 0), default=len(rest))
            name, rest = rest[:cut], rest[cut:]
            if not name or "]" in name or '"' in name:
                raise ValueError(f"not a path: {text!r}")
            steps.append(name)
    if len(steps) > 16 or len(text) > 1000:
        raise ValueError(f"a path of more than 16 steps or 1000 characters: {text[:100]!r}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("a path that holds half a surrogate pair")
    return tuple(steps)


class Node:
    """One container on wanted paths: its members or items, each with the number of its leaf (-1: none) and its node."""

    __slots__ = ("children", "is_array", "leaves")

    def __init__(self, is_array: bool) -> None:
        self.is_array = is_array
        self.leaves: dict[str | int, int] = {}
        self.children: dict[str | int, Node] = {}

    def steps(self) -> list[str | int]:
        """The members or items that are wanted, in the order of their declaration."""
        return list(dict.fromkeys([*self.leaves, *self.children]))

    def below(self, step: str | int) -> list[int]:
        """The numbers of all leaves at or under one step."""
        found = [self.leaves[step]] if step in self.leaves else []
        child = self.children.get(step)
        if child is not None:
            for inner in child.steps():
                found += child.below(inner)
        return found


class Form:
    """A Delta with its paths replaced by the numbers of leaves (-1: not declared)."""

    __slots__ = (
        "absent",
        "call",
        "content",
        "empty",
        "index",
        "input_tokens",
        "items",
        "kind",
        "output_tokens",
        "when",
    )

    def __init__(self, delta: Delta, leaf: Declaration) -> None:
        contents = {"text": delta.text, "reasoning": delta.reasoning, "arguments": delta.arguments}
        self.kind, path = next((kind, path) for kind, path in contents.items() if path is not None)
        self.content = leaf.add(path)
        self.index = leaf.add(delta.index)
        self.call = leaf.add(delta.call)
        self.input_tokens = leaf.add(delta.input_tokens)
        self.output_tokens = leaf.add(delta.output_tokens)
        self.when = [(leaf.add(path), value) for path, value in delta.when.items()]
        self.absent = [leaf.add(path) for path in delta.absent]
        self.empty = [leaf.add(path) for path in delta.empty]
        self.items = [number for number in self.absent if isinstance(leaf.paths[number][-1], int)]


class Declaration:
    """All paths of a dialect as one tree, and its forms over the leaves of that tree."""

    __slots__ = ("_steps", "compiled", "forms", "paths", "root")

    def __init__(self, deltas: Iterable[Delta] = (), paths: Iterable[str] = ()) -> None:
        self.root = Node(is_array=False)
        self._steps: set[Path] = set()
        self.paths: list[Path] = []
        for path in paths:
            self.add(path)
        self.forms = [Form(delta, self) for delta in deltas]
        self.compiled: Any = None  # what the extension makes of it

    def add(self, text: str | None) -> int:
        """The number of a path's leaf; the same path has one number, and None has -1."""
        if text is None:
            return -1
        path = parse_path(text)
        node = self.root
        for depth, step in enumerate(path[:-1], 1):
            wants_array = isinstance(path[depth], int)
            child = node.children.get(step)
            if child is None:
                child = node.children[step] = Node(wants_array)
            elif child.is_array != wants_array:
                raise ValueError(f"declared both as an array and as an object: {text!r}")
            node = child
        leaf = node.leaves.get(path[-1])
        if leaf is None:
            leaf = len(self.paths)
            if leaf == MAX_PATHS:
                raise ValueError(f"more than {MAX_PATHS} paths")
            self._steps.update(path[:end] for end in range(1, len(path) + 1))
            if len(self._steps) > MAX_STEPS:
                raise ValueError(f"more than {MAX_STEPS} steps on declared paths")
            self.paths.append(path)
            node.leaves[path[-1]] = leaf
        return leaf


MAX_DECLARATIONS = 64
_declarations: dict[tuple[Delta, ...], Declaration] = {}


def declare(deltas: Iterable[Delta]) -> Declaration:
    """The declaration of a dialect's forms; the same forms share one."""
    key = tuple(deltas)
    found = _declarations.get(key)
    if found is None:
        if len(_declarations) >= MAX_DECLARATIONS:
            _declarations.clear()
        found = _declarations[key] = Declaration(key)
    return found
