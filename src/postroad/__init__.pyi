from postroad.errors import PostroadError as PostroadError
from postroad.workers.app import App as App
from postroad.workers.blocking import SyncClient as SyncClient
from postroad.workers.client import Client as Client
from postroad.workers.errors import Undecodable as Undecodable
from postroad.workers.message import Message as Message
from postroad.workers.middleware import Middleware as Middleware
from postroad.workers.outcomes import Reject as Reject
from postroad.workers.outcomes import Retry as Retry
from postroad.workers.publishing import Outgoing as Outgoing
from postroad.workers.receiving import Received as Received
from postroad.workers.streams import Record as Record
from postroad.workers.telemetry import Tracing as Tracing

__version__: str
__all__ = [
    "App",
    "Client",
    "Message",
    "Middleware",
    "Outgoing",
    "PostroadError",
    "Received",
    "Record",
    "Reject",
    "Retry",
    "SyncClient",
    "Undecodable",
    "__version__",
]
