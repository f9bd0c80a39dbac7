// Package stdio puts an MCP server that speaks over standard input and output
// behind resourceserver: one HTTP session is one child process, and what it and
// the client say to one another passes through as it is. It owns the processes
// (how many, whose, how long, in which environment) and the HTTP side of the
// transport (MCP transports, Streamable HTTP); what the messages mean is the
// child's business, and who may send them resourceserver's.
//
// Clients of 2025-03-26 to 2025-11-25 begin with initialize, and the session is a
// child of its own. Since 2026-07-28 there are no sessions: all requests that one
// client makes for one subject go to one child, which is asked by server/discover
// whether it speaks that revision. If it does not, the client is told which it
// does, and begins with initialize.
//
// Messages are read with the SDK's jsonrpc package. The HTTP side is not the SDK's:
// ADR 0014 says why.
package stdio
