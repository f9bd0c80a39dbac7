package config

import (
	"strings"
)

// HostRule is one of CIMDPolicy, parsed.
type HostRule struct {
	// Host is a name, "*.example.com" or "*".
	Host string
	// Trust is allow, ask or deny.
	Trust string
}

// HostRules returns CIMDPolicy parsed. It is called after Validate.
func (c *Config) HostRules() []HostRule {
	var list []HostRule
	for _, raw := range c.CIMDPolicy {
		if r, ok := parseHostRule(raw); ok {
			list = append(list, r)
		}
	}
	return list
}

func parseHostRule(raw string) (HostRule, bool) {
	host, trust, _ := strings.Cut(strings.TrimSpace(raw), "=")
	name := strings.TrimPrefix(host, "*.")
	isHost := host == "*" || isHostname(name) && name == strings.ToLower(name)
	return HostRule{Host: host, Trust: trust}, isHost && (trust == "allow" || trust == "ask" || trust == "deny")
}

// cimd checks what is said of Client ID Metadata Documents.
func (k *checker) cimd() {
	k.oneOf("cimd", k.CIMD, "on", "off")
	k.between("cimd_per_hour", k.CIMDPerHour, 1, 1_000_000)
	seen := map[string]bool{}
	for _, raw := range k.CIMDPolicy {
		r, ok := parseHostRule(raw)
		switch {
		case !ok:
			k.say("cimd_policy", "has \""+raw+"\"", "write entries like app.example.com=allow, *.example.com=ask or *=deny")
		case seen[r.Host]:
			k.say("cimd_policy", "names "+r.Host+" twice", "keep one of them")
		}
		seen[r.Host] = true
	}
}
