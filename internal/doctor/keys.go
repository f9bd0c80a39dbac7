package doctor

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/jose"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// Bounds of a key set.
const (
	maxKeys    = 64
	keysMaxAge = 24 * time.Hour
)

// algorithms are those that an MCP server may accept (RFC 8725 §3.1).
var algorithms = []jose.Algorithm{jose.ES256, jose.ES384, jose.ES512, jose.EdDSA, jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}

func keyChecks() []Check {
	return []Check{
		{ID: "keys-served", Title: "It publishes its keys", Needs: []string{"metadata-types", "metadata-urls"},
			Fix:       "Serve a JWK set as application/json at jwks_uri, without authentication and redirects.",
			Reference: "RFC 8414 §2; RFC 7517 §5; RFC 9068 §4", Run: checkKeysServed},
		{ID: "keys-public", Title: "They are public keys", Needs: []string{"keys-served"},
			Fix:       "Take the key out of service now: who has read the set can sign tokens. Publish public members only.",
			Reference: "RFC 7517 §9.2", Run: checkKeysPublic},
		{ID: "keys-usable", Title: "MCP servers can verify with them", Needs: []string{"keys-public"},
			Fix:       "Give each key a kid of its own, kty, alg, use sig; RSA of 2048 bits at least.",
			Reference: "RFC 7517 §4; RFC 7518 §3.3; RFC 8725 §3.2", Run: checkKeysUsable},
		{ID: "keys-cache", Title: "They are cached for minutes", Needs: []string{"keys-served"},
			Fix:       "Send Cache-Control: max-age of some minutes: long enough to spare the server, short enough for a rotation.",
			Reference: "RFC 9111 §5.2.2.1", Run: checkKeysCache},
	}
}

func (x *examination) keySet(ctx context.Context) *exchange {
	return x.document(ctx, x.issuerDoc.text("jwks_uri"))
}

func checkKeysServed(ctx context.Context, x *examination) Outcome {
	if x.issuerDoc.text("jwks_uri") == "" {
		return skipped("no jwks_uri: its tokens are opaque, or its keys are a secret of its own")
	}
	e := x.keySet(ctx)
	if out, bad := badStatus(e); bad {
		return out
	}
	if e.status != http.StatusOK {
		return broken("the place that the metadata names has no keys").on(e)
	}
	if out, bad := badFormat(e); bad && !strings.Contains(e.mediaType(), "json") {
		return out
	}
	keys, err := jose.ReadSet(e.body, maxKeys)
	switch {
	case err != nil:
		return broken("the key set %s", err).on(e)
	case len(keys) == 0:
		return broken("the key set is empty").on(e)
	}
	return ok("%d keys", len(keys)).on(e)
}

// publishedKeys reads the set; a key of no use to us is nil.
func (x *examination) publishedKeys(ctx context.Context) (keys []*jose.Key, errs []error) {
	raw, err := jose.ReadSet(x.keySet(ctx).body, maxKeys)
	if err != nil {
		return nil, []error{err}
	}
	for _, r := range raw {
		k, err := jose.ReadKey(r, algorithms)
		keys, errs = append(keys, k), append(errs, err)
	}
	return keys, errs
}

func checkKeysPublic(ctx context.Context, x *examination) Outcome {
	_, errs := x.publishedKeys(ctx)
	for i, err := range errs {
		if errors.Is(err, jose.ErrPrivate) {
			return broken("key %d %s", i+1, err)
		}
	}
	return ok("public members only")
}

func checkKeysUsable(ctx context.Context, x *examination) Outcome {
	keys, errs := x.publishedKeys(ctx)
	usable, seen := 0, map[string]bool{}
	for i, k := range keys {
		switch {
		case errs[i] != nil:
			return broken("key %d %s", i+1, errs[i])
		case k == nil || len(k.Algorithms) == 0:
			continue
		case k.ID == "" && len(keys) > 1:
			return broken("key %d has no kid: receivers cannot tell which one signed", i+1)
		case seen[k.ID]:
			return broken("two keys have the kid %q", k.ID)
		}
		seen[k.ID] = true
		usable++
	}
	if usable == 0 {
		return broken("none of %d keys signs with an algorithm that MCP servers accept", len(keys))
	}
	return ok("%d of %d", usable, len(keys))
}

func checkKeysCache(ctx context.Context, x *examination) Outcome {
	e := x.keySet(ctx)
	control := strings.ToLower(e.header.Get("Cache-Control"))
	_, after, found := strings.Cut(control, "max-age=")
	digits, _, _ := strings.Cut(after, ",")
	seconds, err := strconv.Atoi(strings.TrimSpace(digits))
	switch {
	case !found || err != nil:
		return warn("Cache-Control is %q: each receiver decides by itself", control).on(e)
	case time.Duration(seconds)*time.Second > keysMaxAge:
		return warn("they may be kept for %s: a key that was withdrawn is trusted that long", time.Duration(seconds)*time.Second).on(e)
	}
	return ok("%s", control)
}

// verifySignature checks a token against the published keys.
func (x *examination) verifySignature(ctx context.Context, j *jose.JWS) error {
	alg, known := j.Algorithm(algorithms)
	if !known {
		name, _ := strictjson.String(j.Header.Get("alg"))
		return errors.New("alg is " + strconv.Quote(name))
	}
	kid, err := j.KeyID()
	if err != nil {
		return err
	}
	published, _ := x.publishedKeys(ctx)
	var keys []*jose.Key
	for _, k := range published {
		if k != nil && k.Public != nil {
			keys = append(keys, k)
		}
	}
	k := jose.Find(keys, kid, alg)
	if k == nil {
		return errors.New("no published key has its kid " + strconv.Quote(kid) + " and algorithm " + string(alg))
	}
	return k.Verify(alg, j.Signed, j.Signature)
}
