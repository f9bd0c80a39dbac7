package authclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostiary-auth/ostiary/metadata"
)

// deviceWorld answers a Client without a network, so that its pauses take no time.
type deviceWorld struct {
	answers []string // of the token endpoint, "status body"
	device  string
	polls   []time.Time
	forms   []string
}

// RoundTrip implements http.RoundTripper.
func (d *deviceWorld) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	const as = "https://as.example"
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		answerJSON(200, `{"resource":"https://mcp.example/mcp","authorization_servers":["`+as+`"],"scopes_supported":["read"]}`)(rec, r)
	case "/.well-known/oauth-authorization-server":
		answerJSON(200, `{"issuer":"`+as+`","token_endpoint":"`+as+`/token","device_authorization_endpoint":"`+as+`/device","registration_endpoint":"`+as+`/register"}`)(rec, r)
	case "/register":
		answerJSON(201, `{"client_id":"c"}`)(rec, r)
	case "/device":
		_ = r.ParseForm()
		d.forms = append(d.forms, r.PostForm.Encode())
		answerJSON(200, d.device)(rec, r)
	case "/token":
		_ = r.ParseForm()
		d.forms = append(d.forms, r.PostForm.Encode())
		d.polls = append(d.polls, time.Now())
		answer := d.answers[min(len(d.polls), len(d.answers))-1]
		status := map[string]int{"2": 200, "4": 400, "5": 503}[answer[:1]]
		answerJSON(status, answer[4:])(rec, r)
	default:
		rec.WriteHeader(http.StatusUnauthorized)
	}
	return rec.Result(), nil
}

const deviceAnswer = `{"device_code":"dc","user_code":"WDJB-MJHT","verification_uri":"https://as.example/device","verification_uri_complete":"https://as.example/device?c=WDJB-MJHT","expires_in":600,"interval":7}`

func TestDeviceLogin(t *testing.T) {
	t.Parallel()
	pending, slower := `400 {"error":"authorization_pending"}`, `400 {"error":"slow_down"}`
	token := `200 {"access_token":"a","token_type":"Bearer","refresh_token":"r"}`
	for _, tt := range []struct {
		name    string
		device  string
		answers []string
		pauses  []time.Duration
		wantErr error
		says    string
	}{
		{name: "allowed after a while", device: deviceAnswer, answers: []string{pending, slower, `503 {}`, token},
			pauses: []time.Duration{7 * time.Second, 7 * time.Second, 12 * time.Second, 17 * time.Second}},
		{name: "denied", device: deviceAnswer, answers: []string{`400 {"error":"access_denied"}`}, wantErr: ErrDenied},
		{name: "expired there", device: deviceAnswer, answers: []string{`400 {"error":"expired_token"}`}, wantErr: ErrNoAnswer},
		{name: "expired here", device: strings.Replace(deviceAnswer, "600", "20", 1), answers: []string{pending}, wantErr: ErrNoAnswer},
		{name: "another error", device: deviceAnswer, answers: []string{`400 {"error":"invalid_client"}`}, says: "invalid_client"},
		{name: "a code that a terminal obeys", device: strings.Replace(deviceAnswer, "WDJB-MJHT", `\u001b[2J`, 1), says: "cannot be shown"},
		{name: "MM-11 an address that is none", device: strings.Replace(deviceAnswer, "https://as.example/device", "javascript:alert(1)", 1), wantErr: ErrRefused},
		{name: "MM-12 an address on this machine", device: strings.Replace(deviceAnswer, "https://as.example/device", "http://127.0.0.1/x", 1), wantErr: ErrRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &deviceWorld{answers: tt.answers, device: tt.device}
				var shown DeviceCode
				c, err := New(Options{Server: "https://mcp.example/mcp", Transport: w,
					Authorizer: &Device{Show: func(_ context.Context, d DeviceCode) error { shown = d; return nil }}})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err = c.Login(t.Context())
				if tt.pauses == nil {
					if err == nil || tt.wantErr != nil && !errors.Is(err, tt.wantErr) || !strings.Contains(err.Error(), tt.says) {
						t.Errorf("Login: %v", err)
					}
					return
				}
				if err != nil || shown.UserCode != "WDJB-MJHT" || shown.VerificationURI != "https://as.example/device" {
					t.Fatalf("Login: %v, shown %v", err, shown)
				}
				for i, at := range w.polls {
					if got := at.Sub(began); got != tt.pauses[i] {
						t.Errorf("pause %d: %v, want %v", i, got, tt.pauses[i])
					}
					began = at
				}
				for i, want := range []string{"client_id=c&resource=https%3A%2F%2Fmcp.example%2Fmcp&scope=read",
					"client_id=c&device_code=dc&grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&resource=https%3A%2F%2Fmcp.example%2Fmcp"} {
					if w.forms[i] != want {
						t.Errorf("form %d: %s", i, w.forms[i])
					}
				}
			})
		})
	}
}

// TestDeviceOfAnotherHost: the person is told when the code may be another server's.
func TestDeviceOfAnotherHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, uri, complete string
		want                bool
	}{
		{name: "the issuer's", uri: "https://as.example/device", complete: "https://AS.example:8443/device?c=1"},
		{name: "the token endpoint's", uri: "https://token.example/device"},
		{name: "the device endpoint's", uri: "https://device.example/device"},
		{name: "another", uri: "https://honest.example/device", want: true},
		{name: "below the issuer's", uri: "https://x.as.example/device", want: true},
		{name: "another with the code", uri: "https://as.example/device", complete: "https://honest.example/device?c=1", want: true},
		{name: "an endpoint that is not asked", uri: "https://authorize.example/device", want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := New(Options{Server: "https://mcp.example/mcp"})
			if err != nil {
				t.Fatal(err)
			}
			as := &authorizationServer{AuthorizationServer: metadata.AuthorizationServer{Issuer: "https://as.example", AuthorizationEndpoint: "https://authorize.example/a",
				TokenEndpoint: "https://token.example/t", DeviceAuthorizationEndpoint: "https://device.example/d"}}
			body, _ := json.Marshal(map[string]any{"device_code": "dc", "user_code": "AB", "verification_uri": tt.uri, "verification_uri_complete": tt.complete})
			d, err := c.readDevice(body, as)
			if err != nil || d.OtherHost != tt.want || d.Issuer != as.Issuer {
				t.Errorf("%+v, %v; want OtherHost %t", d, err, tt.want)
			}
		})
	}
}
