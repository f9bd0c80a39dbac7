package authclient

import (
	"net/http"
	"testing"
	"time"
)

// TestC5_ForgottenDocumentClient: an authorization server that has forgotten a client
// which it knew by its document learns of it again at the next login.
func TestC5_ForgottenDocumentClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server = with(w.server, "client_id_metadata_document_supported", true)
	c := w.client(func(o *Options) { o.ClientMetadataURL = "https://app.example/client.json" })
	wantCall(t, c, "", http.StatusOK)
	w.advance(time.Hour)
	w.expire()
	w.hook("POST /token", func(rw http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if r.PostForm.Get("grant_type") == "refresh_token" {
			answerJSON(http.StatusUnauthorized, `{"error":"invalid_client"}`)(rw, r)
			return
		}
		w.serveAS(rw, r)
	})
	wantCall(t, c, "", http.StatusOK)
	if len(w.authorizations) != 2 || len(w.registrations) != 0 || w.asked("POST /token") != 3 {
		t.Errorf("%d authorizations, %d registrations, %d token requests", len(w.authorizations), len(w.registrations), w.asked("POST /token"))
	}
}

// TestEndOfSessionAsksNobody: SDKs end their session with DELETE, also after a logout.
func TestEndOfSessionAsksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantCall(t, c, "", http.StatusOK)
	if err := c.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.url(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || len(w.authorizations) != 1 {
		t.Fatalf("%v, %v, %d authorizations", resp, err, len(w.authorizations))
	}
	_ = resp.Body.Close()
}
