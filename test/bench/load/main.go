// Command load compares ostiary gateway with a plain httputil.ReverseProxy at the
// same load. Upstream, both proxies and the clients are processes of their own;
// rounds of both alternate, so that what disturbs the machine disturbs both. It
// prints throughput, latency and the proxies' processor time for each request, and
// the ratios with their spread.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"time"
)

func main() {
	log.SetFlags(0)
	if role := os.Getenv("BENCH_ROLE"); role != "" {
		log.Fatal(serve(role))
	}
	var o options
	flag.IntVar(&o.rounds, "rounds", 9, "how many rounds; each measures both proxies")
	flag.IntVar(&o.concurrency, "concurrency", 16, "how many clients call at a time")
	flag.DurationVar(&o.time, "time", time.Second, "how long each proxy is measured in a round")
	flag.Parse()
	if err := compare(o); err != nil {
		log.Fatal(err)
	}
}

// options is what is measured.
type options struct {
	rounds, concurrency int
	time                time.Duration
}

func compare(o options) error {
	w, err := start()
	if err != nil {
		return err
	}
	defer w.stop()
	client := newClient(o.concurrency, w.token)
	var plain, gateway []result
	for i := range o.rounds + 1 {
		a, b := &plain, &gateway
		first, second := w.plain, w.gateway
		if i%2 == 1 { // who goes first has no advantage
			a, b, first, second = b, a, second, first
		}
		for _, turn := range []struct {
			of  *[]result
			url string
		}{{a, first}, {b, second}} {
			r, err := client.run(turn.url, o)
			if err != nil {
				return err
			}
			if i > 0 { // the round before warms up
				*turn.of = append(*turn.of, r)
			}
		}
	}
	report(o, plain, gateway)
	return nil
}

func report(o options, plain, gateway []result) {
	fmt.Printf("%d rounds of %s each, %d clients at a time, a tools/call of 1 kB answered by 2 kB\n\n", o.rounds, o.time, o.concurrency)
	fmt.Printf("%-24s %28s %28s   %s\n", "", "plain ReverseProxy", "ostiary gateway", "gateway / plain")
	for _, row := range []struct {
		name, unit string
		of         func(result) float64
	}{
		{"requests a second", "", func(r result) float64 { return r.throughput }},
		{"median latency", "us", func(r result) float64 { return r.p50 }},
		{"99th percentile", "us", func(r result) float64 { return r.p99 }},
		{"processor time a request", "us", func(r result) float64 { return r.processor }},
	} {
		var a, b, ratio []float64
		for i := range plain {
			a, b = append(a, row.of(plain[i])), append(b, row.of(gateway[i]))
			ratio = append(ratio, row.of(gateway[i])/row.of(plain[i]))
		}
		fmt.Printf("%-24s %28s %28s   %s\n", row.name, spread(a, "%.0f", row.unit), spread(b, "%.0f", row.unit), spread(ratio, "%.2f", ""))
	}
	fmt.Println("\neach: median (least to greatest); goal for the ratios 1.10, for requests a second 1/1.10 = 0.91")
}
