"""Access rules about what is mirrored: who may use a topic or group at the source may do so at the target.

A rule about many names (`ord*`, `*`) would give rights at the target to topics that nobody mirrors. So each
name gets the rules that cover it as rules about this name alone. What a name is allowed and denied is so the
same on both sides, and nothing else changes.

Of each name it is noted at the target which rules the source was seen to have, and which of them were brought
by a mirror:

A1 a rule is added once. Where the target has it by itself it stays the target's own; one that somebody
   removes there by hand does not come back.
A2 a rule that is gone at the source is removed at the target if a mirror brought it; nothing else is removed.
   That holds also for names that are mirrored no longer.
A3 a rule is noted as brought before it is added, and as seen afterwards: a run that is killed between the two
   is finished by the next one.
A4 what a mirror in the other direction brought to the source is not sent back: it would never end.
A5 between two steps nobody has a right that he has neither before nor after: rights go first, then what is
   new comes in one step, then denials go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from postroad.client import Client, acls, topics
from postroad.errors import RequestRefused, SecurityDisabled, UnknownTopicOrPartition
from postroad.mirrors.errors import MirrorError
from postroad.mirrors.notes import Note, Notes, NotesOfOthers
from postroad.mirrors.positions import Wanted
from postroad.security.principals import EVERYBODY
from postroad.security.resources import WILDCARD, PatternType, Permission, ResourcePattern, ResourceType
from postroad.security.rules import Acl, AclRule, Rules

OPEN: Final = "allow.everyone.if.no.acl.found"
KINDS: Final = {ResourceType.TOPIC: "topic", ResourceType.GROUP: "group"}


class Resource(NamedTuple):
    """A name at the source that has rules."""

    type: ResourceType
    name: str

    @property
    def what(self) -> str:
        """What its note is about."""
        return f"rules {KINDS[self.type]} {self.name}"


class CarriedRules(NamedTuple):
    """How many rules were added and removed by this run, how many at the target are from the source, and why
    some are not."""

    added: int = 0
    removed: int = 0
    brought: int = 0
    refused: str = ""


class AccessRules:
    """Carries rules over, as often as it is told. `users`: those whose rules; none means all of them."""

    def __init__(
        self,
        source: Client,
        target: Client,
        ids: tuple[str, str],
        notes: Notes,
        prefix: str,
        users: Collection[str],
    ) -> None:
        self._source = source
        self._target = target
        self._notes = notes
        self._prefix = prefix
        self._principals = frozenset(f"User:{name}" for name in users)
        self._returned = NotesOfOthers(source, ids[1])
        self._added = self._removed = 0

    async def check(self) -> None:
        """MirrorError where one of the clusters has no rules, or the target's would mean something else."""
        is_open: dict[str, bool] = {}
        for client, which in ((self._source, "source"), (self._target, "target")):
            try:
                await acls.list_acls(client)
                is_open[which] = await _is_open(client)
            except SecurityDisabled:
                raise MirrorError(
                    f"the {which} has no access rules: set security.enabled on its nodes, or leave --acls out"
                ) from None
            except RequestRefused as error:
                raise MirrorError(f"the access rules of the {which} can't be read: {error}") from None
        if is_open["target"] and not is_open["source"]:
            raise MirrorError(
                "the target lets everybody do everything where no rule is about it, and the source does not: "
                "unset security.open_without_rules at the target, or leave --acls out"
            )

    async def carry(
        self, topics: Iterable[str], groups: Iterable[str], wanted: Sequence[Wanted]
    ) -> CarriedRules:
        """Those about topics and groups that are mirrored now, and about groups that a rule names and that
        would be mirrored (`wanted`) if they were there."""
        here, there, returned = await self._look()
        named = [each.name for each, _ in here.all() if each.type == ResourceType.GROUP and _is_name(each)]
        mirrored = {Resource(ResourceType.TOPIC, name) for name in topics}
        mirrored |= {Resource(ResourceType.GROUP, name) for name in groups}
        mirrored |= {Resource(ResourceType.GROUP, name) for those in wanted for name in those.of(named)}
        refused = ""
        for resource in sorted(mirrored | self._noted()):
            try:
                await self._carry(resource, here, there, returned, may_add=resource in mirrored)
            except RequestRefused as error:
                refused = f"{KINDS[resource.type]} {resource.name}: {error}"
        brought = sum(len(_rules(self._note(each), "brought")) for each in self._noted())
        return CarriedRules(self._added, self._removed, brought, refused)

    # --- what there is -------------------------------------------------------------------------

    async def _look(self) -> tuple[Rules, Rules, dict[Resource, set[AclRule]]]:
        """The rules of both sides, and those of the source that came from the target.

        What has come is looked at before and after: a rule that the other mirror adds or takes back meanwhile
        must not look like one of the source's own.
        """
        before = await self._returned_rules()
        here = _as_rules(await acls.list_acls(self._source))
        returned = await self._returned_rules()
        for resource, rules in before.items():
            returned.setdefault(resource, set()).update(rules)
        return here, _as_rules(await acls.list_acls(self._target)), returned

    async def _returned_rules(self) -> dict[Resource, set[AclRule]]:
        await self._returned.refresh()
        found: dict[Resource, set[AclRule]] = {}
        for (prefix, what), note in self._returned.known.items():
            resource = _read(what)
            if resource is not None:
                if resource.type == ResourceType.TOPIC:
                    resource = resource._replace(name=prefix + resource.name)
                found.setdefault(resource, set()).update(_rules(note, "brought"))
        return found

    def _noted(self) -> set[Resource]:
        return {resource for what in self._notes.known if (resource := _read(what)) is not None}

    def _note(self, resource: Resource) -> Note:
        return self._notes.known.get(resource.what, {})

    # --- carrying ------------------------------------------------------------------------------

    async def _carry(
        self,
        resource: Resource,
        here: Rules,
        there: Rules,
        returned: dict[Resource, set[AclRule]],
        *,
        may_add: bool,
    ) -> None:
        note = self._note(resource)
        seen, brought = _rules(note, "seen"), _rules(note, "brought")
        covering = {acl.rule for acl in here.covering(*resource) if self._is_chosen(acl.rule)}
        wanted = covering - returned.get(resource, set())
        if not may_add:
            wanted &= seen
        pattern = self._pattern(resource)
        present = {acl.rule for acl in there.covering(pattern.type, pattern.name)}
        new = wanted - seen - present
        gone = brought - wanted
        await self._put(resource, seen, brought | new, before=note)
        await self._remove(pattern, {rule for rule in gone if rule.permission == Permission.ALLOW})
        if new:
            await acls.add_acls(self._target, [Acl(pattern, rule) for rule in sorted(new)])
            self._added += len(new)
        await self._remove(pattern, {rule for rule in gone if rule.permission == Permission.DENY})
        await self._put(resource, wanted, (brought | new) - gone, before=self._note(resource))

    def _is_chosen(self, rule: AclRule) -> bool:
        """A denial for everybody concerns those who are chosen, too."""
        if not self._principals or rule.principal in self._principals:
            return True
        return rule.principal == EVERYBODY and rule.permission == Permission.DENY

    def _pattern(self, resource: Resource) -> ResourcePattern:
        """The name at the target."""
        prefix = self._prefix if resource.type == ResourceType.TOPIC else ""
        return ResourcePattern(resource.type, PatternType.LITERAL, prefix + resource.name)

    async def _remove(self, pattern: ResourcePattern, rules: Collection[AclRule]) -> None:
        if rules:
            self._removed += await acls.remove_acls(
                self._target, [Acl(pattern, rule) for rule in sorted(rules)]
            )

    async def _put(
        self, resource: Resource, seen: Collection[AclRule], brought: Collection[AclRule], before: Note
    ) -> None:
        """Note this if it is something else than before."""
        if (set(seen), set(brought)) == (_rules(before, "seen"), _rules(before, "brought")):
            return
        note = {"seen": sorted(map(list, seen)), "brought": sorted(map(list, brought))}
        await self._notes.put({resource.what: note if seen or brought else None})


def _read(what: str) -> Resource | None:
    """None: the note is about something else."""
    word, _, rest = what.partition(" ")
    kind, _, name = rest.partition(" ")
    types = {text: type_ for type_, text in KINDS.items()}
    return Resource(types[kind], name) if word == "rules" and kind in types else None


def _rules(note: Note, name: str) -> set[AclRule]:
    return {AclRule(*each) for each in note.get(name, ())}


def _is_name(pattern: ResourcePattern) -> bool:
    return pattern.pattern == PatternType.LITERAL and pattern.name != WILDCARD


def _as_rules(found: Iterable[Acl]) -> Rules:
    by_resource: dict[ResourcePattern, list[AclRule]] = {}
    for resource, rule in found:
        by_resource.setdefault(resource, []).append(rule)
    rules = Rules()
    for resource, those in by_resource.items():
        rules.put(resource, those)
    return rules


async def _is_open(client: Client) -> bool:
    """Whether a resource that no rule is about is open to everybody."""
    node = (await client.retry(client.nodes))[0]
    with suppress(UnknownTopicOrPartition):
        for entry in await topics.describe_config(client, str(node), resource=topics.NODE):
            if entry.name == OPEN:
                return entry.value == "true"
    return False
