"""About who somebody is, and what they may do."""

from __future__ import annotations

from postroad.errors.base import RequestRefused


class TopicAuthorizationFailed(RequestRefused):
    code = 29
    summary = "Not authorized for this topic."


class GroupAuthorizationFailed(RequestRefused):
    code = 30
    summary = "Not authorized for this group."


class ClusterAuthorizationFailed(RequestRefused):
    code = 31
    summary = "Not authorized for this cluster."


class TransactionalIdAuthorizationFailed(RequestRefused):
    code = 53
    summary = "Not authorized for this transactional id."


class SecurityDisabled(RequestRefused):
    code = 54
    summary = "Security features are turned off."


class UnsupportedSaslMechanism(RequestRefused):
    code = 33
    summary = "The node does not offer this SASL mechanism."


class IllegalSaslState(RequestRefused):
    code = 34
    summary = "This request does not belong here in the exchange of SASL messages."


class SaslAuthenticationFailed(RequestRefused):
    code = 58
    summary = "The user or the password is wrong."


class InvalidPrincipal(RequestRefused):
    code = 67
    summary = "The principal is not valid: write User:name."


class ResourceNotFound(RequestRefused):
    code = 91
    summary = "There is no such user or credential."


class DuplicateResource(RequestRefused):
    code = 92
    summary = "The request names the same user and mechanism more than once."


class UnacceptableCredential(RequestRefused):
    code = 93
    summary = "The credential can't be accepted: its iterations, salt or name is out of bounds."
