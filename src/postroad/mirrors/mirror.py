"""A mirror at work: topics by pattern, all their partitions at once, and what belongs to them.

One task reads the source, one poll to each leader at a time. One for each partition writes what was read. One
looks where both sides are, and notes how far it came. One looks for new topics and partitions, and carries
configs, groups and subscriptions over. Each of them goes on after errors: a mirror ends when it is told to,
and not because a cluster is away.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from postroad.client import Client, TopicPartition, offsets
from postroad.client import topics as topics_api
from postroad.client.append import MadeAnew
from postroad.client.fetcher import Damaged, Fetcher, MayNotRead
from postroad.client.metadata import Topic
from postroad.errors import (
    BrokerNotAvailable,
    ClusterAuthorizationFailed,
    OffsetOutOfRange,
    PostroadError,
    RequestRefused,
    TopicAuthorizationFailed,
    TryAgain,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from postroad.mirrors import notes as notes_of
from postroad.mirrors import topics
from postroad.mirrors.access_rules import AccessRules, CarriedRules
from postroad.mirrors.errors import Halted, MirrorError, NotAsExpected
from postroad.mirrors.notes import Note, Notes
from postroad.mirrors.partition import Ends, MirroredPartition
from postroad.mirrors.positions import Positions, Wanted
from postroad.mirrors.watched import Carriage, Watched
from postroad.wire.compression import codec_of
from postroad.wire.primitives import ZERO_UUID

POLL_S: Final = 0.2  # a partition that wants more again is asked for within this time
LOOK_S: Final = 1.0  # how exact the lag is
ENDS_S: Final = 2.0  # a partition of which nobody tells where it ends falls behind
PRUNE_S: Final = 60.0
PAUSE_S: Final = 0.5  # after an error
HALTED_PAUSE_S: Final = 5.0
HALTS_MAX: Final = 3  # with `once`: so often a partition may say that it can't go on
OWN: Final = frozenset({notes_of.TOPIC, "postroad-pipelines", "postroad-mirror-offsets"})

NOBODY: Final = Wanted()

log = logging.getLogger("postroad.mirror")


@dataclass(frozen=True)
class MirrorSettings:
    """From where, to where, and what. Topics by name, or all that the pattern matches as a whole."""

    source: str
    target: str
    topics: Sequence[str] = ()
    pattern: str | None = None
    prefix: str = ""  # of topics' names at the target
    configs: Sequence[str] | None = None  # of topics; None: those that usually are carried over
    groups: Wanted = NOBODY
    subscriptions: Wanted = NOBODY
    rules: bool = False  # whether access rules about all this are carried over
    rules_of: Sequence[str] = ()  # users; none: of all
    once: bool = False  # end when all is mirrored that was there at the start, and positions are carried over
    every_s: float = 5.0  # how often it looks for topics and positions
    accepts_loss: bool = False
    compression: str = "none"


class Mirror:
    """`await Mirror(settings, source, target).run(stopping)`"""

    def __init__(self, settings: MirrorSettings, source: Client, target: Client) -> None:
        check(settings)
        self.settings = settings
        self._source = source
        self._target = target
        self._ids = ("", "")
        self._fetcher = Fetcher(source, reset=None, committed_only=True)
        self._rules: AccessRules | None = None
        self._copied_topics: set[str] = set()
        self._seen_topics: set[str] = set()
        self.watched: dict[TopicPartition, Watched] = {}
        self.halted_topics: dict[str, str] = {}
        self._told: dict[str, str] = {}  # of topics that were halted: what was said of them last
        self.carriage = Carriage()
        self._pruned_at = 0.0
        self._has_doubts = asyncio.Event()  # some topic, at either side, is not the one that it was
        self._is_begun = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Until it is told to stop, or done (`once`). MirrorError if it can't begin or, with `once`, end."""
        begin = asyncio.create_task(self._begin() if self.settings.once else self._begin_patiently())
        stop = asyncio.create_task(stopping.wait())
        running: list[asyncio.Task[object]] = [stop, begin]
        try:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            if not begin.done():
                return
            begin.result()
            last = self._finish() if self.settings.once else self._carrying()
            tasks = [asyncio.create_task(loop) for loop in (self._reading(), self._looking(), last)]
            running += tasks
            await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            await self._end(running)

    # --- beginning and end ---------------------------------------------------------------------

    async def _begin_patiently(self) -> None:
        """A cluster that is away is waited for, and that is said."""
        said = ""
        while True:
            try:
                await self._begin()
                return
            except UnknownTopicOrPartition:
                raise
            except (BrokerNotAvailable, TryAgain) as error:
                if str(error) != said:
                    said = str(error)
                    log.warning("a cluster is away, and is waited for: %s", said)
            await asyncio.sleep(PAUSE_S)

    async def _begin(self) -> None:
        self._ids = (await _id(self._source), await _id(self._target))
        if self._ids[0] == self._ids[1]:
            raise MirrorError("both addresses are of the same cluster: a mirror needs two")
        self._notes = Notes(self._target, self._ids[0], self.settings.prefix)
        await self._notes.prepare()
        self._positions = Positions(self._source, self._target, self._notes, self.settings.prefix)
        if self.settings.rules:
            self._rules = AccessRules(
                self._source,
                self._target,
                self._ids,
                self._notes,
                self.settings.prefix,
                self.settings.rules_of,
            )
            await self._rules.check()
        await self._look_around()
        self._is_begun = True
        log.info(
            "mirroring %d partitions of %d topics",
            len(self.watched),
            len({each.topic for each in self.watched}),
        )

    async def _finish(self) -> None:
        """With `once`: returns when all that was there at the start is mirrored, positions too."""
        while any(each.partition.at < each.goal or not each.is_ready for each in self.watched.values()):
            await asyncio.sleep(0.05)
            if self._has_doubts.is_set():
                await self._bravely("topics", self._look_around)
            for each in self.watched.values():
                if each.halts >= HALTS_MAX:
                    raise MirrorError(each.halted)
        if self.halted_topics:
            raise MirrorError(next(iter(self.halted_topics.values())))
        await self._source.retry(self._carry)

    async def _end(self, tasks: Sequence[asyncio.Task[object]]) -> None:
        running = [*tasks, *(each.task for each in self.watched.values() if each.task is not None)]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._fetcher.close()
        with suppress(PostroadError):
            await self._note()

    # --- reading and writing -------------------------------------------------------------------

    async def _reading(self) -> None:
        while True:
            ready = {at: each for at, each in self.watched.items() if each.is_ready}
            wanted = {
                at: each.partition.reading_at for at, each in ready.items() if each.partition.wants_more
            }
            self._fetcher.seek(wanted, {at.topic: ready[at].topic_id for at in wanted})
            try:
                fetched = await self._fetcher.next(POLL_S)
            except OffsetOutOfRange:
                self._recover_all()
                await asyncio.sleep(PAUSE_S)
                continue
            except MayNotRead as error:
                self._halt_topic(error.topic, f"source: {error}")
                continue
            except Damaged as error:
                self._halt_reading(error.topic_partition, f"source: {error}")
                continue
            except PostroadError as error:
                if isinstance(error, UnknownTopicId):
                    self._has_doubts.set()
                else:
                    log.warning("reading: %s", error)
                await asyncio.sleep(PAUSE_S)
                continue
            came = {at: records for at, records, _ in fetched}
            for at, position in self._fetcher.positions.items():
                each = self.watched.get(at)
                if each is not None and each.is_ready and each.partition.reading_at == wanted[at] < position:
                    each.partition.take(came.get(at, ()), position)
                    each.wake.set()

    def _halt_reading(self, at: TopicPartition, why: str) -> None:
        """It is left alone for a while: a replica may be made anew, or its leader be another one then."""
        each = self.watched.get(at)
        if each is not None and each.is_ready:
            each.halt(why)
            each.is_ready = False
            asyncio.get_running_loop().call_later(HALTED_PAUSE_S, each.wake.set)

    def _recover_all(self) -> None:
        """Some log is not as it was: each partition looks for itself."""
        for each in self.watched.values():
            each.is_ready = False
            each.wake.set()

    async def _copying(self, each: Watched, ends: Ends | None) -> None:
        """One partition, for ever."""
        partition = each.partition
        while True:
            try:
                if not each.is_ready:
                    await partition.recover(ends)
                    ends, each.is_ready = None, True
                    if not each.stopped_working:
                        each.go_on()
                while each.is_ready and partition.pending:
                    await partition.write()
                    each.go_on()
                await each.wake.wait()
                each.wake.clear()
                continue
            except (Halted, TopicAuthorizationFailed, ClusterAuthorizationFailed) as error:
                why = (
                    str(error) if isinstance(error, Halted) else f"{partition.target} at the target: {error}"
                )
                each.halt(why)
            except MadeAnew as error:
                log.warning("%s at the target: %s", partition.target, error)
                self._has_doubts.set()
            except NotAsExpected as error:
                log.info("%s: reading again what is copied: %s", partition.source, error)
            except PostroadError as error:
                log.warning("%s: %s", partition.source, error)
            each.is_ready, ends = False, None
            await asyncio.sleep(HALTED_PAUSE_S if each.halted else PAUSE_S)
            with suppress(PostroadError):
                await self._notes.refresh()

    # --- looking -------------------------------------------------------------------------------

    async def _looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await self._bravely("looking", self._look)

    async def _look(self) -> None:
        """Where both sides are. The target is asked first (`MirroredPartition.see_ends`)."""
        those = dict(self.watched)
        targets = [each.partition.target for each in those.values()]
        target_ends = await offsets.latest_known(self._target, targets, ENDS_S)
        now = asyncio.get_running_loop().time()
        source_ends = await offsets.latest_known(self._source, list(those), ENDS_S)
        for at, end in source_ends.items():
            each = those[at]
            each.source_end = end
            each.lag.note(now, end)
            if each.is_ready:
                each.lag.reach(each.partition.at)
                each.partition.see_ends(target_ends.get(each.partition.target, 0), end)
        if now - self._pruned_at > PRUNE_S:
            self._pruned_at = now
            await self._prune(those)
        await self._note()

    async def _prune(self, those: dict[TopicPartition, Watched]) -> None:
        starts = await offsets.earliest(self._target, [each.partition.target for each in those.values()])
        gone: dict[str, Note | None] = {}
        for each in those.values():
            gone |= each.partition.forget_before(starts[each.partition.target])
        if gone:
            await self._notes.put(gone)

    async def _note(self) -> None:
        those = [each.partition for each in self.watched.values() if each.is_ready]
        news: dict[str, Note | None] = {}
        for partition in those:
            news |= partition.news()
        if not news:
            return
        try:
            await self._notes.put(news)
        except BaseException:
            for partition in those:
                partition.note_all()
            raise

    # --- carrying ------------------------------------------------------------------------------

    async def _carrying(self) -> None:
        while True:
            await self._bravely("positions", self._carry)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.settings.every_s):
                    await self._has_doubts.wait()
            await self._bravely("topics", self._look_around)

    async def _carry(self) -> None:
        ready = {at: each.partition for at, each in self.watched.items() if each.is_ready}
        self.carriage.groups = await self._positions.carry_groups(self.settings.groups, ready)
        self.carriage.subscriptions = await self._positions.carry_subscriptions(
            self.settings.subscriptions, ready
        )
        if self._rules is not None:
            self.carriage.rules = await self._carry_rules(self._rules)
        self.carriage.at = asyncio.get_running_loop().time()

    async def _carry_rules(self, rules: AccessRules) -> CarriedRules:
        settings, carriage = self.settings, self.carriage
        carried = await rules.carry(
            {at.topic for at in self.watched},
            [*carriage.groups, *carriage.subscriptions],
            (settings.groups, settings.subscriptions),
        )
        if carried.refused and carried.refused != carriage.rules.refused:
            log.warning("access rules: %s", carried.refused)
        return carried

    async def _look_around(self) -> None:
        """All topics and partitions of the source are at the target, too, and are copied."""
        self._has_doubts.clear()
        found = await self._topics()
        fresh: list[tuple[MirroredPartition, bytes]] = []
        for topic in found:
            if not await self._is_same(topic):
                continue
            there = await self._prepare(topic)
            if there is None:
                continue
            for partition in topic.partitions:
                at = TopicPartition(topic.name, partition.number)
                if at not in self.watched:
                    fresh.append((self._partition(at, there), topic.id))
        await self._watch(fresh)

    async def _topics(self) -> list[Topic]:
        settings = self.settings
        listed = {
            topic.name: topic for topic in await topics_api.list_all(self._source) if not topic.is_internal
        }
        if listed.keys() - self._seen_topics:
            self._copied_topics = await notes_of.copied_topics(self._source, self._ids[1])
            self._seen_topics = set(listed)
        self._forget(lambda at: at.topic not in listed)
        missing = [name for name in settings.topics if name not in listed]
        if missing and not self._is_begun:
            raise UnknownTopicOrPartition(
                f"There is no topic {missing[0]} at the source, or the mirror may not see it."
            )
        wanted = {name: listed[name] for name in settings.topics if name in listed}
        if settings.pattern is not None:
            wanted |= {
                name: topic
                for name, topic in listed.items()
                if re.fullmatch(settings.pattern, name)
                and name not in OWN
                and name not in self._copied_topics
            }
        return list(wanted.values())

    def _forget(self, is_gone: Callable[[TopicPartition], bool]) -> None:
        """These partitions are copied no further: one that can't be read would hold up all others."""
        for at in [at for at in self.watched if is_gone(at)]:
            gone = self.watched.pop(at)
            if gone.task is not None:
                gone.task.cancel()

    async def _is_same(self, topic: Topic) -> bool:
        """Whether it is the topic of which the notes tell."""
        note = self._notes.known.get(f"topic {topic.name}")
        if note is None or note["id"] == topic.id.hex():
            return True
        self._halt_topic(
            topic.name,
            f"{topic.name} was deleted at the source since it was mirrored, and created anew: its "
            "offsets mean other messages now. Mirror it under another --prefix",
        )
        return False

    def _halt_topic(self, topic: str, why: str) -> None:
        """It is not copied for now, and that is said once."""
        self._refuse_topic(topic, why)
        self._forget(lambda at: at.topic == topic)

    def _refuse_topic(self, topic: str, why: str) -> None:
        """What is new of it is not copied for now, and that is said once."""
        if self._told.get(topic) != why:
            log.error("halted: %s", why)
        self.halted_topics[topic] = self._told[topic] = why

    async def _prepare(self, topic: Topic) -> Topic | None:
        """The topic at the target; None where either side refuses what it takes, which holds up no other.

        What is noted of one that was deleted at the target is forgotten, and it is copied from its beginning.
        """
        name, side = self.settings.prefix + topic.name, "source"
        note = self._notes.known.get(f"topic {topic.name}")
        try:
            configs = await topics.configs(self._source, topic.name, self.settings.configs)
            side = "target"
            there = await topics.prepare(self._target, name, topic, configs)
            is_known = note is not None and note["target_id"] == there.id.hex()
            if note is not None and is_known:
                await topics.follow(self._target, name, note["configs"], configs.given)
        except BrokerNotAvailable:
            raise
        except RequestRefused as error:
            self._refuse_topic(topic.name, f"{topic.name} at the {side}: {error}")
            return None
        self.halted_topics.pop(topic.name, None)
        if note is not None and not is_known:
            self._forget(lambda at: at.topic == topic.name)
            await self._notes.put(dict.fromkeys(self._notes.of_topic(topic.name)))
        now = {"id": topic.id.hex(), "target_id": there.id.hex(), "configs": configs.given}
        if note != now:
            await self._notes.put({f"topic {topic.name}": now})
        return there

    def _partition(self, at: TopicPartition, there: Topic) -> MirroredPartition:
        return MirroredPartition(
            at,
            TopicPartition(there.name, at.partition),
            self._ids,
            (self._source, self._target),
            self._notes,
            codec_of(self.settings.compression),
            self.settings.accepts_loss,
            there.id if there.id != ZERO_UUID else None,  # an old Kafka has no ids
        )

    async def _watch(self, fresh: Sequence[tuple[MirroredPartition, bytes]]) -> None:
        """`fresh`: what is not watched yet, with the id of its topic at the source."""
        here, there = [each.source for each, _ in fresh], [each.target for each, _ in fresh]
        source_starts = await offsets.earliest(self._source, here)
        target_starts = await offsets.earliest(self._target, there)
        target_ends = await offsets.latest(self._target, there)
        source_ends = await offsets.latest(self._source, here)
        for each, topic_id in fresh:
            at, target = each.source, each.target
            ends = Ends(source_starts[at], source_ends[at], target_starts[target], target_ends[target])
            end = source_ends[at]
            watched = self.watched[at] = Watched(each, topic_id, goal=end, source_end=end)
            watched.task = asyncio.create_task(self._copying(watched, ends), name=f"mirror {at}")

    async def _bravely(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """An error is told, and tried again the next time."""
        try:
            await work()
        except PostroadError as error:
            log.warning("%s: %s", what, error)


def check(settings: MirrorSettings) -> None:
    """MirrorError if nothing is to be mirrored, or a pattern is none."""
    if not settings.topics and settings.pattern is None:
        raise MirrorError("what is to be mirrored? Name topics, or give a pattern")
    patterns = {
        "--pattern": settings.pattern,
        "--group-pattern": settings.groups.pattern,
        "--subscription-pattern": settings.subscriptions.pattern,
    }
    for option, pattern in patterns.items():
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise MirrorError(f"{option} {pattern!r} is no regular expression: {error}") from None


async def _id(client: Client) -> str:
    found = (await client.retry(lambda: client.cluster([]))).id
    if not found:
        raise MirrorError("a cluster has no id, so no origin can name it")
    return found
