package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/ostiary-auth/ostiary/authserver"
	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/account"
	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/ratelimit"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/metadata"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// App is one server, without listeners.
type App struct {
	*Core
	o        Options
	cfg      *config.Config
	db       *sqlstore.Store
	edge     *endpoint.Edge
	pages    *web.Renderer
	sessions *login.Sessions
	forms    flow.Forms
	auth     *authserver.Server
	register *registration.Handler
	public   http.Handler
}

// attemptsPerRegistration bounds the work of refused registrations, in this
// process, at so many attempts for each client that may be registered; the
// budget of clients itself is counted in rows.
const attemptsPerRegistration = 10

// secretsPerMinute bounds wrong secrets of one client from one network source (CA-12).
const secretsPerMinute = 30

// introspectionBurst is how many seconds' worth of questions about tokens one asker
// may send at once: an MCP server that starts knows no token.
const introspectionBurst = 10

// How many documents with clients' keys this process fetches in a minute: from
// one host and in all for clients that nobody ever approved, and for each client
// that somebody did, whose one URL is fetched twice at most.
const (
	keyFetchesPerHost   = 30
	keyFetches          = 1200
	keyFetchesPerClient = 4
)

// router is what every handler package offers.
type router interface {
	Routes(pages, endpoints *http.ServeMux)
}

// New wires a server.
func New(ctx context.Context, o Options) (*App, error) {
	if err := o.defaults(ctx); err != nil {
		return nil, err
	}
	core, err := newCore(ctx, o)
	if err != nil {
		return nil, err
	}
	a := &App{Core: core, o: o, cfg: o.Config, db: o.Store}
	if err := a.adoptAlgorithm(ctx); err != nil {
		return nil, err
	}
	if err := a.addEdge(); err != nil {
		return nil, err
	}
	routers, err := a.routers()
	if err != nil {
		return nil, err
	}
	return a, a.mount(routers)
}

// adoptAlgorithm lets a change of signing_algorithm begin (D28). Only a server
// does so: a command may have been told less.
func (a *App) adoptAlgorithm(ctx context.Context) error {
	next, adopted, err := a.Keys.Adopt(ctx)
	switch {
	case errors.Is(err, keys.ErrRotating): // it signs with what it has, and the next start tries again
		a.o.Log.WarnContext(ctx, "signing_algorithm is not followed yet", slog.String("event", "key.adoption_waits"), slog.String("cause", err.Error()))
		return nil
	case err != nil:
		return err
	case adopted:
		a.o.Log.InfoContext(ctx, "a key of another signing_algorithm is published", slog.String("event", "key.adopted"),
			slog.String("kid", next.KID), slog.String("alg", next.Algorithm), slog.Time("active_at", next.ActiveAt))
	}
	return nil
}

// addEdge makes what every page and endpoint stands on.
func (a *App) addEdge() (err error) {
	if a.pages, err = web.New(web.Options{Operator: a.cfg.Operator(), Issuer: a.cfg.Issuer, Base: a.cfg.Base(),
		HelpURL: a.cfg.HelpURL, PrivacyURL: a.cfg.PrivacyURL, HelpContact: a.cfg.HelpContact, Now: a.o.Now}); err != nil {
		return err
	}
	a.edge = endpoint.New(endpoint.Options{Log: a.o.Log, Pages: a.pages, Now: a.o.Now, Unavailable: a.db.IsUnavailable})
	if a.sessions, err = login.NewSessions(login.SessionOptions{Store: a.db, Requests: a.db, Tx: a.db, Now: a.o.Now,
		Development: a.cfg.Dev()}); err != nil {
		return err
	}
	key, err := a.Secrets.Derive(a.Secrets.MintKID(), keys.PurposeForm)
	if err != nil {
		return err
	}
	a.forms = &flow.HMACForms{Key: key, Now: a.o.Now}
	return nil
}

// routers makes every handler package's handler.
func (a *App) routers() ([]router, error) {
	var list []router
	var errs []error
	add := func(r router, err error) { list, errs = append(list, r), append(errs, err) }

	attempts, err := ratelimit.New(ratelimit.Options{PerSource: attemptsPerRegistration * a.cfg.RegistrationPerHour,
		Total: attemptsPerRegistration * a.cfg.RegistrationPerHourTotal, Now: a.o.Now})
	if err != nil {
		return nil, err
	}
	clientKeys, err := a.clientKeys()
	if err != nil {
		return nil, err
	}
	if a.register, err = a.registration(attempts, clientKeys); err == nil {
		list = append(list, a.register)
	}
	errs = append(errs, err)
	guesses, guessErr := ratelimit.New(ratelimit.Options{PerSource: secretsPerMinute, Period: time.Minute, Now: a.o.Now})
	introspections, askErr := ratelimit.New(ratelimit.Options{PerSource: introspectionBurst * a.cfg.IntrospectionsPerSecond,
		Period: introspectionBurst * time.Second, Now: a.o.Now})
	errs = append(errs, guessErr, askErr)
	resolver, err := a.resolver()
	errs = append(errs, err)
	a.auth, err = authserver.New(authserver.Options{
		Issuer: a.cfg.Issuer, Edge: a.edge, Pages: a.pages, Log: a.o.Log, Now: a.o.Now, Secrets: a.Secrets, Keys: a.Keys,
		Tx: a.db, Grants: a.db, Redemptions: a.db, Requests: a.db, Consents: a.db, Audit: a.db, Clients: a.db, SessionRows: a.db,
		Resolver: resolver, ClientDocuments: resolver.Documents != nil, Resources: a.Registry, Sessions: a.sessions,
		ClientKeys: clientKeys, Assertions: a.db, Guesses: guesses, Credentials: a.db, Introspections: introspections,
		AccessTokenLifetime: a.cfg.AccessTokenLifetime, CodeLifetime: a.cfg.CodeLifetime,
		RefreshIdle: a.cfg.RefreshIdle, RefreshAbsolute: a.cfg.RefreshAbsolute,
		LoopbackRefreshAbsolute: a.cfg.LoopbackRefreshAbsolute, RefreshRetryWindow: a.cfg.RefreshRetryWindow,
	})
	add(a.auth, err)
	add(login.New(login.Options{Edge: a.edge, Pages: a.pages, Base: a.cfg.Base(), Issuer: a.cfg.Issuer,
		Development: a.cfg.Dev(), Sessions: a.sessions, Forms: a.forms, Passwords: a.Passwords, Accounts: a.Accounts,
		Users: a.db, Devices: a.db, Guesses: a.db, Setup: a.db, Requests: a.db, Audit: a.db, Tx: a.db,
		Describe: a.describe, AddResource: a.addResource, Now: a.o.Now}))
	add(consent.New(consent.Options{Edge: a.edge, Pages: a.pages, Base: a.cfg.Base(), Issuer: a.cfg.Issuer,
		Sessions: a.sessions, Forms: a.forms, Requests: a.db, Clients: a.db, Resources: a.Registry, Consents: a.db,
		Tx: a.db, Now: a.o.Now}))
	add(account.New(account.Options{Edge: a.edge, Pages: a.pages, Base: a.cfg.Base(), Sessions: a.sessions,
		Forms: a.forms, SessionStore: a.db, Grants: a.db, Clients: a.db, Resources: a.db, Consents: a.db, Audit: a.db,
		Tx: a.db, AccessTokenLife: a.cfg.AccessTokenLifetime, Now: a.o.Now}))
	return list, errors.Join(errs...)
}

// registration makes the endpoint at which clients register and manage themselves.
func (a *App) registration(attempts *ratelimit.Limiter, clientKeys *registration.ClientKeys) (*registration.Handler, error) {
	statements := &registration.Statements{Audience: a.cfg.Issuer, Keys: clientKeys}
	for _, i := range a.cfg.StatementIssuers() {
		statements.Issuers = append(statements.Issuers, registration.StatementIssuer(i))
	}
	return registration.New(registration.Options{Issuer: a.cfg.Issuer, Edge: a.edge, Limit: attempts.Wait, Clients: a.db,
		Resources: a.db, InitialTokens: a.db, Statements: statements, Grants: a.db, Consents: a.db, Audit: a.db, Tx: a.db,
		CheckURL: a.Outbound.Check, Now: a.o.Now, Policy: registration.Policy{Mode: registration.Mode(a.cfg.Registration),
			Management: registration.Management(a.cfg.RegistrationManagement), PerSource: a.cfg.RegistrationPerHour,
			Total: a.cfg.RegistrationPerHourTotal, RedirectHosts: a.cfg.RegistrationRedirectHosts,
			RedirectSchemes: a.cfg.RegistrationRedirectSchemes}})
}

// clientKeys makes what finds the keys of private_key_jwt and of those who sign
// software statements: one cache, so that one URL is fetched by one rule.
func (a *App) clientKeys() (*registration.ClientKeys, error) {
	strangers, err := ratelimit.New(ratelimit.Options{PerSource: keyFetchesPerHost, Total: keyFetches, Period: time.Minute, Now: a.o.Now})
	if err != nil {
		return nil, err
	}
	approved, err := ratelimit.New(ratelimit.Options{PerSource: keyFetchesPerClient, Period: time.Minute, Now: a.o.Now})
	if err != nil {
		return nil, err
	}
	return registration.NewClientKeys(registration.ClientKeysOptions{Fetcher: a.Outbound, LimitStrangers: strangers.Wait,
		LimitApproved: approved.Wait, Log: a.o.Log, Now: a.o.Now}), nil
}

// mount puts the handlers behind the public listener.
func (a *App) mount(routers []router) error {
	root, pages, endpoints := http.NewServeMux(), http.NewServeMux(), http.NewServeMux()
	for _, r := range routers {
		r.Routes(pages, endpoints)
	}
	a.pages.Routes(pages, endpoints)
	endpoints.Handle("/jwks.json", keys.Handler(a.Keys))
	docs, err := metadata.NewHandler(metadata.HandlerOptions{Issuer: a.cfg.Issuer, Algorithms: a.Keys.Algorithms,
		Document: func(ctx context.Context) (metadata.AuthorizationServer, error) {
			return a.auth.Metadata(ctx, a.register.Open())
		},
		OnError: func(ctx context.Context, err error) {
			a.o.Log.WarnContext(ctx, "metadata is served from the last good copy", slog.String("cause", err.Error()))
		}})
	if err != nil {
		return err
	}
	root.Handle("/.well-known/", docs)
	if base := a.cfg.Base(); base != "" {
		root.Handle(base+"/.well-known/", docs)
	}
	a.public = a.edge.Site(endpoint.SiteOptions{Issuer: a.cfg.IssuerURL(), Hosts: a.cfg.AllowedHosts,
		Development: a.cfg.Dev(), TrustedProxies: a.cfg.Proxies(), Root: root, Pages: pages, Endpoints: endpoints,
		CrossSite: authserver.CrossSitePatterns(), CORS: endpoint.CORS, SameOrigin: authserver.SameOriginPatterns()})
	return nil
}

// describe says what a stored request is about, for the sign-in page.
func (a *App) describe(ctx context.Context, req flow.AuthorizationRequest) (web.Client, string, error) {
	client, err := a.db.GetClient(ctx, req.ClientID)
	if err != nil {
		return web.Client{}, "", err
	}
	res, err := a.Registry.ByIdentifier(ctx, req.Resource)
	if err != nil {
		return web.Client{}, "", err
	}
	return registration.Describe(&client), res.Name, nil
}

// addResource registers the first MCP server from the set-up page.
func (a *App) addResource(ctx context.Context, url, name string) error {
	_, err := a.Resources.Add(ctx, resource.Resource{Identifier: url, Name: name})
	return err
}

// Public returns the handler of the public listener.
func (a *App) Public() http.Handler { return a.public }

// SetupLink returns a new set-up link while no account exists, "" otherwise (D3).
func (a *App) SetupLink(ctx context.Context) (string, error) {
	n, err := a.db.CountUsers(ctx)
	if err != nil || n > 0 {
		return "", err
	}
	_, link, err := a.Setup.New(ctx)
	if errors.Is(err, login.ErrOperatorExists) {
		return "", nil
	}
	return link, err
}

// Ready reports whether the server can do its work.
func (a *App) Ready(ctx context.Context) error {
	if a.o.clock != nil {
		if err := a.o.clock.Check(); err != nil {
			return err
		}
	}
	return a.db.Ping(ctx)
}

// Loops returns the background work by name; each ends with its context.
func (a *App) Loops() map[string]func(context.Context) error {
	loops := map[string]func(context.Context) error{
		"keys": every(30*time.Second, a.o.Log, "signing keys were not read again", a.Keys.Reload),
		"gc":   every(time.Minute, a.o.Log, "expired rows were not collected", a.collect),
	}
	if a.o.clock != nil {
		loops["clock"] = every(time.Minute, a.o.Log, "the database's clock was not read", a.o.clock.Measure)
	}
	return loops
}

// collect deletes what has expired, unless another process has just done so.
func (a *App) collect(ctx context.Context) error {
	mine, err := a.db.CollectInTurn(ctx, a.o.Now())
	if err != nil || !mine {
		return err
	}
	removed, err := a.Idle.Collect(ctx)
	if removed > 0 {
		a.o.Log.InfoContext(ctx, "clients that nobody used were removed", slog.String("event", "client.expired"), slog.Int("clients", removed))
	}
	return err
}

// every calls fn at an interval until ctx ends; a failure is logged and tried
// again the next time.
func every(interval time.Duration, log *slog.Logger, failed string, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				if err := fn(ctx); err != nil && ctx.Err() == nil {
					log.WarnContext(ctx, failed, slog.String("cause", fmt.Sprint(err)))
				}
			}
		}
	}
}
