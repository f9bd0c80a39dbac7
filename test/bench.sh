#!/usr/bin/env bash
# Measures resourceserver beside other verifiers: five runs, interleaved, so that
# what disturbs the machine disturbs them all. Prints the median and the least and
# greatest of each, and the ratios that the project promises.
set -euo pipefail
cd "$(dirname "$0")/bench"

runs=${RUNS:-5}
time=${BENCHTIME:-300ms}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

go test -c -o "$out/bench" .
for ((i = 1; i <= runs; i++)); do
	"$out/bench" -test.run '^$' -test.bench . -test.benchtime "$time" -test.cpu 1 >>"$out/results"
done

awk "$(cat ../bench.awk)"'
# ratio compares runs with their neighbours, so that both had the same machine.
function ratio(a, b,   i) {
	for (i = 1; i <= n[a]; i++) pair[a, i] = quiet[a, i] / quiet[b, i]
	return sprintf("%.2f (%.2f to %.2f)", sorted(pair, a), s[1], s[n[a]])
}
function beyond(values,   i) {
	for (i = 1; i <= n["Cached"]; i++) pair["Cached", i] = values["Cached", i] - values["Empty", i]
	return sprintf("%.0f (%.0f to %.0f)", sorted(pair, "Cached"), s[1], s[n["Cached"]])
}
END {
	printf "%-12s %12s %12s %12s %24s %8s %8s\n", "", "ns/op", "quiet ns/op", "cpu-ns/op", "(least to greatest)", "B/op", "allocs"
	for (i = 1; i <= names; i++) {
		name = order[i]
		w = sorted(wall, name); q = sorted(quiet, name); c = sorted(cpu, name)
		printf "%-12s %12.0f %12.0f %12.0f %24s %8d %8d\n", name, w, q, c, sprintf("(%.0f to %.0f)", s[1], s[k]), bytes[name], allocs[name]
	}
	print "\nMedians of " k " runs. quiet is the median within a run, of batches of 64 cached or single other\nrequests; cpu is processor time."
	print "\ncached, on top of the empty handler (promised: 1000 ns, 2 allocations)"
	print "  quiet                    " beyond(quiet) " ns"
	print "  processor time           " beyond(cpu) " ns"
	print "  allocations              " allocs["Cached"] - allocs["Empty"]
	print "\nfirst sight, quiet"
	print "  / floor                  " ratio("FirstSight", "Floor") ", promised: 1.25"
	print "  / jwx v2                 " ratio("FirstSight", "JWX")
	print "  / go-oidc                " ratio("FirstSight", "GoOIDC")
	print "  / golang-jwt and keyfunc " ratio("FirstSight", "GolangJWT")
}' "$out/results"
