#!/usr/bin/env bash
# The long runs, one after the other, each even when one before it failed: the
# race detector over everything, every test with OSTIARY_SOAK=1, and fuzzing for
# the time in the first argument. Prints a summary; fails when anything did.
set -uo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}
pgcluster=.build/pgcluster
failed=0

stage() {
	local name=$1 start=$SECONDS
	shift
	echo "== $name"
	"$@" || failed=1
	echo "== $name: $((SECONDS - start)) s"
}

race() {
	# the folder test drives processes, npm packages and the browser
	test/withpostgres.sh "$pgcluster" go test -race -count=1 -timeout 60m $(go list ./... | grep -v '/test/')
}

long() {
	OSTIARY_SOAK=1 test/withpostgres.sh "$pgcluster" go test -count=1 -timeout 120m -v ./... |
		grep -E '^(ok|FAIL|panic)|^ *--- (FAIL|SKIP)| kills; |^ +(\||[0-9]+ cells of |- [a-z]: )'
}

echo "commit $(git rev-parse --short HEAD), $(go version), $(nproc) processors, $(date -u)"
stage race race
stage long long
stage fuzz test/fuzz.sh "$time"
date -u
if ((failed)); then echo "soak: FAILED"; else echo "soak: passed"; fi
exit "$failed"
