package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"
)

const (
	issuer   = "https://login.example.com"
	resource = "http://127.0.0.1/mcp"
)

// world is the processes, and a token that the gateway lets in.
type world struct {
	plain, gateway string // URLs
	token          string
	inputs         []io.Closer
	commands       []*exec.Cmd
}

func start() (*world, error) {
	w := &world{}
	jwks, err := w.issue()
	if err != nil {
		return nil, err
	}
	upstream, err := w.run("upstream", "", "")
	if err == nil {
		w.plain, err = w.run("plain", upstream, "")
	}
	if err == nil {
		w.gateway, err = w.run("gateway", upstream, jwks)
	}
	if err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// run starts this program in a role and returns its URL.
func (w *world) run(role, upstream, jwks string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), "BENCH_ROLE="+role, "BENCH_UPSTREAM="+upstream, "BENCH_JWKS="+jwks)
	c.Stderr = os.Stderr
	in, inErr := c.StdinPipe()
	out, outErr := c.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	w.inputs, w.commands = append(w.inputs, in), append(w.commands, c)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s did not start: %w", role, err)
	}
	return strings.TrimSpace(line), nil
}

// stop ends the processes by closing what they read.
func (w *world) stop() {
	for _, in := range w.inputs {
		_ = in.Close()
	}
	for _, c := range w.commands {
		_ = c.Wait()
	}
}

// issue makes a key and a token of it, and returns the JWK set.
func (w *world) issue() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	public, err := jwk.FromRaw(key.Public())
	if err != nil {
		return "", err
	}
	if err := errors.Join(public.Set(jwk.KeyIDKey, "k"), public.Set(jwk.AlgorithmKey, "ES256")); err != nil {
		return "", err
	}
	jwks, err := json.Marshal(map[string]any{"keys": []any{public}})
	if err != nil {
		return "", err
	}
	now := time.Now()
	claims, err := json.Marshal(map[string]any{"iss": issuer, "sub": "u_01JD8Z3V5E7R9T1Y3K5M7P9Q1S", "aud": resource,
		"exp": now.Add(24 * time.Hour).Unix(), "iat": now.Unix(), "jti": "0f8fad5bd9cb469fa16570867728950e",
		"client_id": "https://client.example.com/metadata.json", "scope": "notes:read notes:write"})
	if err != nil {
		return "", err
	}
	b64 := base64.RawURLEncoding
	signed := b64.EncodeToString([]byte(`{"typ":"at+jwt","alg":"ES256","kid":"k"}`)) + "." + b64.EncodeToString(claims)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return "", err
	}
	w.token = signed + "." + b64.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
	return string(jwks), nil
}
