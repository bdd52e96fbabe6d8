"""Metrics: numbers that are counted all the time, and the page of text on which Prometheus reads them.

Pure: no clock, no socket. `instruments.py` counts (plain integers in plain lists, so that counting costs
next to nothing), `page.py` writes the text exposition format and puts pages of several processes together.
What is known anyway, such as the end of a log, is not counted but written on a page when somebody asks.
"""
