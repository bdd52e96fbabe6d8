"""What a node tells about itself: requests, topics, groups, subscriptions, its disk and its process.

Only requests are counted as they come (`requests.py`). All else is known anyway, and is written down when
somebody asks: a page of thousands of lines, made in steps between which clients have their turn. Start
reading at `collect.py`.
"""
