#!/usr/bin/env bash
# make run: ostiary on SQLite with the example MCP server beside it, until
# interrupted. The first argument is the folder of the two binaries.
set -euo pipefail
build=$1
issuer=http://localhost:8414
resource=http://127.0.0.1:9100/mcp

"$build/ostiary" serve --log-format text --log-level warn &
server=$!
example=
stop() {
	trap - EXIT INT TERM
	kill "$server" ${example:+"$example"} 2>/dev/null || true
	wait
}
trap stop EXIT
trap 'exit 0' INT TERM

for _ in $(seq 100); do
	curl --silent --fail --output /dev/null http://127.0.0.1:8415/readyz && break
	kill -0 "$server" 2>/dev/null || exit 1 # it has said why
	sleep 0.2
done
"$build/mcpserver" --issuer "$issuer" --resource "$resource" &
example=$!

cat <<TEXT
The example MCP server is at $resource

Try next:
  1. Open the set-up link above, if there is one, and make your account.
  2. Connect an MCP client:
       claude mcp add --transport http notes $resource
       npx @modelcontextprotocol/inspector      (URL: $resource)
     or see what a client sees first:
       curl -i $resource
       curl $issuer/.well-known/oauth-authorization-server
  3. Look at what you allowed: $issuer/account
Ctrl-C stops both.
TEXT
wait -n "$server" "$example"
