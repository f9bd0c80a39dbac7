package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// notOurs matches variables that begin with our prefix and are set by others: our
// own tests, and Kubernetes and Docker, which describe each service to its
// neighbours (a service "ostiary" makes OSTIARY_SERVICE_HOST).
var notOurs = regexp.MustCompile(`^OSTIARY_(TEST_.*|SOAK|ARTEFACTS` +
	`|([A-Z0-9_]+_)?SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?` +
	`|([A-Z0-9_]+_)?PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// unknownVariables reports each OSTIARY_* variable that is no setting: a misspelt
// OSTIARY_ISSUER must not start a server in development mode.
func unknownVariables(environ map[string]string) Mistakes {
	known := map[string]bool{EnvPrefix + "CONFIG": true}
	for _, f := range Fields() {
		known[f.Env] = true
	}
	var list Mistakes
	for _, name := range slices.Sorted(maps.Keys(environ)) {
		if known[name] || !strings.HasPrefix(name, EnvPrefix) || notOurs.MatchString(name) || isServicePort(name, environ[name]) {
			continue
		}
		m := Mistake{Key: "environment", Origin: Origin{Kind: "environment", Name: name}, Problem: "there is no such setting"}
		if near := nearest(strings.ToLower(strings.TrimPrefix(name, EnvPrefix)), "config"); near != "" {
			m.Fix = "did you mean " + EnvPrefix + strings.ToUpper(near) + "?"
		}
		list = append(list, m)
	}
	return list
}

// isServicePort reports the one variable of Kubernetes and Docker that only its
// value tells from a setting: OSTIARY_PORT=tcp://10.0.0.11:8414.
func isServicePort(name, value string) bool {
	scheme, _, ok := strings.Cut(value, "://")
	return strings.HasSuffix(name, "_PORT") && ok && slices.Contains([]string{"tcp", "udp", "sctp"}, scheme)
}
