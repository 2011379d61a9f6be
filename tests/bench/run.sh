#!/bin/sh
# Measures cage-proxy beside its peers with the bench driver: same origin, same run, CPU per request.
# usage: run.sh BENCH_DIR CAGE_PROXY [arguments of `bench.py run`]
set -eu

source=$(cd "$1" && pwd)
proxy=$2
shift 2

BENCH_RUN=${BENCH_RUN:-${TMPDIR:-/tmp}/cage-bench}
export BENCH_RUN
mkdir -p "$BENCH_RUN/cage-ca"
# The driver builds beside itself: a copy keeps its folder as it is.
bench=$BENCH_RUN/driver
mkdir -p "$bench"
cp -R "$source/." "$bench/"
chmod -R u+w "$bench"
/usr/bin/python3 "$bench/bench.py" setup

# The driver's own CA signs for us too, and its origin's CA is what we trust.
cp "$BENCH_RUN/mitm-ca.pem" "$BENCH_RUN/cage-ca/ca.pem"
cp "$BENCH_RUN/mitm-ca.key" "$BENCH_RUN/cage-ca/ca.key"
chmod 600 "$BENCH_RUN/cage-ca/ca.key"
cat >"$BENCH_RUN/cage-policy.yaml" <<YAML
version: 1
name: bench
rules:
  - id: bench
    hosts: [bench.test, "*.bench.test"]
    ports: [18443, 18444, 18080]
    addresses: [127.0.0.0/8]
    limits: {body: 64MiB}
upstream:
  trust: ["$BENCH_RUN/origin-ca.pem"]
YAML
# A comma can't be part of the driver's cmd=, so the command is a script.
cat >"$BENCH_RUN/cage.sh" <<SH
#!/bin/sh
exec "$proxy" --policy "$BENCH_RUN/cage-policy.yaml" --listen 127.0.0.1:18801 --admin 127.0.0.1:18802 \\
	--ca-dir "$BENCH_RUN/cage-ca" --log "$BENCH_RUN/cage-log.jsonl"
SH
chmod 755 "$BENCH_RUN/cage.sh"
rm -f "$BENCH_RUN/cage-log.jsonl"

[ $# -gt 0 ] || set -- -r 5 -s 2 -t nginx-rp,haproxy-rp,squid-bump,mitmproxy,cage
exec /usr/bin/python3 "$bench/bench.py" run \
	--ext "name=cage,addr=127.0.0.1:18801,ca=$BENCH_RUN/mitm-ca.pem,cmd=$BENCH_RUN/cage.sh" "$@"
