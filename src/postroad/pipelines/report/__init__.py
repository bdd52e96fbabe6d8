"""report: what happened in these topics, as one page and as tables.

`run` is the whole of it: `records` are the messages, reduced to what is measured; `measures`, `letters`
and `latency` turn them into small tables with Spark; `standing` asks the cluster who is how far behind.
`findings` says what of it matters, `page` draws all of it (`charts`, `words`), `write` puts page and
tables side by side. What a log can't know the page says, too: it doesn't guess.
"""

from postroad.pipelines.report.run import Reported, ReportSettings, report

__all__ = ["ReportSettings", "Reported", "report"]
