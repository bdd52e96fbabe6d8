"""Writes `postroad.wire.messages` from the schemas that the kio package carries.

`schema` reads kio's dataclasses into one description for each API, over all its versions; `layout`
decides which fields are read or written by one Struct; `decoder`, `encoder` and `classes` write the
functions and classes; `module` puts a file together. Start with `schema`.
"""
