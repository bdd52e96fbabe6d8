"""The topics of `logs`, read from replicas nearby: each node has its own rack, and each reader is in one."""

from __future__ import annotations

from postroad.client.consumer import Consumer
from simulator.service import rack_of
from simulator.workloads.logs import Logs


class Nearby(Logs):
    name = "nearby"
    one_node = False
    is_drawn = False  # it uses the topics of `logs`, and racks change where partitions lie
    racks = True

    def _rack(self) -> str:
        return rack_of(self.stage.random.randrange(1, len(self.stage.services) + 1))

    def _came(self, consumer: Consumer) -> None:
        if consumer.near:
            self.stage.world.sometimes("nearby: records came while a replica nearby was read")
