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

awk '
/^Benchmark/ {
	name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
	if (!(name in n)) order[++names] = name
	k = ++n[name]
	for (i = 3; i < NF; i += 2) {
		if ($(i+1) == "ns/op") wall[name, k] = $i
		if ($(i+1) == "cpu-ns/op") cpu[name, k] = $i
		if ($(i+1) == "allocs/op") allocs[name] = $i
	}
}
function sorted(values, name,   i, j, t) { # into s[1..k]
	k = n[name]
	for (i = 1; i <= k; i++) s[i] = values[name, i] + 0
	for (i = 2; i <= k; i++) for (j = i; j > 1 && s[j-1] > s[j]; j--) { t = s[j]; s[j] = s[j-1]; s[j-1] = t }
	return s[int((k + 1) / 2)]
}
END {
	printf "%-12s %12s %12s %25s %8s\n", "", "ns/op", "cpu-ns/op", "(least to greatest)", "allocs"
	for (i = 1; i <= names; i++) {
		name = order[i]
		w = sorted(wall, name)
		median[name] = sorted(cpu, name)
		printf "%-12s %12.0f %12.0f %25s %8d\n", name, w, median[name], sprintf("(%.0f to %.0f)", s[1], s[n[name]]), allocs[name]
	}
	printf "\nfirst sight / floor        %.2f (promised: 1.25)\n", median["FirstSight"] / median["Floor"]
	printf "cached - empty handler     %.0f ns, %d allocations (promised: 1000 ns, 2)\n", median["Cached"] - median["Empty"], allocs["Cached"] - allocs["Empty"]
	printf "first sight / jwx v2       %.2f\n", median["FirstSight"] / median["JWX"]
	printf "first sight / go-oidc      %.2f\n", median["FirstSight"] / median["GoOIDC"]
	printf "first sight / golang-jwt   %.2f\n", median["FirstSight"] / median["GolangJWT"]
}' "$out/results"
