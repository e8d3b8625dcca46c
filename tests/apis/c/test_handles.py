"""Handles: numbers that are looked up."""

from __future__ import annotations

import gc
import weakref

from crosschip.apis.c.handles import Handles, NoHandle


class Thing:
    """Something that a program holds."""


def test_what_was_added_is_found_until_it_is_removed() -> None:
    handles = Handles()
    things = [Thing() for _ in range(3)]
    numbers = [handles.add(thing) for thing in things]
    assert len({*numbers, 0}) == 4
    assert [handles.get(number) for number in numbers] == things
    handles.remove(numbers[1])
    assert handles.get(numbers[1]) == NoHandle(numbers[1], ended=True)
    assert handles.get(numbers[2]) is things[2]
    handles.remove(numbers[1])


def test_numbers_are_not_used_twice() -> None:
    handles = Handles()
    first = handles.add(Thing())
    handles.remove(first)
    assert handles.add(Thing()) != first


def test_what_never_was_a_handle() -> None:
    handles = Handles()
    number = handles.add(Thing())
    assert handles.get(0) is None
    for wrong in (1, number - 1, number + 1, number + 16, 2**64 - 1):
        assert handles.get(wrong) == NoHandle(wrong, ended=False)
    assert repr(handles.get(31)) == "0x1f"


def test_parts_end_with_the_whole_and_so_does_memory() -> None:
    handles = Handles()
    whole = handles.add(Thing())
    part = handles.add(Thing(), whole)
    kept = handles.buffers_of(part)["memory"] = Thing()
    gone = weakref.ref(kept)
    del kept
    handles.remove(whole)
    gc.collect()
    assert not len(handles)
    assert handles.get(part) == NoHandle(part, ended=True)
    assert gone() is None


def test_a_part_that_is_removed_before_the_whole_is_forgotten() -> None:
    handles = Handles()
    whole = handles.add(Thing())
    for _ in range(3):
        handles.remove(handles.add(Thing(), whole))
    handles.remove(whole)
    assert not len(handles)
