package oauth_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

func TestSecretNeverPrints(t *testing.T) {
	const value = "s3cr3t-value"
	s := oauth.Secret(value)
	type holder struct {
		S oauth.Secret
		P *oauth.Secret
	}
	h := holder{S: s, P: &s}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "holder", h)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "holder", h)
	encoded, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	printed := []string{log.String(), string(encoded), fmt.Sprint(s), fmt.Sprint(h), fmt.Sprintf("%s %v %+v %#v %q %x %d", s, s, h, h, s, s, s),
		fmt.Errorf("failed: %v", s).Error()}
	for _, p := range printed {
		if strings.Contains(p, value) || strings.Contains(p, fmt.Sprintf("%x", value)) {
			t.Errorf("the secret was printed: %s", p)
		}
	}
	if s.Reveal() != value || !s.Equal(value) || s.Equal("other") {
		t.Error("Reveal and Equal do not work")
	}
}
