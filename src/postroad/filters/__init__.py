"""Filters: which messages somebody wants to see, said in a line.

    key ~ "order-*" and value.total > 100 and header.source = "shop"

    filter_ = compile_filter(text)       raises FilterError, with the column and what was expected there
    filter_.matches(partition, record)   never raises, whatever the message holds

**Fields.** `key` and `value` are the message's texts, `header.NAME` is the last header of that name;
`offset`, `partition` and `timestamp` (milliseconds since 1970) are numbers. `value.total`,
`value.items[0].price`, `value.items[-1]` and `value["two words"].x` look into a value that is JSON; in any
other there is nothing to find. Names of other characters than letters, digits, `_` and `-` are written in
brackets and quotes.

**Comparisons.** `=` `!=` `<` `<=` `>` `>=`; `~` and `!~` for texts, with `*` (any characters) and `?` (one);
`in ("a", "b")`, `not in (…)`, `exists FIELD`; with `and`, `or`, `not` and parentheses. On the right stands a
text in quotes, a number, `true`, `false`, `null`, or another field. A timestamp is compared with a number or
with a time such as "2026-03-01T08:00Z".

**Meaning.** Only like is compared with like: a number with a number, a text with a text. Anything else is
false, and so is a comparison with what is not there. `!=`, `!~` and `not in` are the opposite of `=`, `~` and
`in`, so they are true of it. Keys, headers and whole values are texts; compared with a number, a text that
says a number counts as one. `null` is JSON's null, no key, or a tombstone. `exists` tells whether there is a
key, a value that is no tombstone, such a header, such a path.

There are no regular expressions. Python's backtrack, so that one message could hold a gateway for minutes;
one that can't (as in `groups`) costs a step of Python for each character of each message.

A filter comes from anybody who may read the topic: its length, depth and number of comparisons have bounds,
nothing is ever evaluated as code, and matching takes time that grows with the message. The room is pure.

Start reading at `parser.py`; `fields.py` is what a field finds, `comparisons.py` what is done with it.
"""

from postroad.filters.filter import Filter, compile_filter
from postroad.filters.tokens import FilterError

__all__ = ["Filter", "FilterError", "compile_filter"]
