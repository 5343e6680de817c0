#!/usr/bin/env bash
# Which folder may include what. A line of the first table: folder (longest match wins), then the folders whose
# headers it may include besides its own. A line of the second: system header, then the files that may include it.
set -euo pipefail
cd "$(dirname "$0")/.."

layers='
base
experiment      base
evidence        base experiment
audit           base experiment
runner          base experiment evidence audit
server/store    base experiment evidence audit tools
server/http     base tools
server/ingest   base experiment evidence audit server server/store
server/api      tools base experiment evidence audit server server/store server/http server/ingest server/pages
server/pages    base experiment evidence audit server server/store server/http tools
server          base experiment evidence audit tools server/store server/http server/ingest server/api server/pages
tools
'
# Only one place knows a library; what others need of it goes through that place.
libraries='
nettle/         base/digest.c
mbedtls/        evidence/sign.c evidence/keyring.c
yaml.h          experiment/yaml_in.c
sqlite3.h       server/store/
microhttpd.h    server/http/listener.c server/http/request.c server/http/reply.c server/http/content.c
curl/           runner/http.c runner/curl_lazy.c
locale.h        base/num.c
cjson/cJSON_    nowhere
'

trouble=$(mktemp)
trap 'rm -f "$trouble"' EXIT
find base experiment evidence audit runner server tools -name '*.[ch]' | LC_ALL=C sort | xargs awk \
    -v layers="$layers" -v libraries="$libraries" '
BEGIN {
    n = split(layers, lines, "\n")
    for (i = 1; i <= n; i++) {
        m = split(lines[i], w, " ")
        if (m > 0) known[w[1]] = 1
        for (k = 1; k <= m; k++) may[w[1], w[k]] = 1
    }
    nlib = 0
    n = split(libraries, lines, "\n")
    for (i = 1; i <= n; i++) {
        m = split(lines[i], w, " ")
        if (m == 0) continue
        lib[++nlib] = w[1]
        owners[nlib] = lines[i]
    }
}
function folder(path) {
    sub(/\/[^\/]*$/, "", path)
    while (!(path in known) && path ~ /\//) sub(/\/[^\/]*$/, "", path)
    return path
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, q, "\"")
    if (q[2] !~ /\//) { print FILENAME ":" FNR ": \"" q[2] "\" is not written from the top folder"; next }
    from = folder(FILENAME); to = folder(q[2])
    if (!((from, to) in may)) print FILENAME ":" FNR ": " from " may not include " to " (" q[2] ")"
}
/^[ \t]*#[ \t]*include[ \t]*</ {
    h = $0; sub(/^[^<]*</, "", h); sub(/>.*/, "", h)
    for (i = 1; i <= nlib; i++) {
        if (index(h, lib[i]) != 1) continue
        ok = 0
        m = split(owners[i], w, " ")
        for (k = 2; k <= m; k++) if (w[k] == FILENAME || (w[k] ~ /\/$/ && index(FILENAME, w[k]) == 1)) ok = 1
        if (!ok) print FILENAME ":" FNR ": <" h "> belongs only to" substr(owners[i], length(lib[i]) + 1)
    }
}' > "$trouble"
if [ -s "$trouble" ]; then
    cat "$trouble"
    exit 1
fi
echo "check_layers: ok"
