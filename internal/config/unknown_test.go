package config_test

import (
	"errors"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/config"
)

func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, variable, want string }{
		{"a misspelt issuer", "OSTIARY_ISUER=https://as.example",
			"environment (OSTIARY_ISUER): there is no such setting; did you mean OSTIARY_ISSUER?"},
		{"singular", "OSTIARY_TRUSTED_PROXY=10.0.0.1",
			"environment (OSTIARY_TRUSTED_PROXY): there is no such setting; did you mean OSTIARY_TRUSTED_PROXIES?"},
		{"lower case", "OSTIARY_issuer=https://as.example",
			"environment (OSTIARY_issuer): there is no such setting; did you mean OSTIARY_ISSUER?"},
		{"the file's own", "OSTIARY_CONFIGS=x",
			"environment (OSTIARY_CONFIGS): there is no such setting; did you mean OSTIARY_CONFIG?"},
		{"like nothing", "OSTIARY_BOGUS=1", "environment (OSTIARY_BOGUS): there is no such setting"},
		{"a port that no service has", "OSTIARY_PORT=8080", "environment (OSTIARY_PORT): there is no such setting"},
		{"empty is not set", "OSTIARY_BOGUS=", ""},
		{"an empty issuer is not set", "OSTIARY_ISSUER=", ""},
		{"another program's", "OSTIARYX=1", ""},
		{"tests", "OSTIARY_TEST_POSTGRES=off", ""},
		{"long tests", "OSTIARY_SOAK=1", ""},
		{"artefacts of tests", "OSTIARY_ARTEFACTS=/tmp/a", ""},
		{"Kubernetes service", "OSTIARY_SERVICE_HOST=10.0.0.11", ""},
		{"Kubernetes service's named port", "OSTIARY_DB_SERVICE_PORT_HTTP=80", ""},
		{"Kubernetes port", "OSTIARY_PORT=tcp://10.0.0.11:8414", ""},
		{"Kubernetes port in parts", "OSTIARY_PORT_8414_TCP_ADDR=10.0.0.11", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Load(config.Source{Environ: []string{"HOME=/h", tt.variable}})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Load with %s = %q, want %q", tt.variable, got, tt.want)
			}
			if m := (config.Mistakes{}); tt.want != "" && !errors.As(err, &m) {
				t.Errorf("%T is no config.Mistakes", err)
			}
		})
	}
}
