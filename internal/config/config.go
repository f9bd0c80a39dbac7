// Package config is what an operator may say: one struct, whose comments are the
// reference (docs/configuration.md is made from them), read from a file, the
// environment and the command line, and checked as a whole. It decides nothing
// else: internal/app turns it into each package's own options.
package config

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// Config is the configuration of one ostiary process. A later source wins: the
// default, the file, OSTIARY_* variables, flags.
type Config struct {
	// Issuer is the issuer identifier (RFC 8414 §2), the public URL of this
	// server: https, or http on loopback, which is development mode; a path is
	// allowed; no trailing slash. Clients compare it byte by byte: changing it
	// later breaks every connection.
	Issuer string `yaml:"issuer" env:"ISSUER"`
	// Listen is the address of the public listener. In development mode
	// 127.0.0.1:PORT also binds [::1]:PORT where the machine has it.
	Listen string `yaml:"listen" env:"LISTEN"`
	// AdminListen is the address of /healthz, /readyz and /metrics:
	// host:port, or unix:/path of a socket.
	AdminListen string `yaml:"admin_listen" env:"ADMIN_LISTEN"`
	// StateDir is the directory of the SQLite database and the secret; only its
	// owner may read it. Default $STATE_DIRECTORY, else $XDG_STATE_HOME/ostiary,
	// else ~/.local/state/ostiary.
	StateDir string `yaml:"state_dir" env:"STATE_DIR"`
	// Database is postgres://user:password@host/name, or the path of a SQLite
	// file. Default ostiary.db in state_dir.
	Database string `yaml:"database" env:"DATABASE"`
	// DatabaseFile is the path of a file that holds database.
	DatabaseFile string `yaml:"database_file" env:"DATABASE_FILE"`
	// DatabaseMaxConns bounds the PostgreSQL connections of one process.
	DatabaseMaxConns int `yaml:"database_max_conns" env:"DATABASE_MAX_CONNS"`
	// SQLiteSynchronous is FULL, or NORMAL: faster, but a power cut may undo the
	// last moments, so a refresh token already used could work again.
	SQLiteSynchronous string `yaml:"sqlite_synchronous" env:"SQLITE_SYNCHRONOUS"`
	// Secret is the state secret: 32 random bytes in base64, or lines of
	// "kid base64". Required with PostgreSQL, where processes share it; with
	// SQLite the first start writes secret.key into state_dir.
	Secret oauth.Secret `yaml:"secret" env:"SECRET"`
	// SecretFile is the path of a file, mode 0600, that holds secret.
	SecretFile string `yaml:"secret_file" env:"SECRET_FILE"`
	// TrustedProxies are the addresses (CIDR or IP) of reverse proxies whose
	// X-Forwarded-For is believed. None by default; not in development mode.
	TrustedProxies []string `yaml:"trusted_proxies" env:"TRUSTED_PROXIES"`
	// TLSCert is the path of the certificate chain (PEM), when ostiary itself
	// speaks TLS instead of a proxy in front of it.
	TLSCert string `yaml:"tls_cert" env:"TLS_CERT"`
	// TLSKey is the path of the certificate's private key (PEM).
	TLSKey string `yaml:"tls_key" env:"TLS_KEY"`
	// AllowedHosts are further Host names that are answered; every link still
	// names the issuer.
	AllowedHosts []string `yaml:"allowed_hosts" env:"ALLOWED_HOSTS"`
	// OperatorName is the name people see on every page: your company or team.
	// Default the issuer's host.
	OperatorName string `yaml:"operator_name" env:"OPERATOR_NAME"`
	// HelpURL is your help page, linked from every page. Default no link.
	HelpURL string `yaml:"help_url" env:"HELP_URL"`
	// PrivacyURL is your privacy notice, linked from every page. Default no link.
	PrivacyURL string `yaml:"privacy_url" env:"PRIVACY_URL"`
	// HelpContact is whom people may ask, as words: "it@example.com".
	HelpContact string `yaml:"help_contact" env:"HELP_CONTACT"`
	// LogFormat is json or text.
	LogFormat string `yaml:"log_format" env:"LOG_FORMAT"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `yaml:"log_level" env:"LOG_LEVEL"`
	// AccessTokenLifetime is how long an access token opens its MCP server, 1m
	// to 1h. It is also how long a disconnected app may linger.
	AccessTokenLifetime time.Duration `yaml:"access_token_lifetime" env:"ACCESS_TOKEN_LIFETIME"`
	// SigningAlgorithm is what access tokens are signed with: ES256, EdDSA or
	// RS256. ES256 is for everybody; RS256 is slow, and for MCP servers that verify
	// nothing else. A change takes effect at the next start of serve, by a rotation:
	// the new key signs six minutes later, and old tokens stay good.
	SigningAlgorithm string `yaml:"signing_algorithm" env:"SIGNING_ALGORITHM"`
	// CodeLifetime is how long an authorization code may be redeemed, 1s to 60s.
	CodeLifetime time.Duration `yaml:"code_lifetime" env:"CODE_LIFETIME"`
	// RefreshIdle ends a connection that was not used for so long.
	RefreshIdle time.Duration `yaml:"refresh_idle" env:"REFRESH_IDLE"`
	// RefreshAbsolute ends a connection so long after consent, used or not.
	RefreshAbsolute time.Duration `yaml:"refresh_absolute" env:"REFRESH_ABSOLUTE"`
	// LoopbackRefreshAbsolute is refresh_absolute for unverified apps that
	// return to a program on the person's own machine.
	LoopbackRefreshAbsolute time.Duration `yaml:"loopback_refresh_absolute" env:"LOOPBACK_REFRESH_ABSOLUTE"`
	// RefreshRetryWindow is how long the previous refresh token still gets the
	// same successor, for clients that lost the answer, 0s to 2m.
	RefreshRetryWindow time.Duration `yaml:"refresh_retry_window" env:"REFRESH_RETRY_WINDOW"`
	// Registration says which clients may register themselves (RFC 7591): open is
	// any; token those that have an initial access token, made by "ostiary client
	// token add"; statement those that have a software statement of one of
	// software_statement_issuers; closed none.
	Registration string `yaml:"registration" env:"REGISTRATION"`
	// RegistrationManagement says which clients may read, change and delete their
	// own registration with a token of their own (RFC 7592): confidential are those
	// that keep a credential anyway, all, or off.
	RegistrationManagement string `yaml:"registration_management" env:"REGISTRATION_MANAGEMENT"`
	// RegistrationRedirectHosts are the only hosts to which clients that register
	// themselves may have people sent back by https: "app.example.com", or
	// "*.example.com" for every host below example.com. Default any host.
	RegistrationRedirectHosts []string `yaml:"registration_redirect_hosts" env:"REGISTRATION_REDIRECT_HOSTS"`
	// RegistrationRedirectSchemes are the only schemes of their redirect URIs:
	// https, http (loopback, as desktop and command-line apps use it), or an app's
	// own scheme. Default any that is safe.
	RegistrationRedirectSchemes []string `yaml:"registration_redirect_schemes" env:"REGISTRATION_REDIRECT_SCHEMES"`
	// SoftwareStatementIssuers are trusted to say what client software is (RFC 7591
	// §2.3), each as "ISSUER KEYS": the iss of its statements, a space, and the
	// https URL or the file of its JWK set. What a statement says wins over what
	// the client says. Without any, statements are ignored.
	SoftwareStatementIssuers []string `yaml:"software_statement_issuers" env:"SOFTWARE_STATEMENT_ISSUERS"`
	// ClientIdleExpiry removes a client that registered itself, or that is known by
	// its metadata document, so long after its last use, or after registration, and
	// never while somebody's connection lives. 0s keeps every such client for ever.
	ClientIdleExpiry time.Duration `yaml:"client_idle_expiry" env:"CLIENT_IDLE_EXPIRY"`
	// RegistrationPerHour bounds registrations from one address (IPv6: one /64).
	// A client that somebody has approved does not count any more, so that hosted
	// clients, which share a few addresses, are not stopped by their success.
	RegistrationPerHour int `yaml:"registration_per_hour" env:"REGISTRATION_PER_HOUR"`
	// RegistrationPerHourTotal bounds registrations from everywhere together, in
	// the same way.
	RegistrationPerHourTotal int `yaml:"registration_per_hour_total" env:"REGISTRATION_PER_HOUR_TOTAL"`
	// IntrospectionsPerSecond bounds how often one MCP server, or client, may ask this
	// process about tokens; ten seconds' worth may come at once. Above it the answer
	// is 429.
	IntrospectionsPerSecond int `yaml:"introspections_per_second" env:"INTROSPECTIONS_PER_SECOND"`
	// OutboundAllowHosts are hosts that may be asked for a client's documents and
	// keys although they are private or listen on another port than 443: "host" or
	// "host:port", exact. Without it ostiary asks public https hosts only.
	OutboundAllowHosts []string `yaml:"outbound_allow_hosts" env:"OUTBOUND_ALLOW_HOSTS"`
	// OutboundProxy is the URL of an HTTP proxy for requests to clients' hosts,
	// but not to outbound_allow_hosts. It looks up names itself, so it must be the
	// one to refuse private addresses. HTTPS_PROXY and the like are not read.
	OutboundProxy string `yaml:"outbound_proxy" env:"OUTBOUND_PROXY"`
	// CIMD is on, or off: whether a client may be known by the https URL of its
	// metadata document (Client ID Metadata Documents), which is then its client_id.
	CIMD string `yaml:"cimd" env:"CIMD"`
	// CIMDPolicy says whose documents are accepted, each as "HOST=allow", "HOST=ask"
	// (people may use the app after "ostiary client verify") or "HOST=deny"; HOST is
	// app.example.com, "*.example.com" for every host below example.com, or "*" for
	// all. The most exact one counts. It decides who may ask from now on: what people
	// allowed before goes on until "ostiary client block". Default "*=allow".
	CIMDPolicy []string `yaml:"cimd_policy" env:"CIMD_POLICY"`
	// CIMDPerHour bounds how many documents are read from one site. Documents that
	// are read for the first time have two more budgets, as large as those of
	// registration and apart from them: registration_per_hour for the address that
	// asks, and registration_per_hour_total for all together.
	CIMDPerHour int `yaml:"cimd_per_hour" env:"CIMD_PER_HOUR"`
	// ResourceOriginMatch lets a client name an MCP server by its origin alone
	// when exactly one registered resource is there, as some clients do.
	ResourceOriginMatch bool `yaml:"resource_origin_match" env:"RESOURCE_ORIGIN_MATCH"`
	// PasswordHashingAtOnce is how many passwords are checked at the same time,
	// 19 MiB each; some more wait, and beyond that people are asked to retry. 0 is
	// one less than the processors, at least 1, so that tokens do not wait.
	PasswordHashingAtOnce int `yaml:"password_hashing_at_once" env:"PASSWORD_HASHING_AT_ONCE"`
	// DebugPprof serves /debug/pprof on the admin listener: for a short search,
	// since profiles show memory.
	DebugPprof bool `yaml:"debug_pprof" env:"DEBUG_PPROF"`

	// origins tells for each key where its value came from; a missing key is the default.
	origins map[string]Origin
}

// MaxAccessTokenLifetime is the longest access_token_lifetime. A signing key that
// was replaced stays published for so long, because whoever rotates it does not
// know what each server was told (D28).
const MaxAccessTokenLifetime = time.Hour

// Default returns the configuration of a first start on a developer's machine.
// Its StateDir is empty: Load fills it in from the environment.
func Default() *Config {
	return &Config{
		Issuer:                   "http://localhost:8414",
		Listen:                   "127.0.0.1:8414",
		AdminListen:              "127.0.0.1:8415",
		DatabaseMaxConns:         16,
		SQLiteSynchronous:        "FULL",
		LogFormat:                "json",
		LogLevel:                 "info",
		AccessTokenLifetime:      10 * time.Minute,
		SigningAlgorithm:         "ES256",
		CodeLifetime:             time.Minute,
		RefreshIdle:              30 * 24 * time.Hour,
		RefreshAbsolute:          365 * 24 * time.Hour,
		LoopbackRefreshAbsolute:  90 * 24 * time.Hour,
		RefreshRetryWindow:       time.Minute,
		Registration:             "open",
		RegistrationManagement:   "confidential",
		ClientIdleExpiry:         90 * 24 * time.Hour,
		RegistrationPerHour:      300,
		RegistrationPerHourTotal: 3000,
		IntrospectionsPerSecond:  300,
		CIMD:                     "on",
		CIMDPerHour:              600,
		ResourceOriginMatch:      true,
	}
}

// Dev reports development mode: the issuer is on loopback (D4).
func (c *Config) Dev() bool {
	u, err := url.Parse(c.Issuer)
	return err == nil && isLoopbackHost(u.Hostname())
}

// IssuerURL returns the issuer parsed. It is called after Validate.
func (c *Config) IssuerURL() *url.URL {
	u, err := url.Parse(c.Issuer)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// Base returns the issuer's path, "" or "/path", below which every path lies (D25).
func (c *Config) Base() string { return c.IssuerURL().EscapedPath() }

// Operator returns the name people see: operator_name, else the issuer's host.
func (c *Config) Operator() string {
	if c.OperatorName != "" {
		return c.OperatorName
	}
	return c.IssuerURL().Host
}

// Postgres reports whether the database is PostgreSQL.
func (c *Config) Postgres() bool { return store.IsPostgresURL(c.Database) }

// DatabaseURL returns what sqlstore.Open takes: the PostgreSQL URL or the path
// of the SQLite file.
func (c *Config) DatabaseURL() string {
	if c.Database == "" {
		return filepath.Join(c.StateDir, "ostiary.db")
	}
	return c.Database
}

// SecretPath returns the file of the state secret: secret_file, else secret.key
// in the state directory. It is not asked when Secret is set.
func (c *Config) SecretPath() string {
	if c.SecretFile != "" {
		return c.SecretFile
	}
	return filepath.Join(c.StateDir, "secret.key")
}

// StatementIssuer is one of SoftwareStatementIssuers, parsed.
type StatementIssuer struct{ Issuer, JWKS string }

// StatementIssuers returns SoftwareStatementIssuers parsed. It is called after Validate.
func (c *Config) StatementIssuers() []StatementIssuer {
	var list []StatementIssuer
	for _, raw := range c.SoftwareStatementIssuers {
		if issuer, keys, ok := strings.Cut(strings.TrimSpace(raw), " "); ok {
			list = append(list, StatementIssuer{Issuer: issuer, JWKS: strings.TrimSpace(keys)})
		}
	}
	return list
}

// Proxies returns TrustedProxies parsed. It is called after Validate.
func (c *Config) Proxies() []netip.Prefix {
	var list []netip.Prefix
	for _, raw := range c.TrustedProxies {
		if p, err := parsePrefix(raw); err == nil {
			list = append(list, p)
		}
	}
	return list
}
