#!/usr/bin/env bash
# Runs every FuzzX of the module for the time in the first argument, one after
# the other, and fails at the end when one found something. Interesting inputs are hardly
# minimized: large ones would take all the time.
set -uo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}
failed=0
for package in $(grep -rl --include='*_test.go' '^func Fuzz' . | grep -v node_modules | xargs -n1 dirname | sort -u); do
	for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | sed 's/func //' | sort -u); do
		echo "== $package $target"
		if out=$(go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 100x 2>&1); then
			tail -n 3 <<<"$out"
		else
			echo "$out" # with what it found
			failed=1
		fi
	done
done
exit "$failed"
