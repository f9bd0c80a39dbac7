package authclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// grantDeviceCode is grant_type of RFC 8628 §3.4.
const grantDeviceCode = "urn:ietf:params:oauth:grant-type:device_code"

// Device uses the device authorization grant (RFC 8628) with servers that have it:
// the person types a short code on any machine.
type Device struct {
	// Show tells the person where to go and what to type. Required. What it is given
	// has been checked and holds no control character.
	Show func(ctx context.Context, code DeviceCode) error
}

// DeviceCode is what a person needs to allow a device (RFC 8628 §3.2).
type DeviceCode struct {
	// Issuer is the authorization server that the code is for.
	Issuer string
	// OtherHost says that an address below is neither on the issuer's host nor on one
	// of its endpoints that was asked. A server may hand on the code of another, where
	// the person would allow somebody else: tell them.
	OtherHost bool
	// UserCode is user_code.
	UserCode string
	// VerificationURI is verification_uri: https, or loopback http.
	VerificationURI string
	// VerificationURIComplete is verification_uri_complete, with the code in it; it
	// may be empty.
	VerificationURIComplete string
	// Expires is when the code dies.
	Expires time.Time
}

// Begin implements Authorizer.
func (d *Device) Begin(context.Context) (Attempt, error) {
	if d.Show == nil {
		return nil, errors.New("Device has no Show")
	}
	return deviceAttempt{d}, nil
}

type deviceAttempt struct{ device *Device }

// RedirectURI implements Attempt: there is none.
func (deviceAttempt) RedirectURI() string { return "" }

// Close implements Attempt.
func (deviceAttempt) Close() error { return nil }

// Authorize implements Attempt. It is never called: Client sees that there is no
// redirect URI.
func (deviceAttempt) Authorize(context.Context, string) (url.Values, error) {
	return nil, errors.New("the device authorization grant has no authorization URL")
}

// deviceAuthorization is the answer of a device authorization endpoint.
type deviceAuthorization struct {
	DeviceCode
	code     Secret // device_code
	interval time.Duration
}

// redeemDevice asks for a code, shows it and waits until the person has typed it.
func (c *Client) redeemDevice(ctx context.Context, a Attempt, w *wanted) (*tokenResponse, time.Time, error) {
	d, ok := a.(deviceAttempt)
	if !ok {
		return nil, time.Time{}, errors.New("the Authorizer gave no redirect URI")
	}
	auth, err := c.askDevice(ctx, w)
	if err != nil {
		return nil, time.Time{}, err
	}
	if err := d.device.Show(ctx, auth.DeviceCode); err != nil {
		return nil, time.Time{}, fmt.Errorf("show the code: %w", err)
	}
	return c.poll(ctx, w, auth)
}

// checkDeviceFlow looks whether the server has the grant, before a client is registered
// for it.
func checkDeviceFlow(as *authorizationServer) error {
	if as.DeviceAuthorizationEndpoint == "" || as.TokenEndpoint == "" {
		return fmt.Errorf("%w: %s", ErrNoDeviceGrant, quoted(as.Issuer))
	}
	return nil
}

func (c *Client) askDevice(ctx context.Context, w *wanted) (*deviceAuthorization, error) {
	form := url.Values{"client_id": {w.client.id}}
	if w.place.resource != "" {
		form.Set("resource", w.place.resource)
	}
	if len(w.scopes) > 0 {
		form.Set("scope", strings.Join(w.scopes, " "))
	}
	const what = "device authorization"
	a, err := c.endpoint.postForm(ctx, w.place.server, what, w.place.server.DeviceAuthorizationEndpoint, tokenRequest{form: form, auth: w.client.auth})
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, readServerError(what, a, c.o.Now())
	}
	d, err := c.readDevice(a.body, w.place.server)
	if err != nil {
		return nil, fmt.Errorf("the device authorization endpoint's answer: %w", err)
	}
	return d, nil
}

const (
	defaultInterval = 5 * time.Second
	maxInterval     = time.Minute
	maxDeviceLife   = time.Hour
)

// readDevice reads RFC 8628 §3.2. What people are shown is checked here.
func (c *Client) readDevice(body []byte, as *authorizationServer) (*deviceAuthorization, error) {
	o, err := readObject(body)
	if err != nil {
		return nil, err
	}
	code, _ := o.Str("device_code")
	user, _ := o.Str("user_code")
	uri, _ := o.Str("verification_uri")
	if code == "" || len(code) > maxToken || user == "" || len(user) > 64 || theirs(user) != user {
		return nil, errors.New("it has no code, or one that cannot be shown")
	}
	if _, err := c.endpoint.checkURL("verification_uri", uri); err != nil {
		return nil, err
	}
	complete, _ := o.Str("verification_uri_complete")
	if complete != "" {
		if _, err := c.endpoint.checkURL("verification_uri_complete", complete); err != nil {
			return nil, err
		}
	}
	expires := readExpiry(o, c.o.Now())
	if last := c.o.Now().Add(maxDeviceLife); expires.IsZero() || expires.After(last) {
		expires = last
	}
	d := &deviceAuthorization{DeviceCode: DeviceCode{Issuer: as.Issuer, OtherHost: !as.hosts(uri) || !as.hosts(complete), UserCode: user, VerificationURI: uri, VerificationURIComplete: complete, Expires: expires},
		code: Secret(code), interval: defaultInterval}
	if s, err := strconv.ParseUint(string(o.Get("interval")), 10, 16); err == nil && s > 0 {
		d.interval = min(time.Duration(s)*time.Second, maxInterval)
	}
	return d, nil
}

// hosts reports whether raw is on the host of the issuer or of an endpoint that the
// device grant asks. "" is nowhere else.
func (as *authorizationServer) hosts(raw string) bool {
	at, err := url.Parse(raw)
	if raw == "" || err != nil {
		return raw == ""
	}
	return slices.ContainsFunc([]string{as.Issuer, as.DeviceAuthorizationEndpoint, as.TokenEndpoint}, func(known string) bool {
		u, err := url.Parse(known)
		return err == nil && strings.EqualFold(u.Hostname(), at.Hostname())
	})
}

// poll asks for the tokens at the pace that the server wants (RFC 8628 §3.5).
func (c *Client) poll(ctx context.Context, w *wanted, d *deviceAuthorization) (*tokenResponse, time.Time, error) {
	form := url.Values{"grant_type": {grantDeviceCode}, "device_code": {d.code.Reveal()}}
	if w.place.resource != "" {
		form.Set("resource", w.place.resource)
	}
	for {
		if err := pauseFor(ctx, d.interval); err != nil {
			return nil, time.Time{}, err
		}
		began := c.o.Now()
		if !began.Before(d.Expires) {
			return nil, began, fmt.Errorf("%w: the code %s has expired", ErrNoAnswer, d.UserCode)
		}
		r, err := c.endpoint.token(ctx, w.place.server, tokenRequest{form: form, auth: w.client.auth, prover: proving(w.key)})
		if err == nil {
			return r, began, nil
		}
		if err = d.afterPoll(err); err != nil {
			return nil, began, err
		}
	}
}

// afterPoll returns nil when the server is to be asked again.
func (d *deviceAuthorization) afterPoll(err error) error {
	var answered *ServerError
	var unanswered *UnansweredError
	switch {
	case errors.As(err, &unanswered): // RFC 8628 §3.5: at longer intervals
		d.interval = min(2*d.interval, maxInterval)
		return nil
	case !errors.As(err, &answered):
		return err
	case answered.Code == "authorization_pending":
		return nil
	case answered.Code == "slow_down", answered.Temporary():
		d.interval = max(min(d.interval+5*time.Second, maxInterval), answered.RetryAfter)
		return nil
	case answered.Code == "access_denied":
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case answered.Code == "expired_token":
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
