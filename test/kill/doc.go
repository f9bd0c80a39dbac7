// Package kill holds the test that ends `ostiary serve` with kill -9 under load,
// again and again, on each database, and looks for a grant lost, a token doubled
// or a code used twice (engine.md C6, RT-15, CO-11). OSTIARY_SOAK=1 makes the
// loop long.
package kill
