package resourceserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/strictjson"
	"github.com/ostiary-auth/ostiary/metadata"
)

// Secret is a credential. However it is printed or logged it reads [redacted].
type Secret = oauth.Secret

// Limits of introspection.
const (
	introspectionTimeout = 5 * time.Second
	maxAnswer            = 64 << 10 // bytes
	maxAsking            = 32       // requests at a time
	maxStrangers         = 24       // of them, about tokens that nobody has vouched for
	maxAnswerAge         = time.Minute
	inactiveAge          = 10 * time.Second
	inactiveCache        = 1000 // tokens
	activeCache          = 1000 // at least
)

// Introspection asks the issuer about tokens (RFC 7662), with this server's own
// credential: a client's secret or a bearer token.
type Introspection struct {
	// Endpoint is the introspection endpoint. Default: introspection_endpoint of
	// the issuer's metadata.
	Endpoint string
	// ClientID and ClientSecret authenticate this server by HTTP Basic
	// (client_secret_basic). Required unless BearerToken is given.
	ClientID     string
	ClientSecret Secret
	// BearerToken authenticates this server instead (RFC 7662 §2.1).
	BearerToken Secret
	// AlsoJWT asks about the issuer's JWTs too, once they are verified here, so that
	// a revoked one is refused within MaxAge; it costs a request to the issuer where
	// none was needed. Otherwise JWTs are verified here alone, and the issuer is
	// asked about the rest.
	AlsoJWT bool
	// TokenPrefix is what the issuer's tokens that are not JWTs begin with, e.g.
	// "acme_at_": others are refused unasked. Without it everybody can have the
	// issuer asked about anything, and use up what it allows this server; tokens
	// seen active before are still asked about when many others are.
	TokenPrefix string
	// MaxAge is how long an answer is used, at most a minute and never beyond the
	// token's exp: a revoked token works that long (JW-23). Default 30 seconds;
	// a negative value asks for every request. Without Options.TokenCache every
	// request asks, too.
	MaxAge time.Duration
}

func (i *Introspection) check(issuer string) error {
	var errs []error
	basic, bearer := i.ClientID != "" && i.ClientSecret != "", i.BearerToken != ""
	if basic == bearer || (i.ClientID != "") != (i.ClientSecret != "") {
		errs = append(errs, errors.New("Introspection needs either ClientID and ClientSecret or BearerToken"))
	}
	if bearer && !isToken68(i.BearerToken.Reveal()) {
		errs = append(errs, errors.New("Introspection.BearerToken is not a bearer token (RFC 6750 §2.1)"))
	}
	if i.TokenPrefix != "" && !isToken68(i.TokenPrefix) {
		errs = append(errs, fmt.Errorf("Introspection.TokenPrefix %q cannot begin a bearer token (RFC 6750 §2.1)", i.TokenPrefix))
	}
	if i.Endpoint != "" {
		errs = append(errs, checkEndpoint("Introspection.Endpoint", i.Endpoint, issuer))
	}
	if i.MaxAge > maxAnswerAge {
		errs = append(errs, fmt.Errorf("Introspection.MaxAge %s is more than %s", i.MaxAge, maxAnswerAge))
	}
	return errors.Join(errs...)
}

// introspector asks one issuer. A token is asked about once at a time, however
// many requests carry it; what was not active is remembered apart from good
// tokens, so that no flood of guesses displaces those. Guesses do not hold up the
// others either while the issuer is slow: some requests are kept for tokens that
// were active before, or whose signature is good.
type introspector struct {
	Introspection
	authority *authority
	client    *http.Client
	outage    *outageLog
	retry     time.Duration
	strangers chan struct{} // one for each request under way
	vouched   chan struct{} // the same, of those that no stranger takes
	refused   *cache[*refusal]
	active    *cache[struct{}] // tokens that were active when they were last asked about

	flying  sync.Mutex // of flights
	flights map[digest]*flight

	mu          sync.Mutex // of the discovered endpoint
	endpoint    string
	attemptedAt time.Time
	failed      error
}

func newIntrospector(o Options, a *authority) *introspector {
	i := &introspector{Introspection: *a.Issuer.Introspection, authority: a, client: o.HTTPClient,
		outage: &outageLog{log: o.Log.With(slog.String("issuer", a.Identifier)), now: o.Now},
		retry:  o.KeyRetry, flights: map[digest]*flight{},
		strangers: make(chan struct{}, maxStrangers), vouched: make(chan struct{}, maxAsking-maxStrangers),
		active: newCache[struct{}](max(o.TokenCache, activeCache))}
	setDefault(&i.MaxAge, 30*time.Second)
	if i.MaxAge > 0 && o.TokenCache > 0 {
		i.refused = newCache[*refusal](inactiveCache)
	}
	i.endpoint = i.Endpoint
	return i
}

// ask returns the token as the issuer describes it, and how long that may be
// believed. A token that is not active, or not for us, is a 401 refusal; an issuer
// that does not answer is a 503 refusal, never a 401 (M8). vouched tells a token
// that the issuer has signed.
func (i *introspector) ask(ctx context.Context, raw string, d digest, vouched bool) (*Token, time.Time, error) {
	now := i.authority.now()
	if e, ok := i.refused.get(d, now); ok {
		return nil, time.Time{}, e
	}
	if !vouched {
		if !strings.HasPrefix(raw, i.TokenPrefix) {
			return nil, time.Time{}, invalidToken("the token does not begin as those of this server's authorization server do")
		}
		_, vouched = i.active.get(d, now)
	}
	f := i.join(ctx, d, func(ctx context.Context) (answer, error) { return i.request(ctx, raw, d, vouched) })
	defer i.leave(f)
	select {
	case <-f.done:
		return f.token, f.until, f.err
	case <-ctx.Done():
		return nil, time.Time{}, unavailable(ctx.Err())
	}
}

// request asks and reads the answer. It runs on its own, for all who wait.
func (i *introspector) request(ctx context.Context, raw string, d digest, vouched bool) (_ answer, err error) {
	defer func() { // where no request would end with a panic, but the process (JW-31)
		if p := recover(); p != nil {
			err = unavailable(fmt.Errorf("reading the answer panicked: %v", p))
		}
	}()
	body, err := i.post(ctx, raw, vouched)
	if errors.Is(ctx.Err(), context.Canceled) { // nobody waits any more
		return answer{}, unavailable(ctx.Err())
	}
	if err != nil {
		i.outage.warn(ctx, "the authorization server could not be asked about a token",
			slog.String("event", "introspection.failed"), slog.Any("cause", err))
		return answer{}, unavailable(err)
	}
	now := i.authority.now()
	token, err := i.read(body)
	if e := (*refusal)(nil); errors.As(err, &e) && e.status == http.StatusUnauthorized {
		i.active.drop(d)
		i.refused.put(d, e, now.Add(min(inactiveAge, i.MaxAge)), now)
	}
	if err != nil {
		return answer{}, err
	}
	end := token.ExpiresAt.Add(i.authority.skew)
	i.active.put(d, struct{}{}, end, now)
	return answer{token: token, until: earlier(now.Add(i.MaxAge), end)}, nil
}

// read applies RFC 7662 §2.2, and what is asked of a JWT's claims: aud and exp
// must be there, whatever the RFC allows, for without them nobody says that the
// token is meant for this server (AU-07) or when it ends.
func (i *introspector) read(body []byte) (*Token, error) {
	c, err := strictjson.ReadObject(body, nil, strictjson.Small)
	if err != nil {
		return nil, unavailable(fmt.Errorf("introspection response: %w", err))
	}
	switch string(c.Get("active")) {
	case "true":
	case "false":
		return nil, invalidToken("the token is not active")
	default:
		return nil, unavailable(errors.New("introspection response: active is not a boolean"))
	}
	if c.Has("iss") && !c.Is("iss", i.authority.Identifier) {
		return nil, invalidToken("the token was not issued by this server's authorization server")
	}
	if kind, ok := c.Str("token_type"); c.Has("token_type") && (!ok || !isBearerType(kind)) {
		return nil, invalidToken("the token is not a bearer access token")
	}
	return i.authority.readToken(c)
}

// isBearerType reads token_type (RFC 6749 §5.1). Some servers say access_token.
func isBearerType(kind string) bool {
	return strings.EqualFold(kind, "Bearer") || strings.EqualFold(kind, "access_token")
}

// post sends the token to the issuer and returns the response, which must be a
// JSON document with status 200: a refusal of our own credential is an outage.
func (i *introspector) post(ctx context.Context, raw string, vouched bool) ([]byte, error) {
	var more chan struct{} // nil: never ready
	if vouched {
		more = i.vouched
	}
	select {
	case i.strangers <- struct{}{}:
		defer func() { <-i.strangers }()
	case more <- struct{}{}:
		defer func() { <-more }()
	case <-ctx.Done():
		return nil, errors.New("too many requests to the introspection endpoint are under way")
	}
	endpoint, err := i.locate(ctx)
	if err != nil {
		return nil, err
	}
	form := url.Values{"token": {raw}, "token_type_hint": {"access_token"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if i.BearerToken != "" {
		req.Header.Set("Authorization", "Bearer "+i.BearerToken.Reveal())
	} else {
		// RFC 6749 §2.3.1: both are form-encoded first.
		req.SetBasicAuth(url.QueryEscape(i.ClientID), url.QueryEscape(i.ClientSecret.Reveal()))
	}
	resp, err := i.client.Do(req)
	if err != nil {
		return nil, err
	}
	return readJSON(resp, maxAnswer)
}

// locate returns the endpoint as configured, or of the issuer's metadata, which is
// asked at most once in each retry interval until it answers.
func (i *introspector) locate(ctx context.Context) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.endpoint != "" {
		return i.endpoint, nil
	}
	now := i.authority.now()
	if i.failed != nil && now.Sub(i.attemptedAt) < i.retry {
		return "", i.failed
	}
	i.attemptedAt = now
	// Who gives up while we look decides nothing for those who come after.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), introspectionTimeout)
	defer cancel()
	doc, err := metadata.FetchAuthorizationServer(ctx, i.client, i.authority.Identifier)
	if err == nil {
		err = checkEndpoint("introspection_endpoint", doc.IntrospectionEndpoint, i.authority.Identifier)
	}
	if i.failed = err; err != nil {
		return "", fmt.Errorf("discover %s: %w", i.authority.Identifier, err)
	}
	i.endpoint = doc.IntrospectionEndpoint
	return i.endpoint, nil
}
