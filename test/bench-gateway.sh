#!/usr/bin/env bash
# Measures ostiary gateway beside a plain httputil.ReverseProxy: five runs,
# interleaved, so that what disturbs the machine disturbs both. Prints the median
# and the least and greatest of each, and the ratio with its spread.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${RUNS:-5}
calls=${CALLS:-4000}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

go test -c -o "$out/bench" ./internal/gateway
for ((i = 1; i <= runs; i++)); do
	"$out/bench" -test.run '^$' -test.bench 'Direct$|Proxy$|Gateway$' -test.benchtime "${calls}x" >>"$out/results"
done

awk "$(cat test/bench.awk)"'
END {
	printf "%-14s %12s %12s %25s %10s %8s\n", "", "ns/op", "cpu-ns/op", "(least to greatest)", "B/op", "allocs"
	for (i = 1; i <= names; i++) {
		name = order[i]
		w = sorted(wall, name)
		median[name] = sorted(cpu, name)
		printf "%-14s %12.0f %12.0f %25s %10d %8d\n", name, w, median[name], sprintf("(%.0f to %.0f)", s[1], s[k]), bytes[name], allocs[name]
	}
	print ""
	for (i = 1; i <= names; i++) if (order[i] ~ /Proxy/) {
		name = order[i]
		for (j = 1; j <= n[name]; j++) ratio[name, j] = cpu["Gateway", j] / cpu[name, j]
		m = sorted(ratio, name)
		printf "gateway / %-12s %.2f (%.2f to %.2f; goal 1.10), of the proxy alone %.2f\n", name, m, s[1], s[k],
			(median["Gateway"] - median["Direct"]) / (median[name] - median["Direct"])
	}
}' "$out/results"

# Processes of their own, with latencies.
echo
cd test/bench && go run ./load
