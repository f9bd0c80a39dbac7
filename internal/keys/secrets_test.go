package keys

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// counting is 32 bytes whose standard base64 has +, / and padding.
func counting() []byte {
	b := make([]byte, 32)
	for i := range b {
		b[i] = byte(255 - 5*i)
	}
	return b
}

func TestParseSecrets(t *testing.T) {
	std := base64.StdEncoding.EncodeToString(counting())
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("ab"), 16))
	for _, tt := range []struct {
		name, raw string
		want      []byte // kids in order; nil: refused
	}{
		{name: "D2 bare value is kid 1", raw: std, want: []byte{1}},
		{name: "bare value without padding", raw: strings.TrimRight(std, "="), want: []byte{1}},
		{name: "bare URL alphabet", raw: base64.URLEncoding.EncodeToString(counting()), want: []byte{1}},
		{name: "raw URL alphabet with newline", raw: base64.RawURLEncoding.EncodeToString(counting()) + "\n", want: []byte{1}},
		{name: "D2 first line mints", raw: "7 " + std + "\n2 " + other + "\n", want: []byte{7, 2}},
		{name: "comment, blank line, CRLF", raw: "# made by hand\r\n\r\n1 " + std + "\r\n", want: []byte{1}},
		{name: "kid 255", raw: "255 " + std, want: []byte{255}},
		{name: "empty", raw: ""},
		{name: "only a comment", raw: "# nothing\n"},
		{name: "kid 0", raw: "0 " + std},
		{name: "kid 256", raw: "256 " + std},
		{name: "kid negative", raw: "-1 " + std},
		{name: "kid not a number", raw: "one " + std},
		{name: "kid twice", raw: "1 " + std + "\n1 " + other},
		{name: "bare value twice", raw: std + "\n" + other},
		{name: "three fields", raw: "1 " + std + " x"},
		{name: "31 bytes", raw: base64.StdEncoding.EncodeToString(counting()[:31])},
		{name: "33 bytes", raw: base64.StdEncoding.EncodeToString(append(counting(), 1))},
		{name: "stray bits in the last character", raw: std[:42] + "h="},
		{name: "not base64", raw: "1 !!!!"},
		{name: "hexadecimal", raw: hex.EncodeToString(counting())},
		{name: "one byte repeated", raw: base64.StdEncoding.EncodeToString(make([]byte, 32))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ParseSecrets([]byte(tt.raw))
			if tt.want == nil {
				if err == nil {
					t.Fatalf("ParseSecrets accepted %q", tt.raw)
				}
				if strings.Contains(err.Error(), std[:8]) {
					t.Errorf("the error repeats the secret: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("ParseSecrets: %v", err)
			}
			if got := s.KIDs(); !bytes.Equal(got, tt.want) {
				t.Errorf("kids = %v, want %v", got, tt.want)
			}
			if s.MintKID() != tt.want[0] {
				t.Errorf("MintKID = %d, want the first line's %d", s.MintKID(), tt.want[0])
			}
		})
	}
}

func TestSecretsEncode(t *testing.T) {
	s := GenerateSecrets()
	again, err := ParseSecrets(s.Encode())
	if err != nil {
		t.Fatalf("ParseSecrets(Encode): %v", err)
	}
	for _, p := range purposes() {
		a, errA := s.Derive(1, p)
		b, errB := again.Derive(1, p)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: key differs after Encode and ParseSecrets (%v, %v)", p, errA, errB)
		}
	}
	if bytes.Equal(s.Encode(), GenerateSecrets().Encode()) {
		t.Error("GenerateSecrets made the same secret twice")
	}
}

// TestDerive pins the keys: a changed info string would end every token,
// session and sealed key of every installation.
func TestDerive(t *testing.T) {
	s, err := ParseSecrets([]byte(base64.StdEncoding.EncodeToString(counting())))
	if err != nil {
		t.Fatal(err)
	}
	want := map[Purpose]string{
		PurposeCode:    "0e74c8c628752df32062b05141b2982900e8aeadfbf20df503914e549d2d4c74",
		PurposeRefresh: "8c85fb624096bb84d1f27f9f91406aef9b0aca3a17f330f87e14a1ef1e56f1fd",
		PurposeCheck:   "dd79bfee3f8cb152fe16107120ec52426b6606d76485d1747be4dcd67e49d5db",
		PurposeSeal:    "09300b9edca14370f4d5c0f97387aaeafad9b14fa2146d6e882c40719a43dcb6",
		PurposeForm:    "20e2437103479759b0b709b475e443d3c40296aa574be38d4a3778278e5d9f0e",
		PurposeReturn:  "b75d5dc3568d6d565850a4c0f6571bb7ef0043d44f85848c3197df892b1e21ca",
	}
	if len(want) != len(purposes()) {
		t.Errorf("%d purposes are pinned, want each of %q", len(want), purposes())
	}
	seen := make(map[string]Purpose)
	for p, hexKey := range want {
		key, err := s.Derive(1, p)
		if err != nil {
			t.Fatalf("Derive(%s): %v", p, err)
		}
		if got := hex.EncodeToString(key); got != hexKey {
			t.Errorf("Derive(%s) = %s, want %s", p, got, hexKey)
		}
		if other, dup := seen[string(key)]; dup {
			t.Errorf("%s and %s have the same key", p, other)
		}
		seen[string(key)] = p
	}
	if _, err := s.Derive(2, PurposeCode); err == nil {
		t.Error("Derive of an unknown kid succeeded")
	}
	if _, err := s.Derive(1, "ostiary v1 other"); err == nil {
		t.Error("Derive of an unknown purpose succeeded")
	}
}

func TestSecretsPrintRedacted(t *testing.T) {
	s := GenerateSecrets()
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Info("secrets", "s", s)
	fmt.Fprintf(&b, "%v %+v %#v %s", s, s, s, s)
	value := strings.Fields(string(s.Encode()))[1]
	if strings.Contains(b.String(), value) || strings.Count(b.String(), "[redacted]") != 5 {
		t.Errorf("printed %s", b.String())
	}
}

func FuzzParseSecrets(f *testing.F) {
	f.Add([]byte("1 " + base64.StdEncoding.EncodeToString(counting()) + "\n"))
	f.Add([]byte("# x\n\n255 AAAA"))
	f.Add([]byte("1 2 3"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSecrets(data)
		if err != nil {
			return
		}
		again, err := ParseSecrets(s.Encode())
		if err != nil || !bytes.Equal(again.Encode(), s.Encode()) {
			t.Errorf("Encode does not parse to itself: %v", err)
		}
	})
}
