package resourceserver

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/ostiary-auth/ostiary/metadata"
)

// maxDocument bounds a JWK set, in bytes.
const maxDocument = 1 << 20

// issuerKeys fetches an issuer's keys by its metadata.
type issuerKeys struct {
	client *http.Client
	issuer string
}

func (k *issuerKeys) fetch(ctx context.Context) ([]key, error) {
	jwksURI, err := k.discover(ctx)
	if err != nil {
		return nil, err
	}
	b, err := k.get(ctx, jwksURI)
	if err != nil {
		return nil, fmt.Errorf("fetch jwks_uri: %w", err)
	}
	return parseKeys(b)
}

// discover returns jwks_uri of the issuer's metadata, which names that very
// issuer (RFC 8414 §3.3).
func (k *issuerKeys) discover(ctx context.Context) (string, error) {
	doc, err := metadata.FetchAuthorizationServer(ctx, k.client, k.issuer)
	if err != nil {
		return "", fmt.Errorf("discover %s: %w", k.issuer, err)
	}
	u, err := url.Parse(doc.JWKSURI)
	if err != nil || u.Host == "" || !isSecure(u) {
		return "", fmt.Errorf("jwks_uri %q is not an https URL", doc.JWKSURI)
	}
	// A public issuer may not send us to a service of this machine.
	if u.Scheme == "http" && strings.HasPrefix(k.issuer, "https:") {
		return "", fmt.Errorf("jwks_uri %q is less secure than the issuer", doc.JWKSURI)
	}
	return doc.JWKSURI, nil
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
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	if t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || !isJSON(t) {
		return nil, fmt.Errorf("content type %q is not JSON", resp.Header.Get("Content-Type"))
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err == nil && len(b) > maxDocument {
		err = fmt.Errorf("document is larger than %d bytes", maxDocument)
	}
	return b, err
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}
