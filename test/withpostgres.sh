#!/usr/bin/env bash
# Runs a command with OSTIARY_TEST_POSTGRES set: as it is, when it is set
# already; else to a throwaway cluster of pgcluster, the first argument; else,
# where PostgreSQL is not installed and CI is not true, to "off".
set -euo pipefail
pgcluster=$1
shift
if [[ -n ${OSTIARY_TEST_POSTGRES:-} ]]; then
	exec "$@"
fi
if [[ ${CI:-} == true ]] || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null; then
	exec "$pgcluster" "$@"
fi
export OSTIARY_TEST_POSTGRES=off
exec "$@"
