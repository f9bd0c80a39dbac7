package resourceserver

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/jose"
	"github.com/ostiary-auth/ostiary/metadata"
)

// maxDocument bounds a JWK set, in bytes.
const maxDocument = 1 << 20

// issuerKeys fetches an issuer's keys, by its metadata unless jwksURI is given.
type issuerKeys struct {
	client  *http.Client
	issuer  string
	jwksURI string
}

func (k *issuerKeys) fetch(ctx context.Context) ([]*jose.Key, error) {
	jwksURI, err := k.locate(ctx)
	if err != nil {
		return nil, err
	}
	b, err := k.get(ctx, jwksURI)
	if err != nil {
		return nil, fmt.Errorf("fetch jwks_uri: %w", err)
	}
	return parseKeys(b)
}

// locate returns jwks_uri as configured, or of the issuer's metadata, which names
// that very issuer (RFC 8414 §3.3).
func (k *issuerKeys) locate(ctx context.Context) (string, error) {
	if k.jwksURI != "" {
		return k.jwksURI, nil
	}
	doc, err := metadata.FetchAuthorizationServer(ctx, k.client, k.issuer)
	if err != nil {
		return "", fmt.Errorf("discover %s: %w", k.issuer, err)
	}
	return doc.JWKSURI, checkEndpoint("jwks_uri", doc.JWKSURI, k.issuer)
}

func (k *issuerKeys) get(ctx context.Context, from string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	return readJSON(resp, maxDocument)
}

// readJSON reads and closes a response that must be a JSON document of at most
// limit bytes.
func readJSON(resp *http.Response, limit int64) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	if t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || !isJSON(t) {
		return nil, fmt.Errorf("content type %q is not JSON", resp.Header.Get("Content-Type"))
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("document is larger than %d bytes", limit)
	}
	return b, err
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}
