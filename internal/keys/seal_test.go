package keys

import (
	"bytes"
	"testing"
)

func TestSeal(t *testing.T) {
	s := GenerateSecrets()
	place := Place{Issuer: "https://as.example", Table: "signing_keys", Row: "k1"}
	value := []byte("private key")
	sealed, err := s.Seal(place, value)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Open(place, sealed); err != nil || !bytes.Equal(got, value) {
		t.Fatalf("Open = %q, %v", got, err)
	}
	if again, err := s.Seal(place, value); err != nil || bytes.Equal(again, sealed) {
		t.Errorf("sealing twice gave the same bytes (%v)", err)
	}
	for name, p := range map[string]Place{
		"other issuer":           {Issuer: "https://as2.example", Table: "signing_keys", Row: "k1"},
		"other table":            {Issuer: "https://as.example", Table: "users", Row: "k1"},
		"other row":              {Issuer: "https://as.example", Table: "signing_keys", Row: "k2"},
		"boundary moved by one":  {Issuer: "https://as.example", Table: "signing_keysk", Row: "1"},
		"boundary moved to left": {Issuer: "https://as.examples", Table: "igning_keys", Row: "k1"},
	} {
		if _, err := s.Open(p, sealed); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := s.Open(place, changed); err == nil {
			t.Errorf("opened with byte %d changed", i)
		}
	}
	for i := range sealed {
		if _, err := s.Open(place, sealed[:i]); err == nil {
			t.Errorf("opened %d of %d bytes", i, len(sealed))
		}
	}
	if _, err := GenerateSecrets().Open(place, sealed); err == nil {
		t.Error("opened with another secret")
	}
}

// TestSealUnderFormerSecret: D2, the first secret seals and all open.
func TestSealUnderFormerSecret(t *testing.T) {
	old := GenerateSecrets()
	place := Place{Issuer: "i", Table: "t", Row: "r"}
	sealed, err := old.Seal(place, []byte("v"))
	if err != nil {
		t.Fatal(err)
	}
	fresh := bytes.Replace(GenerateSecrets().Encode(), []byte("1 "), []byte("2 "), 1)
	both, err := ParseSecrets(append(fresh, old.Encode()...))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := both.Open(place, sealed); err != nil || string(got) != "v" {
		t.Errorf("Open = %q, %v", got, err)
	}
	resealed, err := both.Seal(place, []byte("v"))
	if err != nil || resealed[0] != 2 {
		t.Errorf("sealed under kid %d, want 2 (%v)", resealed[0], err)
	}
}
