"""What a pipeline's file says, and what is wrong with one, with the line in which it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroad.pipelines.declared.declaration import parse, read
from postroad.pipelines.errors import PipelineError

HERE = Path("/srv/shop/pipeline.toml")
WHOLE = """\
name = "shop"
bootstrap = "127.0.0.1:9092"
every = "500ms"

[topic.large]
sql = "select customer as key, customer as value from paid where total > 100"

[table.paid]
sql = '''
with named as (select o.*, c.name from orders o left join customers c on o.customer = c.id)
select id, name, extract(year from timestamp) as year, trim(both ' ' from name) as customer -- from nobody
from named where id is distinct from 7 and name <> 'from nowhere'
'''
to = "lake/paid"
every = "1m"

[archive.orders]
topics = ["orders"]
to = "s3://lake/orders"

[merge.customers]
topic = "customers"
to = "lake/customers"
key = ["id"]

[table.revenue]
sql = "select name, sum(total) as total from `paid` group by name"
to = "/lake/revenue"
mode = "complete"
format = "iceberg"
"""


def test_steps_come_after_what_they_read_and_directories_are_relative_to_the_file() -> None:
    found = parse(WHOLE, HERE)
    assert (found.name, found.bootstrap, found.every_s) == ("shop", "127.0.0.1:9092", 0.5)
    names = [step.name for step in found.steps]
    assert names.index("orders") < names.index("paid") < names.index("large")
    assert names.index("customers") < names.index("paid") < names.index("revenue")
    assert found.step("paid").inputs == ("orders", "customers")
    assert found.step("revenue").inputs == ("paid",)
    assert [found.step(name).settings["to"] for name in ("paid", "orders", "revenue")] == [
        "/srv/shop/lake/paid",
        "s3://lake/orders",
        "/lake/revenue",
    ]
    assert [found.step(name).is_replaced for name in ("paid", "customers", "revenue")] == [False, True, True]
    assert found.directory(found.step("paid")) == Path("/srv/shop/pipeline.state/paid")


ARCHIVE = '[archive.a]\ntopics = ["a"]\nto = "a"\n'
MERGE = '[merge.a]\ntopic = "a"\nto = "a"\n'


def table(name: str, sql: str) -> str:
    return f'[table.{name}]\nsql = "{sql}"\nto = "{name}"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there is no step: begin with"),
        ("name = ", "Invalid value"),
        (
            f'{ARCHIVE}fromat = "delta"',
            "line 4: [archive.a] there is no 'fromat' here; did you mean 'format'?",
        ),
        (f'nmae = "x"\n{ARCHIVE}', "line 1: there is no 'nmae' here; did you mean 'name'?"),
        ('[archive.a]\ntopics = ["a"]', "line 1: [archive.a] it has no 'to'"),
        ('[archive.a]\ntopics = "a"\nto = "a"', "line 2: [archive.a] 'topics' is a list of topics"),
        ('\n[archive.a]\ntopics = []\nto = "a"', "line 3: [archive.a] 'topics' is a list of topics"),
        (f'{ARCHIVE}format = "orc"', "line 4: [archive.a] 'format' is one of: delta"),
        (f'every = "5"\n{ARCHIVE}', "line 1: 'every' is a duration"),
        (ARCHIVE + table("b", "select * from c"), "line 5: [table.b] it reads c, and no step has that name"),
        (ARCHIVE + table("ab", "select 1 from ac"), "did you mean a?"),
        (table("b", "select * from c") + table("c", "select 1 from b"), "line 1: [table.b] steps read each"),
        (table("b", "select * from b"), "line 1: [table.b] steps read each other: b → b"),
        (table("b", "select 1"), "line 2: [table.b] it reads no other step"),
        (MERGE + table("b", "select * from a"), "line 5: [table.b] it reads only tables that are replaced"),
        (ARCHIVE + table("a", "select 1 from a"), "line 4: [table.a] another step is named a, too"),
        (
            f'{ARCHIVE}[topic.t]\nsql = "select value from a"\n' + table("b", "select * from t join a"),
            "line 7: [table.b] it reads t, which is a topic",
        ),
        ('[archive."a b"]\ntopics = ["a"]\nto = "a"', "line 1: [archive.a b] a name has letters"),
        ('[[archive]]\ntopics = ["a"]\nto = "a"', "line 1: steps are tables with names: [archive.NAME]"),
        ("archive = 1", "line 1: steps are tables with names: [archive.NAME]"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, why: str) -> None:
    with pytest.raises(PipelineError) as caught:
        parse(text, HERE)
    assert why in str(caught.value)
    assert str(caught.value).startswith(str(HERE))


def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"none\.toml can't be read"):
        read(tmp_path / "none.toml")
