package authclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/metadata"
)

func TestC3_Callback(t *testing.T) {
	t.Parallel()
	const issuer = "https://as.example"
	c, err := New(Options{Server: "https://mcp.example/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		query   string
		silent  bool // the server does not advertise iss
		want    string
		wantErr error
		says    string
	}{
		{name: "iss is right", query: "code=x&state=s&iss=" + issuer, want: "x"},
		{name: "iss present and not advertised", query: "code=x&state=s&iss=" + issuer, silent: true, want: "x"},
		{name: "iss absent and not advertised", query: "code=x&state=s", silent: true, want: "x"},
		{name: "iss absent and advertised", query: "code=x&state=s", wantErr: ErrRefused},
		{name: "MM-09 iss of another", query: "code=x&state=s&iss=https://honest.example", wantErr: ErrRefused},
		{name: "MM-09 iss of another, not advertised", query: "code=x&state=s&iss=https://honest.example", silent: true, wantErr: ErrRefused},
		{name: "iss with a slash", query: "code=x&state=s&iss=" + issuer + "/", wantErr: ErrRefused},
		{name: "two iss", query: "code=x&state=s&iss=" + issuer + "&iss=" + issuer, wantErr: ErrRefused},
		{name: "two codes", query: "code=x&code=y&state=s&iss=" + issuer, wantErr: ErrRefused},
		{name: "wrong state", query: "code=x&state=t&iss=" + issuer, wantErr: ErrRefused},
		{name: "no state", query: "code=x&iss=" + issuer, wantErr: ErrRefused},
		{name: "denied", query: "error=access_denied&error_description=no&state=s&iss=" + issuer, wantErr: ErrDenied},
		{name: "an error's words are shown after iss is right", query: "error=invalid_scope&error_description=words&state=s&iss=" + issuer, says: "words"},
		{name: "and not before", query: "error=invalid_scope&error_description=words&state=s&iss=https://evil.example", wantErr: ErrRefused},
		{name: "no code", query: "state=s&iss=" + issuer, says: "no code"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			as := &authorizationServer{AuthorizationServer: metadata.AuthorizationServer{Issuer: issuer, AuthorizationResponseISSParameterSupported: !tt.silent}}
			v, _ := url.ParseQuery(tt.query)
			code, err := c.readCallback(v, "s", as)
			switch {
			case tt.want != "":
				if err != nil || code.Reveal() != tt.want {
					t.Errorf("code %q, %v", code.Reveal(), err)
				}
			case err == nil, tt.wantErr != nil && !errors.Is(err, tt.wantErr), !strings.Contains(err.Error(), tt.says),
				errors.Is(tt.wantErr, ErrRefused) && strings.Contains(err.Error(), "words"):
				t.Errorf("error %v", err)
			}
		})
	}
}

// MM-09: the person is led to an honest server, whose code never reaches the
// attacker's token endpoint.
func TestMM09_MixUp(t *testing.T) {
	t.Parallel()
	attacker, honest := newWorld(t), newWorld(t)
	attacker.server = with(attacker.server, "authorization_endpoint", honest.as.URL+"/authorize")
	for _, advertised := range []bool{true, false} {
		attacker.server = with(attacker.server, "authorization_response_iss_parameter_supported", advertised)
		if _, err := call(t.Context(), attacker.client(), ""); !errors.Is(err, ErrRefused) {
			t.Errorf("advertised %t: %v", advertised, err)
		}
	}
	if len(honest.authorizations) != 2 || attacker.asked("POST /token") != 0 {
		t.Errorf("%d authorizations at the honest server, %d token requests at the attacker's", len(honest.authorizations), attacker.asked("POST /token"))
	}
}

func FuzzCallback(f *testing.F) {
	for _, s := range []string{"code=x&state=s&iss=https://as.example", "error=a%0ab&state=s", "state=s&state=s", "code=%00&state=s", "%zz"} {
		f.Add(s)
	}
	c, err := New(Options{Server: "https://mcp.example/mcp"})
	if err != nil {
		f.Fatal(err)
	}
	as := &authorizationServer{AuthorizationServer: metadata.AuthorizationServer{Issuer: "https://as.example"}}
	f.Fuzz(func(t *testing.T, query string) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		code, err := c.readCallback(v, "s", as)
		if err == nil && (code == "" || v.Get("state") != "s" || v.Get("error") != "") {
			t.Errorf("code %q of %q", code.Reveal(), query)
		}
		if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e }) {
			t.Errorf("unprintable: %q", err.Error())
		}
	})
}

// A denial is not asked about again by the next request of the program, and Login
// asks whatever was before.
func TestDeniedIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deny := func(ctx context.Context, raw string) error {
		u, _ := url.Parse(raw)
		w.locked(func() { w.n++ })
		return browse(ctx, u.Query().Get("redirect_uri")+"?"+url.Values{"error": {"access_denied"}, "state": {u.Query().Get("state")}, "iss": {w.as.URL}}.Encode())
	}
	c := w.client(func(o *Options) { o.Authorizer = &Loopback{Open: deny} })
	for range 3 {
		if _, err := call(t.Context(), c, ""); !errors.Is(err, ErrDenied) {
			t.Fatalf("call: %v", err)
		}
	}
	if w.n != 1 {
		t.Errorf("asked %d times", w.n)
	}
	w.advance(askPause)
	if _, err := call(t.Context(), c, ""); !errors.Is(err, ErrDenied) || w.n != 2 {
		t.Errorf("after a while: %v, asked %d times", err, w.n)
	}
	if err := c.Login(t.Context()); !errors.Is(err, ErrDenied) || w.n != 3 {
		t.Errorf("Login: %v, asked %d times", err, w.n)
	}
}

func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := call(t.Context(), w.client(func(o *Options) { o.Authorizer = nil }), ""); !errors.Is(err, ErrLoginRequired) {
		t.Errorf("call: %v", err)
	}
	if len(w.registrations) > 0 {
		t.Error("a client was registered for nobody")
	}
}

// deaf is a transport that notes whether it was used.
type deaf struct{ used bool }

func (d *deaf) RoundTrip(*http.Request) (*http.Response, error) {
	d.used = true
	return nil, errors.New("deaf")
}

func TestNewAsksNobodyAndSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	d := &deaf{}
	_, err := New(Options{Server: "http://mcp.example/mcp", ClientMetadataURL: "https://app.example/", Transport: d, Scopes: []string{"a b"},
		Registered: []RegisteredClient{{Issuer: "as", ClientID: "c"}, {Issuer: "https://as.example"}},
		Metadata:   ClientMetadata{InitialAccessToken: "iat-secret"}, Authorizer: &Paste{}, Machine: &ClientCredentials{}})
	if err == nil || d.used {
		t.Fatalf("error %v, used %t", err, d.used)
	}
	for _, want := range []string{"is http, and not on this machine", "ClientMetadataURL", `"a b" is not a scope`, "issuer of a registered client",
		"no ClientID", "InitialAccessTokenIssuer", "both an Authorizer and a Machine"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "iat-secret") {
		t.Errorf("a secret is said: %v", err)
	}
}
