package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ostiary-auth/ostiary/internal/netguard"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// Validate checks the whole configuration and returns all its Mistakes at once,
// or nil.
func (c *Config) Validate() error { return c.mistakes(nil).orNil() }

// checker collects mistakes.
type checker struct {
	*Config
	known map[string]bool // keys already reported: one mistake a key is enough
	list  Mistakes
}

// mistakes checks everything that is not in known already.
func (c *Config) mistakes(known Mistakes) Mistakes {
	k := &checker{Config: c, known: map[string]bool{}}
	for _, m := range known {
		k.known[m.Key] = true
	}
	k.identity()
	k.listeners()
	k.storage()
	k.pages()
	k.choices()
	k.lifetimes()
	k.limits()
	k.outbound()
	k.cimd()
	return k.list
}

func (k *checker) report(m Mistake) {
	if k.known[m.Key] {
		return
	}
	k.known[m.Key] = true
	m.Origin = k.origins[m.Key]
	k.list = append(k.list, m)
}

// say reports a mistake whose fix is words.
func (k *checker) say(key, problem, fix string) {
	k.report(Mistake{Key: key, Problem: problem, Fix: fix})
}

// write reports a mistake whose fix is the value to write.
func (k *checker) write(key, problem, value string) {
	k.report(Mistake{Key: key, Problem: problem, Fix: value, Value: value != ""})
}

func (k *checker) identity() {
	if problem, fix := checkIssuer(k.Issuer); problem != "" {
		k.write("issuer", problem, fix)
	}
	for _, h := range k.AllowedHosts {
		host, _, err := net.SplitHostPort(h)
		if err != nil {
			host = strings.Trim(h, "[]")
		}
		if !isHostname(host) {
			k.say("allowed_hosts", fmt.Sprintf("has %q, which is not a host", h), "write names like auth.internal or auth.internal:8443")
		}
	}
	for _, p := range k.TrustedProxies {
		if _, err := parsePrefix(p); err != nil {
			k.say("trusted_proxies", fmt.Sprintf("has %q, which is neither a CIDR nor an IP address", p), "write e.g. 10.0.0.0/8")
		}
	}
	if k.Dev() && len(k.TrustedProxies) > 0 {
		k.say("trusted_proxies", "cannot be used in development mode, which refuses proxies",
			"set issuer to the public https URL, or remove trusted_proxies")
	}
}

func (k *checker) listeners() {
	host, port := k.listener("listen", k.Listen)
	if !strings.HasPrefix(k.AdminListen, "unix:/") {
		k.listener("admin_listen", k.AdminListen)
	}
	if (k.TLSCert == "") != (k.TLSKey == "") {
		k.say("tls_cert", "and tls_key belong together", "set both, or neither behind a proxy")
	}
	k.readable("tls_cert", k.TLSCert)
	k.readable("tls_key", k.TLSKey)
	if host == "" || !k.Dev() {
		return
	}
	u := k.IssuerURL()
	// an issuer that was given may be reached through a tunnel or a test's proxy;
	// the default one with another port is a port that was forgotten
	if port != "0" && portOf(u) != port && k.Origin("issuer").Kind == "" {
		fixed := *u
		fixed.Host = net.JoinHostPort(u.Hostname(), port)
		k.write("issuer", fmt.Sprintf("names port %s but listen is %s, so no client would find the server", portOf(u), k.Listen),
			cleanIssuer(&fixed))
	}
	switch tls := k.TLSCert != ""; {
	case u.Scheme == "https" && !tls:
		k.say("tls_cert", "is needed for an https issuer on loopback", "set tls_cert and tls_key, or write the issuer with http")
	case u.Scheme == "http" && tls:
		k.write("issuer", "is http although tls_cert is set", "https"+strings.TrimPrefix(k.Issuer, "http"))
	}
}

// listener checks host:port and returns its parts; in development mode only
// loopback may hear us (D4).
func (k *checker) listener(key, addr string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	if n, convErr := strconv.Atoi(port); err != nil || convErr != nil || n < 0 || n > 65535 {
		k.say(key, fmt.Sprintf("is %q, which is not host:port", addr), "write e.g. 127.0.0.1:8414")
		return "", ""
	}
	if k.Dev() && !isLoopbackHost(host) {
		k.write(key, fmt.Sprintf("is %s, but the issuer %s is on loopback: development mode must not be reachable from elsewhere",
			addr, k.Issuer), net.JoinHostPort("127.0.0.1", port))
	}
	return host, port
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func (k *checker) storage() {
	if k.StateDir == "" {
		k.say("state_dir", "is not set and HOME is not either", "set OSTIARY_STATE_DIR to a directory of this user")
	}
	if scheme, _, ok := strings.Cut(k.Database, "://"); ok && !store.IsPostgresURL(k.Database) && scheme != "sqlite" {
		k.say("database", "is neither PostgreSQL nor SQLite", "write postgres://user@host/name, or the path of a file")
	}
	if k.Postgres() {
		// the error of url.Parse repeats the URL, which may hold a password
		if u, err := url.Parse(k.Database); err != nil || u.Path == "" || u.Path == "/" {
			k.say("database", "is not a PostgreSQL URL with a database name", "write postgres://user@host/name")
		}
		if k.Secret == "" && k.SecretFile == "" {
			k.say("secret", "is required with PostgreSQL, since several processes share it",
				"make one with: openssl rand -base64 32 > secret.key && chmod 600 secret.key; then set OSTIARY_SECRET_FILE to its path")
		}
	}
	if k.Secret != "" && k.SecretFile != "" {
		k.say("secret", "is set beside secret_file", "keep one of them")
	}
	if k.SecretFile != "" {
		k.readable("secret_file", k.SecretFile)
	}
	k.between("database_max_conns", k.DatabaseMaxConns, 2, 1000)
	k.oneOf("sqlite_synchronous", k.SQLiteSynchronous, "FULL", "NORMAL")
}

func (k *checker) pages() {
	k.link("help_url", k.HelpURL)
	k.link("privacy_url", k.PrivacyURL)
	k.label("operator_name", k.OperatorName)
	k.label("help_contact", k.HelpContact)
}

// link checks the URL of one of the operator's own pages.
func (k *checker) link(key, raw string) {
	u, err := url.Parse(raw)
	ok := err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && k.Dev())
	if raw != "" && !ok {
		k.say(key, "is not an https URL", "write e.g. https://example.com/help")
	}
}

// label checks words that stand on pages.
func (k *checker) label(key, text string) {
	if len(text) > 200 || strings.ContainsFunc(text, unicode.IsControl) {
		k.say(key, "is longer than 200 bytes or has a line break", "write a short name")
	}
}

func (k *checker) choices() {
	k.oneOf("log_format", k.LogFormat, "json", "text")
	k.oneOf("log_level", k.LogLevel, "debug", "info", "warn", "error")
	k.registration()
}

func (k *checker) registration() {
	k.oneOf("signing_algorithm", k.SigningAlgorithm, "ES256", "EdDSA", "RS256")
	k.oneOf("registration", k.Registration, "open", "token", "statement", "closed")
	k.oneOf("registration_management", k.RegistrationManagement, "off", "confidential", "all")
	for _, h := range k.RegistrationRedirectHosts {
		if name := strings.TrimPrefix(h, "*."); !isHostname(name) || name != strings.ToLower(name) {
			k.say("registration_redirect_hosts", fmt.Sprintf("has %q, which is not a host", h), "write names like app.example.com or *.example.com")
		}
	}
	for _, s := range k.RegistrationRedirectSchemes {
		const fix = "write names like https, http or com.example.app"
		if u, err := url.Parse(s + ":/"); err != nil || u.Scheme != s {
			k.say("registration_redirect_schemes", fmt.Sprintf("has %q, which is not a scheme", s), fix)
		}
		if oauth.IsDangerousScheme(s) {
			k.say("registration_redirect_schemes", fmt.Sprintf("has %q, which no client may register", s), fix)
		}
	}
	if k.Registration == "statement" && len(k.SoftwareStatementIssuers) == 0 {
		k.say("software_statement_issuers", "is empty, but registration is statement", "name an issuer, or choose another registration")
	}
	k.statementIssuers()
}

// statementIssuers checks each "ISSUER KEYS".
func (k *checker) statementIssuers() {
	const fix = "write e.g. https://issuer.example https://issuer.example/jwks.json, or a file in place of the URL"
	parsed := k.StatementIssuers()
	if len(parsed) != len(k.SoftwareStatementIssuers) {
		k.say("software_statement_issuers", "has an entry that is not an issuer, a space and its keys", fix)
		return
	}
	for _, i := range parsed {
		switch u, err := url.Parse(i.JWKS); {
		case strings.Contains(i.JWKS, "://"):
			if err != nil || u.Scheme != "https" || u.Host == "" {
				k.say("software_statement_issuers", fmt.Sprintf("has keys of %s that are not at an https URL", i.Issuer), fix)
			}
		default:
			k.readable("software_statement_issuers", i.JWKS)
		}
	}
}

func (k *checker) lifetimes() {
	const century = 100 * 365 * 24 * time.Hour
	k.lasting("access_token_lifetime", k.AccessTokenLifetime, time.Minute, MaxAccessTokenLifetime)
	k.lasting("code_lifetime", k.CodeLifetime, time.Second, time.Minute)
	k.lasting("refresh_idle", k.RefreshIdle, time.Hour, century)
	k.lasting("refresh_absolute", k.RefreshAbsolute, time.Hour, century)
	k.lasting("loopback_refresh_absolute", k.LoopbackRefreshAbsolute, time.Hour, century)
	if k.ClientIdleExpiry != 0 {
		k.lasting("client_idle_expiry", k.ClientIdleExpiry, time.Hour, century)
	}
	k.lasting("refresh_retry_window", k.RefreshRetryWindow, 0, 2*time.Minute)
}

func (k *checker) limits() {
	k.between("registration_per_hour", k.RegistrationPerHour, 1, 1_000_000)
	k.between("registration_per_hour_total", k.RegistrationPerHourTotal, 1, 1_000_000)
	k.between("introspections_per_second", k.IntrospectionsPerSecond, 1, 100_000)
	k.between("password_hashing_at_once", k.PasswordHashingAtOnce, 0, 1024)
}

// outbound checks the hosts that netguard may ask.
func (k *checker) outbound() {
	var unknown, never []string
	for _, raw := range k.OutboundAllowHosts {
		host, err := netguard.ParseHost(raw)
		switch {
		case err != nil:
			unknown = append(unknown, strconv.Quote(raw))
		case netguard.NeverOpened(host):
			never = append(never, strconv.Quote(raw))
		}
	}
	if len(never) > 0 {
		k.say("outbound_allow_hosts", "has "+strings.Join(never, ", ")+", which is never opened: link-local, a metadata service or no address of one machine",
			"take it out; loopback and private addresses can be allowed")
	}
	if len(unknown) > 0 {
		k.say("outbound_allow_hosts", "has "+strings.Join(unknown, ", ")+", which is not a host or host:port",
			"write each as one exact name, e.g. app.corp.example or 10.1.2.3:8443, without https:// and without *")
	}
	if _, err := netguard.ParseProxy(k.OutboundProxy); err != nil {
		k.say("outbound_proxy", "is not the URL of a proxy", "write e.g. http://proxy.corp.example:3128")
	}
}

func (k *checker) between(key string, n, low, high int) {
	if n < low || n > high {
		k.say(key, fmt.Sprintf("is %d", n), fmt.Sprintf("write a number from %d to %d", low, high))
	}
}

func (k *checker) lasting(key string, d, low, high time.Duration) {
	switch {
	case d < low:
		k.write(key, fmt.Sprintf("is %s; the least is %s", short(d), short(low)), short(low))
	case d > high:
		k.write(key, fmt.Sprintf("is %s; the most is %s", short(d), short(high)), short(high))
	}
}

// short writes 1h instead of 1h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (k *checker) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		k.say(key, fmt.Sprintf("is %q", value), "write "+strings.Join(allowed, " or "))
	}
}

// readable reports a file that cannot be opened; "" is no file.
func (k *checker) readable(key, path string) {
	if path == "" {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		k.say(key, err.Error(), "name a file that this user can read")
		return
	}
	_ = f.Close()
}

func parsePrefix(raw string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(raw); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	return netip.ParsePrefix(raw)
}

// Warnings returns what is allowed and rarely meant, one sentence each.
func (c *Config) Warnings() []string {
	var list []string
	host, _, _ := net.SplitHostPort(c.Listen)
	if !c.Dev() && c.TLSCert == "" && len(c.TrustedProxies) == 0 {
		list = append(list, "neither tls_cert nor trusted_proxies is set: behind a proxy every client counts as one address")
	}
	if !c.Dev() && c.TLSCert == "" && !isLoopbackHost(host) {
		list = append(list, "listen is plain HTTP on "+c.Listen+": only a TLS proxy may reach it")
	}
	if adminHost, _, err := net.SplitHostPort(c.AdminListen); err == nil && !isLoopbackHost(adminHost) {
		list = append(list, "admin_listen is reachable from other machines: keep "+c.AdminListen+" behind a firewall")
	}
	if c.ClientIdleExpiry > 0 && c.ClientIdleExpiry < Default().ClientIdleExpiry { // A20
		list = append(list, "client_idle_expiry is below 90 days: many apps keep a registration that is gone, and their people must delete it there")
	}
	if c.OutboundProxy != "" {
		list = append(list, "outbound_proxy is set: make sure that it refuses private addresses, since ostiary cannot see where it connects")
	}
	return list
}
