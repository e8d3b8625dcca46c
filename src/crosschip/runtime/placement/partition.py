"""Partition configurations: lists of a file's operators, in NNAdapter's format.

A line selects operators as `type:inputs:outputs`, with the framework's types and names. Omitted
names, and omitted lists, match any:

    conv2d:x,conv2d_0.w_0:conv2d_0.tmp_0
    softmax
    relu::relu_1.tmp_0

Any line ending is accepted. Empty lines are ignored, and so is a comment: `#` at the beginning of a
line or after a space, to its end. The prefix of NNAdapter's logs, up to the line `subgraph
operators:`, is accepted. A name may contain commas and colons if an operator of the model has it.
Mixed-precision configurations have the same format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from crosschip.ir import InputError, Origin
from crosschip.ir.dataclass import dataclass
from crosschip.ir.files import open_regular
from crosschip.runtime.placement.sources import Source, line_of

_HEADING = "subgraph operators:"
_COMMENT = r"(^|\s)#.*"
_LINE_END = r"\r\n|\r|\n"
_SPACES = re.compile(r"\s*")
_SEPARATORS = re.compile(r"[\s,]*")
_ENDS_OF_MODEL = ("feed", "fetch")
"""The operators for inputs and outputs in Paddle's files; lists contain them."""

_MAX_COMPARED = 1000
"""The maximum number of lines that are compared with an entry without a match."""

_MAX_BYTES = 2**26
"""The maximum number of bytes of a configuration: about 600 for each of 100,000 operators."""

_MAX_LINE_LENGTH = 2**18
"""The maximum number of characters of a line: the names of some thousand operands."""

_MAX_QUOTED = 200
"""The maximum number of characters of a line that a message quotes or compares with others."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a configuration.

    Attributes:
        line: the line number, from 1.
        type: the type of the operator.
        lists: the text after the type and its colon.
        inputs: the names of the operator's inputs, if no name contains a colon or comma.
        outputs: the names of the operator's outputs, likewise.
    """

    line: int
    type: str
    lists: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def text(self) -> str:
        """The line without its comment."""
        return f"{self.type}:{self.lists}" if self.lists else self.type

    @property
    def brief(self) -> str:
        """The line as messages quote it; only its beginning if it is long."""
        return _shorten(self.text)

    def fits(self, origin: Origin) -> bool:
        """Return whether the inputs and outputs match an operator's."""
        if not self._has_separators_in_names(origin):
            usual = self.lists.count(":") < 2
            return usual and (
                set(self.inputs) <= set(origin.inputs) and set(self.outputs) <= set(origin.outputs)
            )
        ends = _list_ends(self.lists, [0], origin.inputs)
        if len(self.lists) in ends:
            return True
        starts = [end + 1 for end in ends if self.lists[end] == ":"]
        return len(self.lists) in _list_ends(self.lists, starts, origin.outputs)

    @staticmethod
    def _has_separators_in_names(origin: Origin) -> bool:
        return any("," in name or ":" in name for name in (*origin.inputs, *origin.outputs))


def parse(source: str | bytes | Path, where: str = "partition") -> list[Entry]:
    """Parse the lines of a configuration.

    Args:
        source: the path of a file, or its content as bytes or text; text that names an existing
            file is a path.
        where: the name of the argument, for messages.

    Raises:
        InputError: the file cannot be read, or a line is malformed.
    """
    where, content = _content(source, where)
    entries: list[Entry] = []
    lines = [re.sub(_COMMENT, "", written).strip() for written in re.split(_LINE_END, content)]
    start = lines.index(_HEADING) + 1 if _HEADING in lines else 0
    for number, line in enumerate(lines[start:], start + 1):
        if not line:
            continue
        entry = _entry(line, number, where)
        if entry.type not in _ENDS_OF_MODEL:
            entries.append(entry)
    return entries


def words_of(source: str | bytes | Path | None, where: str = "partition") -> list[str]:
    """Return the entries of a configuration as texts; none without a configuration.

    Raises:
        InputError: as for `parse`.
    """
    return [] if source is None else [entry.text for entry in parse(source, where)]


def entry_of(text: str, where: str) -> Entry:
    """Parse a single line.

    Raises:
        InputError: the line is malformed.
    """
    return _entry(text.strip(), 1, where)


def matches(entries: Iterable[Entry], sources: Iterable[Source]) -> Mapping[Entry, list[Source]]:
    """Return the operators that each entry matches."""
    matched: dict[Entry, list[Source]] = {entry: [] for entry in entries}
    named: dict[tuple[str, str], list[Entry]] = {}
    by_type: dict[str, list[Entry]] = {}
    for entry in matched:
        by_type.setdefault(entry.type, []).append(entry)
        first = next(iter((*entry.outputs, *entry.inputs)), "")
        named.setdefault((entry.type, first), []).append(entry)
    for source in sources:
        for form in source.forms:
            if form.type not in by_type:
                continue
            for entry in _candidates(form, named, by_type):
                matches_of_entry = matched[entry]
                if entry.fits(form) and matches_of_entry[-1:] != [source]:
                    matches_of_entry.append(source)
    return matched


def unmatched(entry: Entry, sources: Sequence[Source]) -> str:
    """Return the warning about an entry without a match, with the closest operator."""
    forms = [form for source in sources for form in source.forms]
    types = dict.fromkeys(form.type for form in forms)
    # Imported late: only mistakes need it.
    from difflib import get_close_matches

    if entry.type not in types:
        plain = {type_.lower().replace("_", ""): type_ for type_ in types}
        written = _shorten(entry.type)
        near = get_close_matches(written.lower().replace("_", ""), plain, 1, 0.5)
        hint = f"; the nearest is {plain[near[0]]!r}" if near else f"; there are {', '.join(types)}"
        return f"the model has no operator of type {written!r}{hint}"
    if entry.lists.count(":") > 1:
        return f"{entry.brief!r} has more than two lists of names; write type:inputs:outputs"
    names = {*entry.inputs, *entry.outputs}
    alike = sorted(
        (form for form in forms if form.type == entry.type),
        key=lambda form: -len(names.intersection((*form.inputs, *form.outputs))),
    )
    lines = [_shorten(line_of(form)) for form in alike[:_MAX_COMPARED]]
    near = get_close_matches(entry.brief, lines, 1, 0) if len(names) else lines
    return f"no operator is {entry.brief!r}; the nearest is {near[0]!r}"


def _candidates(
    form: Origin,
    named: Mapping[tuple[str, str], Sequence[Entry]],
    by_type: Mapping[str, Sequence[Entry]],
) -> Iterable[Entry]:
    """Return the entries that may match an operator."""
    names = ("", *form.outputs, *form.inputs)
    if any("," in name or ":" in name for name in names):
        return by_type[form.type]
    keys = dict.fromkeys((form.type, name) for name in names)
    return [entry for key in keys for entry in named.get(key, ())]


def _content(source: str | bytes | Path, where: str) -> tuple[str, str]:
    """Return the source's name for messages, and its text."""
    if isinstance(source, str):
        path = _path(source, where)
        if path is None:
            if len(source) > _MAX_BYTES:
                raise InputError(_too_large(where))
            return where, source.removeprefix("\ufeff")
        source = path
    if isinstance(source, Path):
        where = str(source)
        try:
            with open_regular(source) as file:
                # One byte over the limit shows that the file is too large, whatever its stated
                # size.
                source = file.read(_MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{where}: cannot be read: {reason}") from None
    if not isinstance(source, bytes | bytearray | memoryview):
        raise InputError(f"{where} is {source!r}, but must be a path, a text or bytes")
    if len(source) > _MAX_BYTES:
        raise InputError(_too_large(where))
    try:
        return where, bytes(source).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = bytes(source)[: error.start].count(b"\n") + 1
        raise InputError(f"{where}, line {line}: is not text in UTF-8") from None


def _too_large(where: str) -> str:
    return f"{where}: is larger than {_MAX_BYTES} bytes, which no list of operators needs"


def _path(text: str, where: str) -> Path | None:
    """Return the path that a text denotes; `None` if the text is a configuration itself."""
    if re.search(_LINE_END, text) or "\0" in text or not text.strip():
        return None
    path = Path(text)
    try:
        if path.is_file():
            return path
    except OSError:  # for example, too long for a path
        return None
    if ":" not in text and ("/" in text or "\\" in text or path.suffix):
        raise InputError(f"{where}: there is no file {_shorten(text)!r}")
    return None


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"


def _entry(line: str, number: int, where: str) -> Entry:
    if len(line) > _MAX_LINE_LENGTH:
        raise InputError(
            f"{where}, line {number}: {_shorten(line)!r} has {len(line)} characters, but a line "
            f"has at most {_MAX_LINE_LENGTH}"
        )
    type_, _, lists = (part.strip() for part in line.partition(":"))
    if not type_:
        raise InputError(
            f"{where}, line {number}: {_shorten(line)!r} has no operator type before the colon"
        )
    if re.search(r"[\s,]", type_):
        raise InputError(
            f"{where}, line {number}: {_shorten(type_)!r} is no operator type; "
            f"write type:inputs:outputs"
        )
    fields = lists.split(":", 1)
    return Entry(number, type_, lists, *(_names(field) for field in (*fields, "")[:2]))


def _names(written: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in written.split(","))))


def _list_ends(text: str, starts: Iterable[int], names: Sequence[str]) -> set[int]:
    """Return the indices of a text where a list of names can end.

    Names may contain commas and colons, so a text can be split into a list in many ways. How the
    text before an index was split does not matter for the remainder, so each index is examined
    once.

    Args:
        text: the text that contains the list.
        starts: the indices where the list may begin.
        names: the possible names, in any order and number.
    """
    by_length: dict[int, set[str]] = {}
    for name in filter(None, names):
        by_length.setdefault(len(name), set()).add(name)
    ends: set[int] = set()
    visited: set[int] = set()
    pending = list(starts)
    while pending:
        start = _skip(_SEPARATORS, text, pending.pop())
        if start in visited:
            continue
        visited.add(start)
        ends.add(start)
        for length, candidates in by_length.items():
            if text[start : start + length] in candidates:
                end = _skip(_SPACES, text, start + length)
                ends.add(end)
                if text.startswith(",", end):
                    pending.append(end + 1)
    return ends


def _skip(signs: re.Pattern[str], text: str, index: int) -> int:
    """Return the index after the separators at an index."""
    match = signs.match(text, index)
    assert match is not None, "an empty text matches"
    return match.end()
