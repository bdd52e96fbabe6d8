"""A filter that is ready to be asked."""

from __future__ import annotations

from postroad.filters.comparisons import Test
from postroad.filters.fields import Message, Subject
from postroad.filters.parser import parse


class Filter:
    """`text` as it was written. One message at a time: it is no object for several threads."""

    __slots__ = ("_subject", "_test", "text")

    def __init__(self, text: str, test: Test) -> None:
        self.text = text
        self._test = test
        self._subject = Subject()

    def matches(self, partition: int, message: Message) -> bool:
        self._subject.begin(partition, message)
        return self._test(self._subject)


def compile_filter(text: str) -> Filter:
    """Raises FilterError."""
    return Filter(text, parse(text))
