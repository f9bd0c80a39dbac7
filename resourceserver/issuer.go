package resourceserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// maxDocument bounds a metadata document and a JWK set, in bytes.
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

// discover returns jwks_uri of the issuer's metadata: RFC 8414 first, then the
// two places of OpenID Connect Discovery. A document that names another issuer
// is refused (RFC 8414 §3.3).
func (k *issuerKeys) discover(ctx context.Context) (string, error) {
	var errs []error
	for _, u := range metadataURLs(k.issuer) {
		jwksURI, err := k.readMetadata(ctx, u)
		if err == nil {
			return jwksURI, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", u, err))
	}
	return "", fmt.Errorf("discover %s: %w", k.issuer, errors.Join(errs...))
}

func (k *issuerKeys) readMetadata(ctx context.Context, from string) (string, error) {
	b, err := k.get(ctx, from)
	if err != nil {
		return "", err
	}
	var doc object
	if err := json.Unmarshal(b, &doc); err != nil {
		return "", fmt.Errorf("parse metadata: %w", err)
	}
	if issuer, _ := doc.str("issuer"); issuer != k.issuer {
		return "", fmt.Errorf("metadata names the issuer %q", issuer)
	}
	jwksURI, _ := doc.str("jwks_uri")
	u, err := url.Parse(jwksURI)
	if err != nil || u.Host == "" || !isSecure(u) {
		return "", fmt.Errorf("jwks_uri %q is not an https URL", jwksURI)
	}
	// A public issuer may not send us to a service of this machine.
	if own, err := url.Parse(k.issuer); err != nil || u.Scheme == "http" && own.Scheme != "http" {
		return "", fmt.Errorf("jwks_uri %q is less secure than the issuer", jwksURI)
	}
	return jwksURI, nil
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

// metadataURLs lists the well-known places of an issuer, with or without a path.
func metadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	urls := []string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		urls = append(urls, origin+path+"/.well-known/openid-configuration")
	}
	return urls
}
