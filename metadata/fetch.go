package metadata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Limits of a fetch (D5).
const (
	fetchTimeout   = 5 * time.Second
	fetchMaxBytes  = 1 << 20
	fetchRedirects = 3
)

// ErrNotServed reports that none of the places where a document may live has it.
var ErrNotServed = errors.New("no metadata document is served")

// FetchAuthorizationServer gets an issuer's metadata from the first of its
// well-known places that has it, within 5 seconds and 1 MiB each. No redirect is
// followed: it could lead to a file that somebody uploaded to the issuer's host,
// and choose the keys (JW-22). A place that answers 4xx is passed over; any other
// failure is final, so that nobody can steer a client to a weaker document.
// client may be nil; its redirect policy and time limit are not used.
func FetchAuthorizationServer(ctx context.Context, client *http.Client, issuer string) (AuthorizationServer, error) {
	doc, _, err := FetchAuthorizationServerDocument(ctx, client, issuer)
	return doc, err
}

// FetchAuthorizationServerDocument does what FetchAuthorizationServer does, and
// returns the document's bytes too, for who hands it on unchanged (M9).
func FetchAuthorizationServerDocument(ctx context.Context, client *http.Client, issuer string) (AuthorizationServer, []byte, error) {
	urls, err := AuthorizationServerURLs(issuer)
	if err != nil {
		return AuthorizationServer{}, nil, err
	}
	body, err := fetchFirst(ctx, withRedirects(client, followNone), urls)
	if err != nil {
		return AuthorizationServer{}, nil, err
	}
	doc, err := ParseAuthorizationServer(body, issuer)
	if err != nil {
		return AuthorizationServer{}, nil, err
	}
	return doc, body, nil
}

// FetchProtectedResource gets a resource's metadata from its well-known place,
// or else from its origin's, under the same limits, and checks that it is of
// this resource. A few redirects within the origin are followed: what the
// document says is shown as a claim and decides nothing (D5).
func FetchProtectedResource(ctx context.Context, client *http.Client, resource string) (ProtectedResource, error) {
	first, err := ProtectedResourceURL(resource)
	if err != nil {
		return ProtectedResource{}, err
	}
	urls := []string{first}
	u, err := url.Parse(resource)
	if err != nil {
		return ProtectedResource{}, fmt.Errorf("resource: %w", err)
	}
	if root := u.Scheme + "://" + u.Host + pathProtectedResource; root != first {
		urls = append(urls, root)
	}
	body, err := fetchFirst(ctx, withRedirects(client, followOnOrigin), urls)
	if err != nil {
		return ProtectedResource{}, err
	}
	return ParseProtectedResource(body, resource)
}

func fetchFirst(ctx context.Context, client *http.Client, urls []string) ([]byte, error) {
	for _, u := range urls {
		body, err := fetch(ctx, client, u)
		if !errors.Is(err, ErrNotServed) {
			return body, err
		}
	}
	return nil, fmt.Errorf("%w at %s", ErrNotServed, urls[0])
}

// fetch gets one URL; a 4xx is ErrNotServed.
func fetch(ctx context.Context, client *http.Client, rawURL string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch metadata: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch metadata: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return nil, fmt.Errorf("%w: %s answered %s", ErrNotServed, rawURL, resp.Status)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("fetch metadata: %s answered %s", rawURL, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, fetchMaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("fetch metadata: %w", err)
	}
	if len(body) > fetchMaxBytes {
		return nil, fmt.Errorf("fetch metadata: %s is larger than %d bytes", rawURL, fetchMaxBytes)
	}
	return body, nil
}

// redirectPolicy decides about a redirect, as http.Client.CheckRedirect does.
type redirectPolicy func(req *http.Request, via []*http.Request) error

// withRedirects returns a client of the same transport under policy that keeps
// no cookies.
func withRedirects(client *http.Client, policy redirectPolicy) *http.Client {
	c := &http.Client{CheckRedirect: policy}
	if client != nil {
		c.Transport = client.Transport
	}
	return c
}

func followNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func followOnOrigin(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	if req.URL.Scheme != from.Scheme || req.URL.Host != from.Host {
		return fmt.Errorf("redirect to another origin (%s://%s) is not followed", req.URL.Scheme, req.URL.Host)
	}
	if len(via) > fetchRedirects {
		return fmt.Errorf("more than %d redirects", fetchRedirects)
	}
	return nil
}
