"""Redrives: dead letters on their way back, as tasks that outlive the gateway which began them.

REST's redrives and the move tasks of SQS are the same thing in other words. What is known of a task stands in
a config of its subscription (`book.py`), so every gateway can show and cancel it. One gateway carries it out
(`runner.py`) and tells that it lives; if it falls silent another goes on (`redrives.py`). How letters are
moved is the business of the dialect that began the task (`Work` in `task.py`).
"""

from postroad.gateway.redrives.redrives import Redrives, context
from postroad.gateway.redrives.task import AlreadyRunning, Progress, Task, TooMany, Work

__all__ = ["AlreadyRunning", "Progress", "Redrives", "Task", "TooMany", "Work", "context"]
