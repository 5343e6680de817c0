#!/usr/bin/env bash
# The product knows no project's fields: what one workload calls its numbers stands in that project's definition file.
set -eu
cd "$(dirname "$0")/.."

words='cps|sip|bob|alice|latency_ns|rss_windows'
if find base experiment evidence audit runner server -name '*.[ch]' -print0 | LC_ALL=C sort -z |
    xargs -0 grep -nEi "(^|[^A-Za-z])($words)([^A-Za-z]|\$)"; then
    echo "check_words: words of one workload in the product"
    exit 1
fi
echo "check_words: ok"
