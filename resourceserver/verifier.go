package resourceserver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ostiary-auth/ostiary/internal/jose"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
)

// verifier tells whose a token is and whether it is good, and remembers those
// that were.
type verifier struct {
	authorities []*authority
	asked       *authority // who is asked about tokens that are no JWTs; nil: they are refused
	verified    *cache[verified]
	digests     *digester
	now         func() time.Time
}

// verified is a token that passed, and on what that rests.
type verified struct {
	token *Token
	key   *jose.Key // that signed it; nil of a token that is no JWT
	keys  *keySet   // of key
}

// newVerifier expects options that New has checked and completed.
func newVerifier(o Options, audience string) (*verifier, error) {
	v := &verifier{now: o.Now, verified: newCache[verified](o.TokenCache), digests: newDigester()}
	for _, is := range o.Issuers {
		a, err := newAuthority(o, is, audience)
		if err != nil {
			return nil, err
		}
		v.authorities = append(v.authorities, a)
		if a.introspection != nil {
			v.asked = a
		}
	}
	return v, nil
}

func newAuthority(o Options, is Issuer, audience string) (*authority, error) {
	if is.Algorithms == nil {
		is.Algorithms = o.Algorithms
	}
	algs, err := parseAlgorithms(is.Algorithms)
	if err != nil {
		return nil, err
	}
	a := &authority{Issuer: is, audience: audience, algorithms: algs, skew: o.ClockSkew, now: o.Now,
		keys: &keySet{refresh: o.KeyRefresh, retry: o.KeyRetry, limit: o.KeyLimit, now: o.Now,
			log: o.Log.With(slog.String("issuer", is.Identifier))}}
	if is.JWKS == nil {
		a.keys.source = &issuerKeys{client: o.HTTPClient, issuer: is.Identifier, jwksURI: is.JWKSURI}
	} else {
		keys, err := parseKeys(is.JWKS)
		if err != nil {
			return nil, err
		}
		a.keys.ring.Store(&keyring{keys: keys})
	}
	if is.Introspection != nil {
		a.introspection = newIntrospector(o, a)
	}
	return a, nil
}

// verify returns the token that raw carries. Whatever is wrong with raw is a 401
// refusal; keys or answers that cannot be had are a 503 refusal (M8).
func (v *verifier) verify(ctx context.Context, raw string) (*Token, error) {
	d, now := v.digests.of(raw), v.now()
	if e, ok := v.verified.get(d, now); ok {
		if e.key == nil || e.keys.holds(e.key) {
			return e.token, nil
		}
		v.verified.drop(d) // its key is gone, or too old to be trusted
	}
	if !isToken68(raw) {
		return nil, errNotOneToken
	}
	e, until, err := v.examine(ctx, raw, d)
	if err != nil {
		return nil, err
	}
	v.verified.put(d, e, until, now)
	return e.token, nil
}

// examine verifies raw and returns until when the result holds by itself.
func (v *verifier) examine(ctx context.Context, raw string, d digest) (verified, time.Time, error) {
	var j jose.JWS
	switch err := splitJWT(&j, raw); {
	case errors.Is(err, errNotJWT) && v.asked != nil:
		token, until, err := v.asked.introspection.ask(ctx, raw, d, false)
		return verified{token: token}, until, err
	case err != nil:
		return verified{}, time.Time{}, err
	}
	a := v.issuerOf(j.Claims)
	if a == nil {
		return verified{}, time.Time{}, invalidToken("the token was not issued by this server's authorization server")
	}
	token, key, err := a.verifyJWT(ctx, &j)
	if err != nil {
		return verified{}, time.Time{}, err
	}
	until := token.ExpiresAt.Add(a.skew)
	if a == v.asked && a.Introspection.AlsoJWT {
		// Only now: a forgery costs the issuer nothing, and an answer knows no typ (JW-13).
		var told time.Time
		if token, told, err = a.introspection.ask(ctx, raw, d, true); err != nil {
			return verified{}, time.Time{}, err
		}
		until = earlier(until, told)
	}
	return verified{token: token, key: key, keys: a.keys}, until, nil
}

// issuerOf returns whom iss names, if it is trusted. Nothing is verified yet: the
// token must then bear that issuer's signature.
func (v *verifier) issuerOf(c strictjson.Object) *authority {
	for _, a := range v.authorities {
		if c.Is("iss", a.Identifier) {
			return a
		}
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
