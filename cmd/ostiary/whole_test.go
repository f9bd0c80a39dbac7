package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ostiary-auth/ostiary/authclient"
)

// What is copied or opened is printed to its end, and still escaped: half a token
// opens nothing, and an authorization URL without its state begins no login.
func TestPrintedWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1500) + ".end"
	address := "https://as.example/authorize?scope=" + strings.Repeat("read:thing+", 120) + "&state=end"
	for _, tt := range []struct {
		name, want string
		print      func(t *testing.T, c *cli, out *bytes.Buffer)
	}{
		{name: "access token", want: long, print: func(_ *testing.T, _ *cli, out *bytes.Buffer) {
			printLogin(out, loginView{AccessToken: long}, time.Time{})
		}},
		{name: "access token that a terminal would obey", want: long + `\u{1b}[2J`, print: func(_ *testing.T, _ *cli, out *bytes.Buffer) {
			printLogin(out, loginView{AccessToken: long + "\x1b[2J"}, time.Time{})
		}},
		{name: "command to copy", want: "ostiary call " + address, print: func(_ *testing.T, _ *cli, out *bytes.Buffer) {
			printLogin(out, loginView{Server: address}, time.Time{})
		}},
		{name: "authorization URL", want: address, print: func(_ *testing.T, c *cli, _ *bytes.Buffer) {
			c.authorizer(&callerFlags{}).(*authclient.Loopback).Notify(address)
		}},
		{name: "verification_uri", want: address, print: func(t *testing.T, c *cli, _ *bytes.Buffer) {
			if err := c.showDeviceCode(t.Context(), authclient.DeviceCode{VerificationURI: address, UserCode: "ABCD"}); err != nil {
				t.Error(err)
			}
		}},
		{name: "verification_uri_complete", want: address, print: func(t *testing.T, c *cli, _ *bytes.Buffer) {
			if err := c.showDeviceCode(t.Context(), authclient.DeviceCode{UserCode: "ABCD", VerificationURIComplete: address}); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			tt.print(t, newCLI(nil, nil, &out, &out), &out)
			if !strings.Contains(out.String(), tt.want+"\n") {
				t.Errorf("printed %q, want %q whole", out.String(), tt.want)
			}
		})
	}
}

// TestDeviceCodeSaysWhose: the person reads which server asks, and is warned of another
// host.
func TestDeviceCodeSaysWhose(t *testing.T) {
	t.Parallel()
	for _, other := range []bool{false, true} {
		var out bytes.Buffer
		c := newCLI(nil, nil, &out, &out)
		code := authclient.DeviceCode{Issuer: "https://as.example", OtherHost: other, VerificationURI: "https://honest.example/device", UserCode: "ABCD"}
		if err := c.showDeviceCode(t.Context(), code); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, "log in at https://as.example,") || strings.Contains(got, "another host") != other {
			t.Errorf("OtherHost %t: printed %q", other, got)
		}
	}
}
