#!/bin/sh
# Publish, consume, and consume as a group with kcat.
#
# sh with_kcat.sh [HOST:PORT]
set -eu
bootstrap=${1:-127.0.0.1:9092}
topic=letters-kcat

# One message for each line, the key before the colon; -H adds a header.
printf 'alphabet:a\nalphabet:b\nalphabet:c\n' |
    kcat -b "$bootstrap" -P -t "$topic" -K : -H language=en -X enable.idempotence=true
echo "published a b c"

# From the beginning to the end (-e), then stop. %s is the message, %h its headers, %o its offset.
kcat -b "$bootstrap" -C -q -t "$topic" -o beginning -e -f 'consumed %s with %h at offset %o\n'

# As a member of the group "readers", which commits where it was when it stops.
kcat -b "$bootstrap" -q -c 3 -X auto.offset.reset=earliest -f 'the group got %s\n' -G readers "$topic"
