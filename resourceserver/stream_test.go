package resourceserver_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostiary-auth/ostiary/resourceserver"
)

// streamServer is a Server that needs no network, so that it lives in a
// synctest bubble.
func streamServer(t *testing.T, i *issuer, change ...func(*resourceserver.Options)) *resourceserver.Server {
	t.Helper()
	o := resourceserver.Options{Resource: testResource, ClockSkew: -1, NoLegacyMetadata: true,
		Issuers: []resourceserver.Issuer{{Identifier: i.URL, JWKS: []byte(mustJSON(t, map[string]any{"keys": i.keys}))}}}
	for _, c := range change {
		c(&o)
	}
	s, err := resourceserver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serveStream calls h behind s with a token that is valid for ten minutes.
func serveStream(t *testing.T, s *resourceserver.Server, i *issuer, method string, h http.HandlerFunc) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, testResource, nil)
	r.Header.Set("Authorization", "Bearer "+i.sign(t, header("ES256", "ec-1"), i.claims(testResource, time.Now(), "notes:read")))
	w := httptest.NewRecorder()
	s.Protect(h).ServeHTTP(w, r)
	return w
}

func TestStreamEndsWithToken(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	for _, tt := range []struct {
		name, method string
		skew         time.Duration
	}{
		{"POST", http.MethodPost, -1}, {"GET", http.MethodGet, -1}, {"GET with a skew", http.MethodGet, 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := streamServer(t, i, func(o *resourceserver.Options) { o.ClockSkew = tt.skew })
				began := time.Now()
				var late error
				w := serveStream(t, s, i, tt.method, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, "data: one\n\n")
					w.(http.Flusher).Flush()
					child, cancel := context.WithCancel(r.Context())
					defer cancel()
					<-child.Done()
					if cause := context.Cause(child); !errors.Is(cause, resourceserver.ErrTokenExpired) {
						t.Errorf("cause = %v", cause)
					}
					_, late = io.WriteString(w, "data: two\n\n")
				})
				if took, want := time.Since(began), 10*time.Minute+max(tt.skew, 0); took != want {
					t.Errorf("the stream ended after %s, want %s", took, want)
				}
				if late == nil || w.Body.String() != "data: one\n\n" {
					t.Errorf("written after the end: %v, body %q", late, w.Body)
				}
			})
		})
	}
}

func TestStreamOfADeafHandler(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	synctest.Test(t, func(t *testing.T) {
		w := serveStream(t, streamServer(t, i), i, http.MethodPost, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			ticks := time.NewTicker(time.Minute)
			defer ticks.Stop()
			for range 20 {
				<-ticks.C
				_, _ = io.WriteString(w, "data: x\n\n")
				w.(http.Flusher).Flush()
			}
		})
		if n := strings.Count(w.Body.String(), "data"); n != 9 {
			t.Errorf("%d events were written, want 9: the tenth is at the token's exp", n)
		}
	})
}

// A stream that has not begun when the token expires tells the client why.
func TestStreamThatNeverBegan(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	for name, h := range map[string]http.HandlerFunc{
		"returns": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"writes": func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.Header().Set("Mcp-Session-Id", "s-1")
			http.Error(w, "shutting down", http.StatusInternalServerError)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := serveStream(t, streamServer(t, i), i, http.MethodGet, h)
				c := w.Result().Header.Values("WWW-Authenticate")
				if w.Code != http.StatusUnauthorized || len(c) != 1 || !strings.Contains(c[0], `error="invalid_token"`) ||
					strings.Contains(w.Body.String(), "shutting") || w.Header().Get("Mcp-Session-Id") != "" {
					t.Errorf("M1 status %d, challenges %q: %s", w.Code, c, w.Body)
				}
			})
		})
	}
}

// What is no stream is finished: the call was admitted in time, and a client
// would do it a second time.
func TestAnswerOutlivesToken(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	synctest.Test(t, func(t *testing.T) {
		w := serveStream(t, streamServer(t, i), i, http.MethodPost, func(w http.ResponseWriter, r *http.Request) {
			done := r.Context().Done()
			timer := time.NewTimer(time.Hour)
			defer timer.Stop()
			select {
			case <-done:
				t.Error("the call was cancelled")
			case <-timer.C:
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"result":{}}`)
		})
		if w.Code != http.StatusOK || w.Body.String() != `{"result":{}}` {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

func TestRequestContext(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	type key struct{}
	parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "outer"))
	r := httptest.NewRequest(http.MethodPost, testResource, nil).WithContext(parent)
	r.Header.Set("Authorization", "Bearer "+i.sign(t, header("ES256", "ec-1"), i.claims(testResource, time.Now(), "")))
	cause := errors.New("client went away")
	var kept context.Context
	streamServer(t, i).Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		kept = r.Context()
		if _, ok := resourceserver.TokenFromContext(kept); !ok || kept.Value(key{}) != "outer" || kept.Err() != nil {
			t.Errorf("token %v, value %v, error %v", ok, kept.Value(key{}), kept.Err())
		}
		cancel(cause)
		<-kept.Done()
		if kept.Err() == nil || !errors.Is(context.Cause(kept), cause) {
			t.Errorf("error %v, cause %v; want the parent's", kept.Err(), context.Cause(kept))
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	if _, ok := resourceserver.TokenFromContext(kept); !ok {
		t.Error("the token is gone after the request")
	}
}

// Nobody waits for the answer, and somebody else may read the header.
func TestRequestThatWasGivenUp(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest(http.MethodPost, testResource, nil).WithContext(gone)
	r.Header.Set("Authorization", "Bearer "+i.sign(t, header("ES256", "ec-1"), i.claims(testResource, time.Now(), "")))
	w := httptest.NewRecorder()
	streamServer(t, i).Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })).ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || r.Header.Get("Authorization") == "" {
		t.Errorf("status = %d, header %v; want 503 and the header as it was", w.Code, r.Header)
	}
}

// TestStreamOnTheWire reads a stream through HTTP/1.1 and HTTP/2, of a handler
// and of a reverse proxy: events arrive when they are flushed, and the answer
// ends with the token, whole.
func TestStreamOnTheWire(t *testing.T) {
	t.Parallel()
	events := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: one\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		<-r.Context().Done()
	})
	upstream := httptest.NewServer(events)
	t.Cleanup(upstream.Close)
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ErrorLog: log.New(io.Discard, "", 0)}
	for _, tt := range []struct {
		name, method string
		handler      http.Handler
		h2           bool
	}{
		{"handler HTTP/1.1 GET", http.MethodGet, events, false}, {"handler HTTP/2 POST", http.MethodPost, events, true},
		{"proxy HTTP/1.1 POST", http.MethodPost, proxy, false}, {"proxy HTTP/2 GET", http.MethodGet, proxy, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			readStream(t, tt.handler, tt.method, tt.h2)
		})
	}
}

func readStream(t *testing.T, h http.Handler, method string, h2 bool) {
	t.Helper()
	const valid = 3 * time.Second
	i := newIssuer(t)
	start := time.Now()
	exp := start.Add(time.Hour).Truncate(time.Second)
	s := streamServer(t, i, func(o *resourceserver.Options) {
		o.Now = func() time.Time { return exp.Add(-valid).Add(time.Since(start)) }
	})
	srv := httptest.NewUnstartedServer(s.Protect(h))
	srv.EnableHTTP2 = h2
	srv.StartTLS()
	t.Cleanup(srv.Close)
	c := i.claims(testResource, start, "")
	c["exp"], c["iat"] = exp.Unix(), exp.Add(-time.Minute).Unix()
	req, err := http.NewRequest(method, srv.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+i.sign(t, header("ES256", "ec-1"), c))
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || (resp.ProtoMajor == 2) != h2 {
		t.Fatalf("status %s over %s", resp.Status, resp.Proto)
	}
	body := bufio.NewReader(resp.Body)
	if line, err := body.ReadString('\n'); line != "data: one\n" || time.Since(start) >= valid {
		t.Fatalf("%q, %v after %s, want the event before the end", line, err, time.Since(start))
	}
	if rest, err := io.ReadAll(body); err != nil || string(rest) != "\n" || time.Since(start) < valid {
		t.Errorf("rest %q, %v after %s; want a clean end with the token", rest, err, time.Since(start))
	}
}

// A panic of the handler's own stays one, also after the end of its token.
func TestStreamPanics(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if p := recover(); p != "mine" {
				t.Errorf("recovered %v, want the handler's panic", p)
			}
		}()
		serveStream(t, streamServer(t, i), i, http.MethodGet, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic("mine")
		})
		t.Error("the panic was swallowed")
	})
}

// A stream whose Content-Type a careful parser refuses is one to clients.
func TestStreamOfAnOddType(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	for _, contentType := range []string{"text/event-stream; charset=utf-8; charset=utf-8", "TEXT/event-stream;a", " text/event-stream ;;"} {
		t.Run(contentType, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := serveStream(t, streamServer(t, i), i, http.MethodPost, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", contentType)
					w.WriteHeader(http.StatusOK)
					<-r.Context().Done()
					if cause := context.Cause(r.Context()); !errors.Is(cause, resourceserver.ErrTokenExpired) {
						t.Errorf("cause = %v", cause)
					}
				})
				if w.Code != http.StatusOK {
					t.Errorf("status = %d", w.Code)
				}
			})
		})
	}
}
