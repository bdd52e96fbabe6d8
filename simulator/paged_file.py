"""A file by pages: what processes read (the page cache), and what is on the disk.

A page that was written is dirty until a sync has put it on the disk. Until then a power cut may keep it, lose
it or tear it between two sectors, each page by itself; the same goes for the size of the file. A page that
is lost reads as it was on the disk, or as zeros if it never was there.

A sync takes time: it saves the pages as they were when it began, and what is written meanwhile stays dirty.
A sync that fails leaves its pages clean, although they are not on the disk ("fsyncgate"): the next sync does
not write them, unless they have been changed again.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

PAGE_BYTES: Final = 4096
SECTOR_BYTES: Final = 512  # written as a whole or not at all

_NOTHING, _EVERYTHING, _SOME = "nothing", "everything", "some"  # of what was not synced, after a power cut
_FATES: Final = (_NOTHING, _EVERYTHING, _SOME, _SOME)
_NO_PAGE: Final = bytes(PAGE_BYTES)


class Flush(NamedTuple):
    """The pages that a sync writes, as they were when it began."""

    number: int
    pages: dict[int, bytes]
    size: int


class PagedFile:
    def __init__(self, content: bytes = b"") -> None:
        """A file that is on the disk already."""
        self.content = bytearray(content)
        self.dirty: set[int] = set()
        self._dropped: set[int] = set()  # neither dirty nor on the disk
        self._pages = {number: self._page(number) for number in range(_pages(len(content)))}  # on the disk
        self._size = len(content)  # on the disk
        self._sizes: list[tuple[int, int]] = []  # (number, size) of each change since
        self._number = 0  # of the latest change or flush
        self._flushed = 0  # the newest flush that has succeeded

    # --- the page cache

    def write(self, position: int, data: bytes) -> None:
        before = len(self.content)
        if position > before:
            self.content.extend(bytes(position - before))
        self.content[position : position + len(data)] = data
        self._touch(min(position, before), position + len(data))
        if len(self.content) != before:
            self._resize()

    def truncate(self, length: int) -> None:
        before = len(self.content)
        if length > before:
            self.write(length, b"")
            return
        if length < before:
            del self.content[length:]
            kept = _pages(length)
            self.dirty = {number for number in self.dirty if number < kept}
            self._dropped = {number for number in self._dropped if number < kept}
            if length % PAGE_BYTES:
                self._touch(length - 1, length)
            self._resize()

    def drop_clean_pages(self) -> None:
        """The cache gives up what is not dirty; it is read from the disk again."""
        for number in self._dropped:
            start = number * PAGE_BYTES
            end = min(start + PAGE_BYTES, len(self.content))
            self.content[start:end] = self._pages.get(number, _NO_PAGE)[: end - start]
        self._dropped.clear()

    # --- to the disk

    @property
    def is_synced(self) -> bool:
        """Whether a power cut would change nothing."""
        return not (self.dirty or self._dropped or self._sizes)

    def begin_sync(self) -> Flush:
        self._number += 1
        pages = {number: self._page(number) for number in self.dirty}
        return Flush(self._number, pages, len(self.content))

    def finish_sync(self, flush: Flush) -> None:
        """The pages are on the disk."""
        if flush.number < self._flushed:
            return  # a sync that began later wrote all of them, or newer ones
        self._flushed = flush.number
        self._pages.update(flush.pages)
        self._clean(flush)
        if flush.size < self._size:  # what was cut off does not come back if the file grows again
            kept = _pages(flush.size)
            self._pages = {number: page for number, page in self._pages.items() if number < kept}
        self._size = flush.size
        self._sizes = [change for change in self._sizes if change[0] > flush.number]

    def fail_sync(self, flush: Flush, random: Random) -> None:
        """Any of the pages may be on the disk; all of them count as clean. The size is not lost."""
        if flush.number > self._flushed:
            for number in sorted(flush.pages):
                if random.random() < 0.5:
                    self._pages[number] = flush.pages[number]
        self._dropped |= self._clean(flush)

    def write_back(self, random: Random) -> None:
        """Some of the dirty pages go to the disk by themselves; nothing is promised of them yet."""
        for number in sorted(self.dirty):
            if random.random() < 0.5:
                self._pages[number] = self._page(number)

    def overwrite(self, content: bytes) -> None:
        """Put this on the disk in the place of all that was there, and into the cache."""
        self.content[:] = content
        self.dirty.clear()
        self._dropped.clear()
        self._pages = {number: self._page(number) for number in range(_pages(len(content)))}
        self._size = len(content)
        self._sizes.clear()

    def flip_bit(self, position: int, bit: int) -> None:
        """Damage what is on the disk; whoever reads it sees it."""
        number, offset = divmod(position, PAGE_BYTES)
        page = bytearray(self._pages[number])
        page[offset] ^= 1 << bit
        self._pages[number] = bytes(page)
        self.content[position] ^= 1 << bit

    def is_cold(self, position: int) -> bool:
        """Whether this byte is on the disk and nobody is about to write it anew."""
        number = position // PAGE_BYTES
        return (
            position < min(self._size, len(self.content))
            and number not in self.dirty
            and number not in self._dropped
        )

    def after_power_cut(self, random: Random) -> PagedFile:
        """What is found on the disk; this one is left as it is."""
        fate = _EVERYTHING if self.is_synced else random.choice(_FATES)
        size = self._surviving_size(fate, random)
        pages = [self._surviving_page(number, fate, random) for number in range(_pages(size))]
        return PagedFile(b"".join(pages)[:size])

    # --- helpers

    def _surviving_size(self, fate: str, random: Random) -> int:
        if fate == _NOTHING or not self._sizes:
            return self._size
        if fate == _EVERYTHING:
            return self._sizes[-1][1]
        size = random.choice([self._size, self._sizes[-1][1], random.choice(self._sizes)[1]])
        between = range(_pages(self._size) * PAGE_BYTES, size, PAGE_BYTES)
        if between and random.random() < 0.3:  # it grew page by page
            return random.choice(between)
        return size

    def _surviving_page(self, number: int, fate: str, random: Random) -> bytes:
        old = self._pages.get(number, _NO_PAGE)
        if number not in self.dirty or fate == _NOTHING:
            return old
        new = self._page(number)
        if fate == _EVERYTHING or random.random() < 0.4:
            return new
        if random.random() < 0.6:
            return old
        return b"".join(
            (old, new)[random.randrange(2)][start : start + SECTOR_BYTES]
            for start in range(0, PAGE_BYTES, SECTOR_BYTES)
        )

    def _page(self, number: int) -> bytes:
        start = number * PAGE_BYTES
        return bytes(self.content[start : start + PAGE_BYTES]).ljust(PAGE_BYTES, b"\0")

    def _touch(self, start: int, end: int) -> None:
        touched = range(start // PAGE_BYTES, _pages(end))
        self.dirty.update(touched)
        self._dropped.difference_update(touched)

    def _resize(self) -> None:
        self._number += 1
        self._sizes.append((self._number, len(self.content)))

    def _clean(self, flush: Flush) -> set[int]:
        """The pages that have not been changed since the flush began; they are dirty no more."""
        kept = _pages(len(self.content))
        clean = {
            number
            for number, page in flush.pages.items()
            if number in self.dirty and number < kept and self._page(number) == page
        }
        self.dirty -= clean
        return clean


def _pages(size: int) -> int:
    return -(-size // PAGE_BYTES)
