package authclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// Paste lets a person open the URL on any machine and paste back the address at
// which the browser ended, for machines without a browser.
type Paste struct {
	// In is where the pasted address is read from. Required.
	In io.Reader
	// Out is where the instructions are written. Required.
	Out io.Writer
	// Redirect is the redirect URI. Default "http://127.0.0.1/callback", where
	// nobody listens: the browser shows an error, and the address to paste.
	Redirect string
}

const (
	pasteRedirect = "http://127.0.0.1" + callbackPath
	maxPaste      = 64 << 10
	maxPastes     = 3
)

// Begin implements Authorizer.
func (p *Paste) Begin(context.Context) (Attempt, error) {
	if p.In == nil || p.Out == nil {
		return nil, errors.New("Paste has no In or no Out")
	}
	redirect := p.Redirect
	if redirect == "" {
		redirect = pasteRedirect
	}
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme == "" || u.Fragment != "" {
		return nil, fmt.Errorf("the Redirect %q of Paste is not a redirect URI", p.Redirect)
	}
	return &pasteAttempt{p, u}, nil
}

type pasteAttempt struct {
	paste    *Paste
	redirect *url.URL
}

// RedirectURI implements Attempt.
func (a *pasteAttempt) RedirectURI() string { return a.redirect.String() }

// Close implements Attempt.
func (a *pasteAttempt) Close() error { return nil }

const pasteInstructions = `Open this address in a browser, on any machine:

  %s

Log in there. The browser then shows an error or a blank page, whose address begins
with %s
Copy that whole address and paste it here: `

// Authorize implements Attempt. What is pasted has to be an answer to this request; a
// wrong line can be corrected.
func (a *pasteAttempt) Authorize(ctx context.Context, authorizationURL string) (url.Values, error) {
	u, err := parseURL("authorization URL", authorizationURL)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(a.paste.Out, pasteInstructions, u, a.redirect); err != nil {
		return nil, err
	}
	for range maxPastes {
		line, err := readLine(ctx, a.paste.In)
		if err != nil {
			return nil, fmt.Errorf("read the pasted address: %w", err)
		}
		v, wrong := a.read(line, Secret(u.Query().Get("state")))
		if wrong == "" {
			return v, nil
		}
		if _, err := fmt.Fprintf(a.paste.Out, "\n%s\nPaste the whole address: ", wrong); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: no address was pasted that answers this login", ErrNoAnswer)
}

// read takes the address apart. It must be the redirect URI with an answer; if it is
// not, wrong says why to the person.
func (a *pasteAttempt) read(line string, state Secret) (v url.Values, wrong string) {
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil || u.Scheme != a.redirect.Scheme || u.Host != a.redirect.Host || u.Path != a.redirect.Path {
		return nil, fmt.Sprintf("This is not an address that begins with %s.", a.redirect)
	}
	v, err = url.ParseQuery(u.RawQuery)
	if err != nil || len(v["state"]) != 1 {
		return nil, "This address is not complete."
	}
	if !state.Equal(Secret(v.Get("state"))) {
		return nil, "This address answers another login."
	}
	return v, ""
}

// readLine reads up to a line's end and no further, so that a later attempt finds what
// follows. A reader cannot be interrupted: when ctx ends first, the line is lost.
func readLine(ctx context.Context, r io.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := scanLine(r)
		done <- result{line, err}
	}()
	select {
	case got := <-done:
		return got.line, got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func scanLine(r io.Reader) (string, error) {
	var line bytes.Buffer
	var b [1]byte
	for line.Len() < maxPaste {
		n, err := r.Read(b[:])
		if n == 1 && b[0] != '\n' {
			line.WriteByte(b[0])
		}
		switch {
		case n == 1 && b[0] == '\n', errors.Is(err, io.EOF) && line.Len() > 0:
			return line.String(), nil
		case err != nil:
			return "", err
		}
	}
	return "", errors.New("the line is too long")
}
