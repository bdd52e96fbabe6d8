"""All endpoints of REST, and the routes to them."""

from __future__ import annotations

from typing import Final

import msgspec
from aiohttp import hdrs, web

from postroad.gateway.gateway import Gateway
from postroad.gateway.rest import (
    access_rules,
    acl_changes,
    browse,
    cluster,
    configs,
    consumer_groups,
    consumers,
    dead_letters,
    group_changes,
    history,
    messages,
    one_letter,
    openapi,
    page,
    positions,
    publish,
    pull,
    serving,
    subscriptions,
    topic_contents,
    topics,
    transactions,
    user_changes,
    webhook_work,
    webhooks,
)
from postroad.gateway.rest.endpoint import Endpoint
from postroad.gateway.rest.redrive_work import KIND, RedriveWork
from postroad.gateway.schemas.endpoints import ENDPOINTS as REGISTRY
from postroad.gateway.security import rights

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    topics.list_topics,
    topics.create_topic,
    topics.get_topic,
    topics.alter_topic,
    topics.delete_topic,
    topic_contents.add_partitions,
    topic_contents.delete_records,
    publish.publish,
    browse.browse,
    subscriptions.list_subscriptions,
    subscriptions.create_subscription,
    subscriptions.get_subscription,
    subscriptions.alter_subscription,
    subscriptions.delete_subscription,
    consumers.list_consumers,
    pull.receive,
    pull.acknowledge,
    pull.release,
    pull.extend,
    pull.reject,
    transactions.transact,
    positions.seek,
    positions.purge,
    messages.peek,
    messages.get_message,
    dead_letters.list_dead_letters,
    dead_letters.redrive,
    one_letter.redrive_one,
    one_letter.discard_letter,
    dead_letters.list_redrives,
    dead_letters.get_redrive,
    dead_letters.cancel_redrive,
    consumer_groups.list_groups,
    consumer_groups.get_group,
    group_changes.reset_group,
    group_changes.delete_group,
    webhooks.get_webhook,
    webhooks.put_webhook,
    webhooks.delete_webhook,
    webhooks.verify_webhook,
    history.get_history,
    history.list_figures,
    webhook_work.list_deliveries,
    webhook_work.test_webhook,
    webhook_work.rotate_secret,
    configs.list_configs,
    access_rules.list_users,
    access_rules.list_acls,
    access_rules.who_may,
    user_changes.create_user,
    user_changes.change_password,
    user_changes.delete_user,
    user_changes.create_key,
    user_changes.disable_key,
    user_changes.enable_key,
    user_changes.delete_key,
    acl_changes.create_acls,
    acl_changes.delete_acl,
    cluster.get_cluster,
    cluster.drain_node,
    cluster.cancel_drain,
    cluster.elect_preferred_leaders,
)


def routes(gateway: Gateway) -> list[web.RouteDef]:
    gateway.redrives.kinds[KIND] = lambda subscription, task: RedriveWork(gateway, subscription, task)
    found: list[web.RouteDef] = [_document(gateway), *page.routes()]
    allowed: dict[str, list[str]] = {}
    for endpoint in ENDPOINTS:
        found.append(web.route(endpoint.method, endpoint.path, serving.serve(gateway, endpoint)))
        head = [hdrs.METH_HEAD] if endpoint.method == hdrs.METH_GET else []  # aiohttp adds it by itself
        allowed.setdefault(endpoint.path, []).extend([endpoint.method, *head])
    return found + serving.elsewhere(allowed)


def _document(gateway: Gateway) -> web.RouteDef:
    asks = gateway.identities
    document = openapi.document([*ENDPOINTS, *REGISTRY], secured=asks.required, users=asks.are_users)
    body = msgspec.json.encode(document)

    @rights.declared(rights.PUBLIC)
    async def openapi_document(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=serving.JSON)

    return web.get("/openapi.json", openapi_document)
