package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// result is one round of one proxy; times are microseconds.
type result struct{ throughput, p50, p99, processor float64 }

// call is a tools/call of about 1 kB.
var call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"text":"` +
	strings.Repeat("note ", 180) + `"}}}`

type client struct {
	http  *http.Client
	token string
}

func newClient(concurrency int, token string) *client {
	return &client{token: token, http: &http.Client{Timeout: time.Minute,
		Transport: &http.Transport{MaxIdleConns: 2 * concurrency, MaxIdleConnsPerHost: concurrency, DisableCompression: true}}}
}

// run calls url with all clients for as long as o says.
func (c *client) run(url string, o options) (result, error) {
	before, err := c.processorTime(url)
	if err != nil {
		return result{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.time)
	defer cancel()
	began := time.Now()
	took, err := c.callUntil(ctx, url, o.concurrency)
	elapsed := time.Since(began)
	if err != nil {
		return result{}, err
	}
	after, err := c.processorTime(url)
	if err != nil || len(took) == 0 {
		return result{}, errors.Join(err, errors.New("no request was answered"))
	}
	slices.Sort(took)
	n := len(took)
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return result{throughput: float64(n) / elapsed.Seconds(), p50: us(took[n/2]), p99: us(took[n*99/100]),
		processor: us(after-before) / float64(n)}, nil
}

func (c *client) callUntil(ctx context.Context, url string, concurrency int) ([]time.Duration, error) {
	var (
		mu   sync.Mutex
		all  []time.Duration
		errs []error
		wg   sync.WaitGroup
	)
	for range concurrency {
		wg.Go(func() {
			var took []time.Duration
			var err error
			for ctx.Err() == nil && err == nil {
				began := time.Now()
				err = c.call(url)
				took = append(took, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			all, errs = append(all, took...), append(errs, err)
		})
	}
	wg.Wait()
	return all, errors.Join(errs...)
}

func (c *client) call(url string) error {
	r, err := http.NewRequest(http.MethodPost, url+"/mcp", strings.NewReader(call))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + c.token, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-11-25", "User-Agent": "load"} {
		r.Header.Set(name, value)
	}
	res, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || int(n) != len(answer)) {
		err = fmt.Errorf("%s answered %d with %d bytes", url, res.StatusCode, n)
	}
	return err
}

// processorTime asks the process at url for what it used so far.
func (c *client) processorTime(url string) (time.Duration, error) {
	res, err := c.http.Get(url + usedPath)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return time.Duration(n), err
}
