package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ostiary-auth/ostiary/internal/config"
	"github.com/ostiary-auth/ostiary/internal/keys"
	"github.com/ostiary-auth/ostiary/internal/login"
	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/sqlstore"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
)

// Options configures NewCore and New.
type Options struct {
	// Config is validated. Required.
	Config *config.Config
	// Log receives everything. Default: nothing.
	Log *slog.Logger
	// Now is the clock. Default: this machine's, and on PostgreSQL the database's (D27).
	Now func() time.Time
	// Store is open and migrated. Required.
	Store *sqlstore.Store
	// Passwords says what hashing costs, for tests; AtOnce is the configuration's.
	// Default: package login's.
	Passwords login.PasswordOptions
	// Outbound asks hosts that clients name. Default: as the configuration says.
	Outbound *netguard.Client
	// Pause waits before a metadata document counts as unreadable, for tests
	// (CI-15). Default: package registration's.
	Pause func(ctx context.Context, d time.Duration)

	clock *clock // nil where Now was given or the database has none
}

func (o *Options) defaults(ctx context.Context) error {
	if o.Config == nil || o.Store == nil {
		return errors.New("app: Config and Store are required")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Outbound == nil {
		var err error
		if o.Outbound, err = NewOutbound(o.Config); err != nil {
			return err
		}
	}
	if o.Now != nil {
		return nil
	}
	o.Now = time.Now
	if _, shared, err := o.Store.Now(ctx); err != nil || !shared {
		return err
	}
	o.clock = &clock{local: time.Now, log: o.Log, remote: func(ctx context.Context) (time.Time, error) {
		now, _, err := o.Store.Now(ctx)
		return now, err
	}}
	o.Now = o.clock.Now
	return o.clock.Measure(ctx)
}

// NewOutbound returns the client for hosts that foreigners name. Our own names
// are never among them (CI-13).
func NewOutbound(cfg *config.Config) (*netguard.Client, error) {
	own := []string{cfg.IssuerURL().Host}
	for _, h := range cfg.AllowedHosts {
		if _, err := netguard.ParseHost(h); err == nil { // any other is a spelling that no URL may have
			own = append(own, h)
		}
	}
	return netguard.New(netguard.Options{AllowHosts: cfg.OutboundAllowHosts, Proxy: cfg.OutboundProxy, OwnHosts: own})
}

// Core is what the commands and the server have in common: the functions that
// change accounts, clients, resources and keys.
type Core struct {
	Store     *sqlstore.Store
	Secrets   *keys.Secrets
	Keys      *keys.Set
	Passwords *login.Passwords
	Accounts  *login.Accounts
	Setup     *login.SetupLinks
	Clients   *registration.Admin
	Idle      *registration.Idle
	Resources *resource.Admin
	Registry  *resource.Registry
	Outbound  *netguard.Client
}

// NewCore checks the secret against the database, makes the first signing key
// where there is none, and returns the core.
func NewCore(ctx context.Context, o Options) (*Core, error) {
	if err := o.defaults(ctx); err != nil {
		return nil, err
	}
	return newCore(ctx, o)
}

func newCore(ctx context.Context, o Options) (*Core, error) {
	c, cfg := &Core{Store: o.Store, Outbound: o.Outbound}, o.Config
	var err error
	if c.Secrets, err = loadSecrets(ctx, cfg, o.Store); err != nil {
		return nil, err
	}
	if err := c.Secrets.Verify(ctx, o.Store, cfg.Issuer, o.Now()); err != nil {
		return nil, err
	}
	if c.Keys, err = keys.NewSet(keys.SetOptions{Store: o.Store, Secrets: c.Secrets, Issuer: cfg.Issuer,
		Tokens: config.MaxAccessTokenLifetime, Algorithm: keys.Algorithm(cfg.SigningAlgorithm), Now: o.Now}); err != nil {
		return nil, err
	}
	if err := c.Keys.Ensure(ctx); err != nil {
		return nil, err
	}
	return c, c.addPeople(o)
}

func (c *Core) addPeople(o Options) (err error) {
	s, cfg := o.Store, o.Config
	o.Passwords.AtOnce = cfg.PasswordHashingAtOnce
	if c.Passwords, err = login.NewPasswords(o.Passwords); err != nil {
		return err
	}
	c.Accounts, err = login.NewAccounts(login.AccountOptions{Users: s, Sessions: s, Devices: s, Setup: s, Grants: s,
		Consents: s, Audit: s, Tx: s, Passwords: c.Passwords, Now: o.Now})
	if err != nil {
		return err
	}
	c.Setup = &login.SetupLinks{Store: s, Issuer: cfg.Issuer, Now: o.Now}
	c.Registry = &resource.Registry{Store: s, Issuer: cfg.Issuer, Dev: cfg.Dev(), OriginMatch: cfg.ResourceOriginMatch}
	c.Resources = &resource.Admin{Store: s, Issuer: cfg.Issuer, IsClientID: c.isClientID, AllowHTTP: cfg.Dev(), Now: o.Now}
	c.Idle = &registration.Idle{Clients: s, Consents: s, Audit: s, Tx: s, Life: cfg.ClientIdleExpiry, Now: o.Now}
	c.Clients = &registration.Admin{Clients: s, Documents: s, Grants: s, Consents: s, Audit: s, Tx: s,
		CheckURL: c.Outbound.Check, Now: o.Now}
	return nil
}

// isClientID reports whether a client has the canonical form of a resource, or
// what differs from it by a final slash alone (D7).
func (c *Core) isClientID(ctx context.Context, canonical string) (bool, error) {
	for _, id := range []string{canonical, canonical + "/"} {
		_, err := c.Store.GetClient(ctx, id)
		if !errors.Is(err, store.ErrNotFound) {
			return err == nil, err
		}
	}
	return false, nil
}

// loadSecrets reads the state secret: given with the configuration, or the file
// beside the SQLite database, made at the first start (D2).
func loadSecrets(ctx context.Context, cfg *config.Config, s *sqlstore.Store) (*keys.Secrets, error) {
	if cfg.Secret != oauth.Secret("") {
		secrets, err := keys.ParseSecrets([]byte(cfg.Secret.Reveal()))
		if err != nil {
			return nil, fmt.Errorf("OSTIARY_SECRET: %w", err)
		}
		return secrets, nil
	}
	if cfg.SecretFile != "" || cfg.Postgres() {
		return keys.Load(cfg.SecretPath())
	}
	return keys.LoadForStore(ctx, cfg.SecretPath(), s)
}
