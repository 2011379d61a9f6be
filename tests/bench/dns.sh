#!/bin/sh
# Measures cage-dns beside other resolvers with the bench driver: CPU seconds for 100,000 queries, with 10 rules and with
# 10,000, log on; then its memory.
# usage: dns.sh BENCH_DIR CAGE_DNS [arguments of dnsbench.py]
set -eu

bench=$(cd "$1" && pwd)
program=$2
shift 2

BENCH_RUN=${BENCH_RUN:-${TMPDIR:-/tmp}/cage-bench-dns}
export BENCH_RUN
mkdir -p "$BENCH_RUN"
printf '127.0.0.1 localhost\n' >"$BENCH_RUN/hosts"
printf 'nameserver 127.0.0.1\n' >"$BENCH_RUN/resolv.conf"

# write_policy FILE RULES: what the driver asks for is random, much and of one domain, as no agent's questions may be.
write_policy() {
	{
		printf 'version: 1\nname: bench\ndns: {tunnel: {rate: 1000000/s, bytes: 64MiB/s}}\ninspectors: {name: {action: "off"}}\n'
		printf 'upstream: {resolvers: ["127.0.0.1:5353"]}\nrules:\n'
		printf '  - {id: ok, hosts: [ok.test, "*.ok.test"], addresses: [198.51.100.0/24]}\n'
		seq 2 "$2" | sed 's/.*/  - {id: r&, hosts: [site&.example]}/'
	} >"$1"
}

# write_script NAME PORT RULES: a comma can't be part of the driver's cmd=, so the command is a script.
write_script() {
	write_policy "$BENCH_RUN/$1.yaml" "$3"
	cat >"$BENCH_RUN/$1.sh" <<SH
#!/bin/sh
rm -f "$BENCH_RUN/$1.jsonl"
exec "$program" --policy "$BENCH_RUN/$1.yaml" --listen 127.0.0.1:$2 --log "$BENCH_RUN/$1.jsonl" --admin off
SH
	chmod 755 "$BENCH_RUN/$1.sh"
}

write_script cage 5300 10
write_script cage-10000 5301 10000
[ $# -gt 0 ] || set -- -r 5 -s 2
/usr/bin/python3 -B "$bench/dnsbench.py" --ext "name=cage,addr=127.0.0.1:5300,cmd=$BENCH_RUN/cage.sh" \
	--ext "name=cage-10000,addr=127.0.0.1:5301,cmd=$BENCH_RUN/cage-10000.sh" "$@"

"$BENCH_RUN/cage.sh" 2>"$BENCH_RUN/cage.err" &
master=$!
trap 'kill $master' EXIT
left=100
until grep -q ready "$BENCH_RUN/cage.err" || [ $left = 0 ]; do
	left=$((left - 1))
	sleep 0.05
done
cat /proc/$master/smaps_rollup $(pgrep -P $master | sed 's|.*|/proc/&/smaps_rollup|') |
	awk '/^Pss:/ { kb += $2 } END { printf "all processes of cage-dns at rest: %.1f MiB (PSS)\n", kb / 1024 }'
