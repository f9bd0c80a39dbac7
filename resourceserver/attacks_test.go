package resourceserver_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// signedHS256 is a token whose MAC is made with secret, which anybody can know when
// it is a public key.
func signedHS256(t *testing.T, header, claims any, secret []byte) string {
	t.Helper()
	signed := encode([]byte(mustJSON(t, header))) + "." + encode([]byte(mustJSON(t, claims)))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// The public key, in every form in which libraries have taken it for a secret.
func TestJW05_PublicKeyAsSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	public := f.issuer.signers["ec-1"].Public().(*ecdsa.PublicKey)
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	point, err := public.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	f.get(f.token(t, "notes:read")) // the keys are known
	f.served = nil
	claims := f.issuer.claims(testResource, f.now, "notes:read")
	for name, secret := range map[string][]byte{
		"PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "DER": der, "point": point,
		"JWK": []byte(mustJSON(t, f.issuer.keys[0])), "x": []byte(f.issuer.keys[0]["x"].(string)), "nothing": nil,
	} {
		for _, alg := range []string{"HS256", "ES256", "none"} {
			t.Run("JW-05 JW-07 "+name+" as the secret of "+alg, func(t *testing.T) {
				expect401(t, f, f.get(signedHS256(t, header(alg, "ec-1"), claims, secret)), "invalid_token")
			})
		}
	}
}

// The header names a key of the attacker's, in every way that RFC 7515 §4.1 has.
func TestJW07_KeysInTheHeader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	evil := newIssuer(t)
	asked := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, mustJSON(t, map[string]any{"keys": evil.keys}))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	f.get(f.token(t, "notes:read"))
	f.served = nil
	claims := f.issuer.claims(testResource, f.now, "notes:read")
	for name, value := range map[string]any{
		"jwk": evil.keys[0], "jku": srv.URL + "/jwks", "x5u": srv.URL + "/x", "x5c": []string{"MIIB"}, "x5t": "AA", "iss": evil.URL,
	} {
		for _, kid := range []string{"ec-1", "ec-2", ""} {
			t.Run("JW-07 "+name+" with kid "+kid, func(t *testing.T) {
				h := header("ES256", kid)
				h[name] = value
				if kid == "" {
					delete(h, "kid")
				}
				unsigned := encode([]byte(mustJSON(t, h))) + "." + encode([]byte(mustJSON(t, claims)))
				expect401(t, f, f.get(unsigned+"."+encode(rawSignature(t, evil.signers["ec-1"], unsigned))), "invalid_token")
			})
		}
	}
	if asked != 0 {
		t.Errorf("JW-07 the header made us ask for %d documents", asked)
	}
}

// Two spellings of one token, or what parsers read in two ways.
func TestJW04_Spelling(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := f.token(t, "notes:read")
	p := strings.Split(good, ".")
	headerJSON, claimsJSON := string(decode(t, p[0])), string(decode(t, p[1]))
	sign := func(header, claims string) string { return f.issuer.signRaw(t, header, claims) }
	withHeader := func(more string) string {
		return sign(strings.TrimSuffix(headerJSON, "}")+","+more+"}", claimsJSON)
	}
	withClaims := func(more string) string {
		return sign(headerJSON, strings.TrimSuffix(claimsJSON, "}")+","+more+"}")
	}
	// The last character of 64 bytes carries four bits that mean nothing.
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	stray := p[2][:len(p[2])-1] + string(alphabet[strings.IndexByte(alphabet, p[2][len(p[2])-1])|1])
	standard := strings.NewReplacer("-", "+", "_", "/")
	for _, tt := range []struct{ name, raw string }{
		{"JW-04 trailing bits", p[0] + "." + p[1] + "." + stray},
		{"JW-04 padded header", p[0] + "=." + p[1] + "." + p[2]},
		{"JW-04 padded signature", good + "=="},
		{"JW-04 standard alphabet", p[0] + "." + p[1] + "." + base64.StdEncoding.EncodeToString(append(decode(t, p[2])[:63], 0xff))},
		{"JW-04 CR in a segment", p[0] + "." + p[1] + ".\r" + p[2]},
		{"JW-04 tab in a segment", p[0][:4] + "\t" + p[0][4:] + "." + p[1] + "." + p[2]},
		{"JW-04 space before a point", p[0] + " ." + p[1] + "." + p[2]},
		{"JW-04 four empty segments", "..."},
		{"JW-04 points alone", ".."},
		{"JW-04 nested JWT", sign(`{"typ":"at+jwt","alg":"ES256","kid":"ec-1","cty":"JWT"}`, `"`+good+`"`)},
		{"JW-04 JSON serialization", encode([]byte(`{"payload":"` + p[1] + `","protected":"` + p[0] + `","signature":"` + p[2] + `"}`))},
		{"JW-04 16 KiB and one byte", strings.Repeat("a", 16<<10+1)},
		{"JW-04 16 KiB of points", strings.Repeat(".", 16<<10)},
		{"JW-05 alg twice", withHeader(`"alg":"none"`)},
		{"JW-05 alg twice, once escaped", withHeader(`"\u0061lg":"none"`)},
		{"JW-05 alg null", sign(`{"typ":"at+jwt","alg":null,"kid":"ec-1"}`, claimsJSON)},
		{"JW-05 alg a list", sign(`{"typ":"at+jwt","alg":["ES256"],"kid":"ec-1"}`, claimsJSON)},
		{"JW-07 kid twice", withHeader(`"kid":"ec-2"`)},
		{"JW-07 kid null", sign(`{"typ":"at+jwt","alg":"ES256","kid":null}`, claimsJSON)},
		{"JW-07 kid of another case", sign(`{"typ":"at+jwt","alg":"ES256","kid":"EC-1"}`, claimsJSON)},
		{"JW-07 kid with a NUL", sign(`{"typ":"at+jwt","alg":"ES256","kid":"ec-1\u0000"}`, claimsJSON)},
		{"JW-07 kid a path", sign(`{"typ":"at+jwt","alg":"ES256","kid":"../../dev/null"}`, claimsJSON)},
		{"JW-07 crit empty", withHeader(`"crit":[]`)},
		{"JW-07 crit exp", withHeader(`"crit":["exp"]`)},
		{"JW-07 b64 false", withHeader(`"b64":false,"crit":["b64"]`)},
		{"JW-07 b64 true", withHeader(`"b64":true`)},
		{"JW-04 deep header", withHeader(`"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40))},
		{"JW-04 deep claims", withClaims(`"x":` + strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40))},
		{"JW-04 many claims", withClaims(strings.TrimSuffix(strings.Repeat(`"":1,`, 300), ","))},
		{"JW-13 typ twice", withHeader(`"typ":"JWT"`)},
		{"JW-13 typ null", sign(`{"typ":null,"alg":"ES256","kid":"ec-1"}`, claimsJSON)},
		{"JW-13 typ a list", sign(`{"typ":["at+jwt"],"alg":"ES256","kid":"ec-1"}`, claimsJSON)},
		{"JW-13 typ with a space", sign(`{"typ":"at+jwt ","alg":"ES256","kid":"ec-1"}`, claimsJSON)},
		{"JW-14 iss twice", withClaims(`"iss":"https://evil.example"`)},
		{"JW-15 aud twice", withClaims(`"aud":"https://evil.example"`)},
		{"JW-16 exp twice", withClaims(`"exp":9999999999`)},
		{"JW-16 exp twice, once escaped", withClaims(`"\u0065xp":9999999999`)},
		{"JW-18 half a surrogate pair in a name", withClaims(`"\ud800":1`)},
		{"JW-18 scope twice", withClaims(`"scope":"notes:write"`)},
		{"JW-18 not UTF-8", withClaims("\"x\":\"\xff\"")},
		{"JW-18 overlong UTF-8", withClaims("\"x\":\"\xc0\xaf\"")},
		{"JW-18 byte order mark", sign(headerJSON, "\ufeff"+claimsJSON)},
		{"JW-18 two objects", sign(headerJSON, claimsJSON+claimsJSON)},
		{"JW-18 NaN", withClaims(`"x":NaN`)},
		{"JW-18 leading zero", withClaims(`"x":01`)},
		{"JW-18 hexadecimal", withClaims(`"x":0x1`)},
		{"JW-18 trailing comma", sign(headerJSON, strings.TrimSuffix(claimsJSON, "}")+",}")},
		{"JW-18 comment", sign(headerJSON, claimsJSON+"/**/")},
		{"JW-18 an array", sign(headerJSON, "["+claimsJSON+"]")},
		{"JW-21 cnf null", withClaims(`"cnf":null`)},
	} {
		t.Run(tt.name, func(t *testing.T) { expect401(t, f, f.get(tt.raw), "invalid_token") })
	}
	t.Run("JW-04 not what the replaced spelling says", func(t *testing.T) {
		if other := standard.Replace(good); other != good {
			expect401(t, f, f.get(other), "invalid_token")
		}
	})
}

// One claim replaced by JSON text that no encoder would write.
func TestJW16_ClaimsAsText(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	now := f.now.Unix()
	for _, tt := range []struct {
		name, claim, value string
		want               int
	}{
		{"JW-16 exp an integer", "exp", fmt.Sprint(now + 1), 200},
		{"JW-16 exp with an exponent", "exp", "99e9", 200},
		{"JW-16 exp with a fraction", "exp", fmt.Sprintf("%d.25", now+1), 200},
		{"JW-16 exp a string", "exp", fmt.Sprintf(`"%d"`, now+60), 401},
		{"JW-16 exp true", "exp", "true", 401},
		{"JW-16 exp null", "exp", "null", 401},
		{"JW-16 exp a list", "exp", fmt.Sprintf("[%d]", now+60), 401},
		{"JW-16 exp an object", "exp", "{}", 401},
		{"JW-16 exp minus zero", "exp", "-0", 401},
		{"JW-16 exp negative", "exp", "-99e9", 401},
		{"JW-16 exp 1e300", "exp", "1e300", 401},
		{"JW-16 exp beyond a float", "exp", "1e999", 401},
		{"JW-16 exp of a thousand digits", "exp", "9" + strings.Repeat("0", 1000), 401},
		{"JW-16 exp in milliseconds", "exp", fmt.Sprint((now + 60) * 1000), 401},
		{"JW-16 exp Infinity", "exp", "Infinity", 401},
		{"JW-16 exp with an underscore", "exp", "9_999_999_999", 401},
		{"JW-16 exp with a plus", "exp", "+9999999999", 401},
		{"JW-16 exp just over", "exp", fmt.Sprintf("%d.0", now), 401},
		{"JW-16 nbf null", "nbf", "null", 401},
		{"JW-16 nbf beyond a float", "nbf", "1e999", 401},
		{"JW-16 iat negative", "iat", "-1", 401},
		{"JW-16 auth_time a string", "auth_time", `"1"`, 401},
		{"JW-15 aud null", "aud", "null", 401},
		{"JW-15 aud empty", "aud", `""`, 401},
		{"JW-15 aud has null", "aud", `[null,"` + testResource + `"]`, 401},
		{"JW-15 aud a list in a list", "aud", `[["` + testResource + `"]]`, 401},
		{"JW-15 aud a list as string", "aud", `"https://other.example ` + testResource + `"`, 401},
		{"JW-15 aud with a query", "aud", `"` + testResource + `?a=b"`, 401},
		{"JW-15 aud with a fragment", "aud", `"` + testResource + `#a"`, 401},
		{"JW-15 aud with userinfo", "aud", `"https://evil@mcp.example.com/mcp"`, 401},
		{"JW-15 aud over http", "aud", `"http://mcp.example.com/mcp"`, 401},
		{"JW-15 aud at another port", "aud", `"https://mcp.example.com:8443/mcp"`, 401},
		{"JW-15 aud with an encoded letter", "aud", `"https://mcp.example.com/%6dcp"`, 401},
		{"JW-15 aud with dot segments", "aud", `"https://mcp.example.com/x/../mcp"`, 401},
		{"JW-15 aud with two slashes", "aud", `"https://mcp.example.com//mcp"`, 401},
		{"JW-15 aud with a point after the host", "aud", `"https://mcp.example.com./mcp"`, 401},
		{"JW-15 aud with a space", "aud", `" ` + testResource + `"`, 401},
		{"JW-15 aud of another case in the path", "aud", `"https://mcp.example.com/MCP"`, 401},
		{"JW-15 aud escaped", "aud", `"https:\/\/mcp.example.com\/mc\u0070"`, 200},
		{"JW-15 aud ours twice", "aud", `["` + testResource + `","` + testResource + `"]`, 200},
		{"JW-14 iss null", "iss", "null", 401},
		{"JW-14 iss in another case", "iss", `"` + strings.ToUpper(f.issuer.URL) + `"`, 401},
		{"JW-14 iss with a space", "iss", `"` + f.issuer.URL + ` "`, 401},
		{"JW-14 iss with a query", "iss", `"` + f.issuer.URL + `?"`, 401},
		{"JW-14 iss by another name", "iss", `"` + strings.Replace(f.issuer.URL, "127.0.0.1", "localhost", 1) + `"`, 401},
		{"JW-14 iss escaped", "iss", `"` + strings.ReplaceAll(f.issuer.URL, "/", `\/`) + `"`, 200},
		{"JW-25 sub null", "sub", "null", 401},
		{"JW-25 sub empty", "sub", `""`, 401},
		{"JW-25 sub a number", "sub", "1", 401},
		{"JW-25 sub half a surrogate pair", "sub", `"u_1\ud800"`, 401},
		{"JW-25 sub a surrogate pair", "sub", `"u_\ud83d\ude00"`, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.issuer.claims(testResource, f.now, "notes:read")
			delete(c, tt.claim)
			claims := strings.TrimSuffix(mustJSON(t, c), "}") + `,"` + tt.claim + `":` + tt.value + "}"
			before := f.servedCount()
			w := f.get(f.issuer.signRaw(t, mustJSON(t, header("ES256", "ec-1")), claims))
			if w.Code != tt.want || (f.servedCount() > before) != (tt.want == 200) {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
}

// One kid for keys of two types is no riddle: each algorithm has one key. Two that
// can verify the same algorithm are.
func TestJW07_OneKidForTwoTypes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ec := f.issuer.signers["ec-1"]
	f.issuer.addKey(t, "ec-1", rsaKey, nil)
	sign := func(alg string, by any) int {
		unsigned := encode([]byte(mustJSON(t, header(alg, "ec-1")))) + "." + encode([]byte(mustJSON(t, f.issuer.claims(testResource, f.now, ""))))
		if by == any(rsaKey) {
			return f.get(unsigned + "." + encode(rawSignature(t, rsaKey, unsigned))).Code
		}
		return f.get(unsigned + "." + encode(rawSignature(t, ec, unsigned))).Code
	}
	for _, tt := range []struct {
		name, alg string
		by        any
		want      int
	}{
		{"its EC key", "ES256", ec, 200},
		{"its RSA key", "RS256", rsaKey, 200},
		{"RS256 said, EC signed", "RS256", ec, 401},
		{"ES256 said, RSA signed", "ES256", rsaKey, 401},
	} {
		t.Run("JW-07 "+tt.name, func(t *testing.T) {
			if got := sign(tt.alg, tt.by); got != tt.want {
				t.Errorf("status = %d, want %d", got, tt.want)
			}
		})
	}
}

// What comes on the wire: net/http in front, so that its share is part of the answer.
func TestJW02_OnTheWire(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	srv := httptest.NewServer(f.handler)
	t.Cleanup(srv.Close)
	good := f.token(t, "notes:read")
	for _, tt := range []struct {
		name, lines string
		want        int
		wantError   string
	}{
		{"JW-02 one header", "Authorization: Bearer " + good, 200, ""},
		{"JW-02 scheme in lower case", "authorization: bearer " + good, 200, ""},
		{"JW-02 scheme in upper case", "AUTHORIZATION: BEARER " + good, 200, ""},
		{"JW-02 several spaces", "Authorization:   Bearer   " + good + "  ", 200, ""},
		{"JW-02 tab after the scheme", "Authorization: Bearer\t" + good, 401, ""},
		{"JW-02 tab before the token", "Authorization: Bearer \t" + good, 401, "invalid_token"},
		{"JW-02 comma after the token", "Authorization: Bearer " + good + ",", 401, "invalid_token"},
		{"JW-02 two credentials in one header", "Authorization: Bearer " + good + ", Bearer x", 401, "invalid_token"},
		{"JW-02 Basic first", "Authorization: Basic YTpi, Bearer " + good, 401, ""},
		{"JW-02 token in quotes", `Authorization: Bearer "` + good + `"`, 401, "invalid_token"},
		{"JW-02 token as parameter", "Authorization: Bearer token=" + good, 401, "invalid_token"},
		{"JW-02 DPoP", "Authorization: DPoP " + good, 401, ""},
		{"JW-02 no scheme", "Authorization: " + good, 401, ""},
		{"JW-02 empty", "Authorization:", 401, ""},
		{"JW-02 two headers", "Authorization: Bearer " + good + "\r\nAuthorization: Bearer " + good, 400, ""},
		{"JW-02 two headers in two cases", "Authorization: Bearer " + good + "\r\nauthorization: Basic YTpi", 400, ""},
		{"JW-02 empty header beside it", "Authorization: Bearer " + good + "\r\nAuthorization:", 400, ""},
		{"JW-02 continued on the next line", "Authorization: Bearer\r\n " + good, 200, ""}, // RFC 9112 §5.2: a space
		{"JW-02 space before the colon", "Authorization : Bearer " + good, 400, ""},
		{"JW-02 underscore", "Authorization_: Bearer " + good, 401, ""},
		{"JW-03 another header", "X-Access-Token: " + good, 401, ""},
		{"JW-03 cookie", "Cookie: access_token=" + good, 401, ""},
		{"JW-03 proxy's header", "Proxy-Authorization: Bearer " + good, 401, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := rawRequest(t, srv, "GET /mcp HTTP/1.1\r\nHost: mcp.example.com\r\n"+tt.lines+"\r\nConnection: close\r\n\r\n")
			challenges := resp.Header.Values("WWW-Authenticate")
			if resp.StatusCode != tt.want || (len(challenges) == 1) != (tt.want == 401) {
				t.Fatalf("status = %d, want %d; challenges %q", resp.StatusCode, tt.want, challenges)
			}
			if tt.want == 401 && strings.Contains(challenges[0], "error=") != (tt.wantError != "") {
				t.Errorf("challenge = %q, want error %q", challenges[0], tt.wantError)
			}
		})
	}
	t.Run("JW-03 token in the trailers", func(t *testing.T) {
		resp := rawRequest(t, srv, "POST /mcp HTTP/1.1\r\nHost: mcp.example.com\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization\r\nConnection: close\r\n\r\n"+
			"2\r\n{}\r\n0\r\nAuthorization: Bearer "+good+"\r\n\r\n")
		if resp.StatusCode == 200 {
			t.Errorf("status = %d", resp.StatusCode)
		}
	})
}

// rawRequest sends text as it is and reads the answer.
func rawRequest(t *testing.T, srv *httptest.Server, text string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// JW-03: a token where it must not be opens nothing and stands in no log.
func TestJW03_NotLogged(t *testing.T) {
	t.Parallel()
	var log lockedBuilder
	f := newFixture(t, func(o *resourceserver.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	token := f.token(t, "notes:read")
	expect401(t, f, f.call(httptest.NewRequest("GET", testResource+"?access_token="+token, nil), ""), "")
	expect401(t, f, f.get(token[:len(token)-4]), "invalid_token")
	f.advance(1e12)
	expect401(t, f, f.get(token), "invalid_token")
	if text := log.String(); strings.Contains(text, token[:40]) || !strings.Contains(text, "request refused") {
		t.Errorf("JW-03 log: %s", text)
	}
}

// A handler behind Protect cannot take the connection, and so cannot outlive the token.
func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tried := make(chan error, 1)
	f.handler = f.server.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Hijacker); ok {
			t.Error("the answer is a Hijacker")
		}
		if _, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
			t.Error("the answer can be unwrapped")
		}
		_, _, err := http.NewResponseController(w).Hijack()
		tried <- err
		w.WriteHeader(http.StatusNotImplemented)
	}))
	srv := httptest.NewServer(f.handler)
	t.Cleanup(srv.Close)
	resp := rawRequest(t, srv, "GET /mcp HTTP/1.1\r\nHost: mcp.example.com\r\nAuthorization: Bearer "+f.token(t, "")+
		"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n")
	if err := <-tried; err == nil || resp.StatusCode != http.StatusNotImplemented {
		t.Errorf("hijack: %v, status = %d", err, resp.StatusCode)
	}
}

// The resource and an issuer cannot have one name.
func TestAU09_ResourceIsNoIssuer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, issuer, resource string
		ok                     bool
	}{
		{"AU-09 the same", "https://mcp.example.com", "https://mcp.example.com", false},
		{"AU-09 but for the slash", "https://mcp.example.com/", "https://mcp.example.com", false},
		{"AU-09 but for case and port", "https://mcp.example.com/mcp", "https://MCP.example.com:443/mcp", false},
		{"M7 below the issuer", "https://mcp.example.com", "https://mcp.example.com/mcp", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := resourceserver.New(resourceserver.Options{Issuer: tt.issuer, Resource: tt.resource})
			if (err == nil) != tt.ok {
				t.Errorf("New = %v, want ok %t", err, tt.ok)
			}
		})
	}
}

// A handler that passes its request on, whole, passes no token on.
func TestJW24_TokenStaysHere(t *testing.T) {
	t.Parallel()
	var forwarded http.Header
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { forwarded = r.Header.Clone() }))
	t.Cleanup(upstream.Close)
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change func(*resourceserver.Options)
		want   bool
	}{
		{"JW-24 by default", func(*resourceserver.Options) {}, false},
		{"JW-24 with lists filtered", func(o *resourceserver.Options) {
			o.Operations, o.DefaultScopes, o.FilterLists = map[resourceserver.Operation][]string{}, []string{}, true
		}, false},
		{"JW-24 with the option to pass it on", func(o *resourceserver.Options) { o.AllowTokenPassthrough = true }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.change)
			f.handler = f.server.Protect(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
			w := f.call(httptest.NewRequest("POST", testResource, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)), f.token(t, "notes:read"))
			if w.Code != http.StatusOK || forwarded == nil {
				t.Fatalf("status = %d: %s", w.Code, w.Body)
			}
			if _, has := forwarded["Authorization"]; has != tt.want {
				t.Errorf("the upstream's request has a token: %t, want %t", has, tt.want)
			}
		})
	}
}

// OPTIONS is answered for preflights alone, and reaches no handler without a token.
func TestJW28_Options(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, tt := range []struct {
		name, origin, method, headers string
		want                          int
	}{
		{"JW-28 preflight", "https://inspector.example", "POST", "authorization", 204},
		{"JW-28 preflight for no header", "https://inspector.example", "GET", "", 204},
		{"JW-28 preflight of a page without an origin", "null", "POST", "authorization", 204},
		{"JW-28 no CORS header", "", "", "", 401},
		{"JW-28 origin alone", "https://inspector.example", "", "", 401},
		{"JW-28 method alone", "", "POST", "authorization", 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("OPTIONS", testResource, strings.NewReader(`{"method":"tools/call"}`))
			for name, v := range map[string]string{"Origin": tt.origin, "Access-Control-Request-Method": tt.method, "Access-Control-Request-Headers": tt.headers} {
				if v != "" {
					r.Header.Set(name, v)
				}
			}
			w := f.call(r, "")
			if w.Code != tt.want || f.servedCount() != 0 {
				t.Errorf("status = %d, want %d; the handler ran %d times", w.Code, tt.want, f.servedCount())
			}
			if w.Body.Len() > 0 && tt.want == 204 {
				t.Errorf("body = %q", w.Body)
			}
		})
	}
}

// M2: what a page must be able to read, with and without a token.
func TestM2_ExposedHeaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, token := range map[string]string{"M2 refused": "", "M2 served": f.token(t, "notes:read")} {
		t.Run(name, func(t *testing.T) {
			got := f.get(token).Header().Get("Access-Control-Expose-Headers")
			if got != "WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version" {
				t.Errorf("Access-Control-Expose-Headers = %q", got)
			}
		})
	}
}

// M4: offline_access is between client and authorization server.
func TestM4_NoOfflineAccess(t *testing.T) {
	t.Parallel()
	_, err := resourceserver.New(resourceserver.Options{Issuer: "https://login.example.com", Resource: testResource,
		Scopes: []string{"notes:read", "offline_access"}})
	if err == nil || !strings.Contains(err.Error(), "offline_access") {
		t.Errorf("New = %v, want an error about offline_access", err)
	}
}

// JW-22: a client that does not wait for an endpoint that hangs gets 503, not 401.
func TestJW22_EndpointHangs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	f.issuer.set(func(i *issuer) { i.hold = hold })
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan *httptest.ResponseRecorder)
	go func() {
		answered <- f.call(httptest.NewRequest("GET", testResource, nil).WithContext(ctx), f.token(t, "notes:read"))
	}()
	eventually(t, func() bool { return f.issuer.fetched() == 1 }, "nobody asks for the keys")
	cancel()
	if w := <-answered; w.Code != http.StatusServiceUnavailable || f.servedCount() != 0 {
		t.Errorf("status = %d, the handler ran %d times", w.Code, f.servedCount())
	}
}

// Every spelling of a host or an origin that some resolver or browser takes for this
// machine, and that is not a plain loopback name or address, is none.
func TestJW27_Spellings(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *resourceserver.Options) { o.Resource = localResource })
	c := f.issuer.claims(localResource, f.clock(), "notes:read")
	token := f.issuer.sign(t, header("ES256", "ec-1"), c)
	const here = "127.0.0.1:9100"
	for _, tt := range []struct {
		name, host, origin string
		want               int
	}{
		{"address of the network 127", "127.8.9.10:9100", "", 200},
		{"IPv6 with the address within", "[::ffff:127.0.0.1]:9100", "", 200},
		{"name in capitals", "LOCALHOST:9100", "", 200},
		{"no address", "0.0.0.0:9100", "", 403},
		{"no IPv6 address", "[::]:9100", "", 403},
		{"short address", "127.1:9100", "", 403},
		{"decimal address", "2130706433:9100", "", 403},
		{"hexadecimal address", "0x7f.0.0.1:9100", "", 403},
		{"octal address", "0177.0.0.1:9100", "", 403},
		{"address with a point", "127.0.0.1.:9100", "", 403},
		{"name with a point", "localhost.:9100", "", 403},
		{"name below", "x.localhost:9100", "", 403},
		{"name of a public service", "127.0.0.1.nip.io:9100", "", 403},
		{"userinfo", "127.0.0.1:9100@evil.example", "", 403},
		{"path", "evil.example/127.0.0.1:9100", "", 403},
		{"fragment", "evil.example#127.0.0.1:9100", "", 403},
		{"comma", "127.0.0.1:9100,evil.example", "", 403},
		{"IPv6 page", here, "http://[::1]:6274", 200},
		{"page without a port", here, "http://127.0.0.1", 200},
		{"page over https", here, "https://localhost:8443", 200},
		{"null", here, "null", 403},
		{"empty", here, "-", 403},
		{"file", here, "file://", 403},
		{"extension", here, "chrome-extension://localhost", 403},
		{"no host", here, "http://", 403},
		{"page at no address", here, "http://0.0.0.0:9100", 403},
		{"page with a trailing slash", here, "http://localhost:6274/", 403},
		{"page with userinfo", here, "http://evil@localhost:6274", 403},
		{"page with a query", here, "http://localhost:6274?x", 403},
		{"page with a fragment", here, "http://localhost#.evil.example", 403},
		{"page whose name begins so", here, "http://localhost.evil.example", 403},
		{"page whose address begins so", here, "http://127.0.0.1.evil.example", 403},
		{"page with a backslash", here, `http://localhost\.evil.example`, 403},
		{"page at a port that is none", here, "http://localhost:x", 403},
		{"two pages", here, "http://localhost:1 http://evil.example", 403},
	} {
		t.Run("JW-27 "+tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/mcp", nil)
			r.Host = tt.host
			if tt.origin != "" {
				r.Header.Set("Origin", strings.TrimPrefix(tt.origin, "-"))
			}
			before := f.servedCount()
			if w := f.call(r, token); w.Code != tt.want || (f.servedCount() > before) != (tt.want == 200) {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
	t.Run("JW-27 two Origin headers", func(t *testing.T) {
		r := httptest.NewRequest("GET", "/mcp", nil)
		r.Host = here
		r.Header["Origin"] = []string{"http://localhost:1", "http://localhost:1"}
		if w := f.call(r, token); w.Code != http.StatusForbidden {
			t.Errorf("status = %d, want 403", w.Code)
		}
	})
}

// What the keys' publisher says twice, or in another case, is not chosen from.
func TestJW22_StrictSets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	k := mustJSON(t, f.issuer.keys[0])
	more := func(members string) string { return `{"keys":[` + strings.TrimSuffix(k, "}") + "," + members + `}]}` }
	for _, tt := range []struct {
		name, body string
		want       int
	}{
		{"as it is", `{"keys":[` + k + `]}`, 200},
		{"unknown members", `{"keys":[` + k + `],"x":{"y":[1]}}`, 200},
		{"use null", more(`"x5t":null`), 200},
		{"keys twice", `{"keys":[],"keys":[` + k + `]}`, 503},
		{"keys in another case", `{"KEYS":[` + k + `]}`, 503},
		{"keys beside Keys", `{"keys":[` + k + `],"Keys":[]}`, 200},
		{"data after the set", `{"keys":[` + k + `]}{}`, 503},
		{"byte order mark", "\ufeff" + `{"keys":[` + k + `]}`, 503},
		{"a member twice", more(`"kty":"RSA"`), 503},
		{"a private member in another case", more(`"D":"AA"`), 200},
		{"a prime", more(`"p":"AA"`), 503},
		{"a hundred and one keys", `{"keys":[` + strings.TrimSuffix(strings.Repeat(`{"kty":"x"},`, 101), ",") + `]}`, 503},
		{"a key that is null", `{"keys":[null]}`, 503},
		{"use a list", strings.Replace(`{"keys":[`+k+`]}`, `"use":"sig"`, `"use":["sig","enc"]`, 1), 503},
		{"alg a number", strings.Replace(`{"keys":[`+k+`]}`, `"alg":"ES256"`, `"alg":1`, 1), 503},
		{"kid a number", strings.Replace(`{"keys":[`+k+`]}`, `"kid":"ec-1"`, `"kid":1`, 1), 503},
		{"another curve's name", strings.Replace(`{"keys":[`+k+`]}`, `"crv":"P-256"`, `"crv":"P-384"`, 1), 503},
		{"a point that is not on the curve", strings.Replace(`{"keys":[`+k+`]}`, `"x":"`, `"x":"AA`, 1), 503},
	} {
		t.Run("JW-22 "+tt.name, func(t *testing.T) {
			t.Parallel()
			g := newFixture(t)
			g.issuer.set(func(i *issuer) { i.body, i.signers["ec-1"] = tt.body, f.issuer.signers["ec-1"] })
			if w := g.get(g.token(t, "notes:read")); w.Code != tt.want {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
}

// M1: each request needs a token of its own, on one connection too: what the first
// proved says nothing of the next.
func TestM1_EveryRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	srv := httptest.NewServer(f.handler)
	t.Cleanup(srv.Close)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	answers := bufio.NewReader(conn)
	good := "Authorization: Bearer " + f.token(t, "notes:read") + "\r\n"
	for i, tt := range []struct {
		line string
		want int
	}{{"", 401}, {good, 200}, {"", 401}, {good, 200}, {"Authorization: Bearer x\r\n", 401}} {
		if _, err := io.WriteString(conn, "GET /mcp HTTP/1.1\r\nHost: mcp.example.com\r\n"+tt.line+"\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != tt.want {
			t.Errorf("request %d: status = %d, want %d (%v)", i, resp.StatusCode, tt.want, err)
		}
	}
}

// Every spelling of the path, as it may come on the wire, is protected: what is not
// the handler's own needs a token all the same, and a document is no way around it.
func TestJW29_PathsOnTheWire(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	srv := httptest.NewServer(f.handler)
	t.Cleanup(srv.Close)
	const doc = "/.well-known/oauth-protected-resource/mcp"
	for _, tt := range []struct {
		line string
		want int
	}{
		{"GET /mcp/ HTTP/1.1", 401}, {"GET //mcp HTTP/1.1", 401}, {"GET /MCP HTTP/1.1", 401}, {"GET /mcp%2f HTTP/1.1", 401},
		{"GET /%6dcp HTTP/1.1", 401}, {"GET /./mcp HTTP/1.1", 401}, {"GET /x/../mcp HTTP/1.1", 401}, {"GET /mcp;x=1 HTTP/1.1", 401},
		{"GET /mcp?x HTTP/1.1", 401}, {"GET /mcp%00 HTTP/1.1", 401}, {"GET /mcp\\ HTTP/1.1", 401},
		{"GET http://evil.example/mcp HTTP/1.1", 403}, {"GET https://mcp.example.com/mcp HTTP/1.1", 401},
		{"POST " + doc + "/../../../mcp HTTP/1.1", 401}, {"GET " + doc + "/..%2f..%2f..%2fmcp HTTP/1.1", 401},
		{"GET " + doc + "/..;/mcp HTTP/1.1", 401}, {"GET " + doc + "//mcp HTTP/1.1", 401}, {"GET /mcp" + doc + " HTTP/1.1", 401},
		{"TRACE /mcp HTTP/1.1", 401}, {"PRI /mcp HTTP/1.1", 401}, {"get /mcp HTTP/1.1", 401}, {"CONNECT mcp.example.com:443 HTTP/1.1", 401},
		{"GET mcp HTTP/1.1", 400},
		{"GET " + doc + " HTTP/1.1", 200}, {"GET /.well-known/oauth-protected-resource%2Fmcp HTTP/1.1", 200}, {"POST " + doc + " HTTP/1.1", 405},
	} {
		t.Run("JW-29 "+tt.line, func(t *testing.T) {
			resp := rawRequest(t, srv, tt.line+"\r\nHost: mcp.example.com\r\nX-Original-URL: "+doc+"\r\nX-HTTP-Method-Override: OPTIONS\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			if resp.StatusCode != tt.want {
				t.Errorf("status = %d, want %d", resp.StatusCode, tt.want)
			}
		})
	}
	if n := f.servedCount(); n != 0 {
		t.Errorf("the handler ran %d times", n)
	}
}

// A reverse proxy behind Protect cannot switch protocols either, whatever the
// server behind it agrees to.
func TestUpgradeThroughAProxy(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = buf.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + r.Header.Get("Upgrade") + "\r\n\r\nsecret of the upstream")
		_ = buf.Flush()
	}))
	t.Cleanup(upstream.Close)
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ErrorLog: log.New(io.Discard, "", 0)}
	srv := httptest.NewServer(f.server.Protect(proxy))
	t.Cleanup(srv.Close)
	resp := rawRequest(t, srv, "GET /mcp HTTP/1.1\r\nHost: mcp.example.com\r\nAuthorization: Bearer "+f.token(t, "")+
		"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusBadGateway || strings.Contains(string(body), "secret") {
		t.Errorf("status = %d: %q", resp.StatusCode, body)
	}
}
