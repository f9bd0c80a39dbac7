package web_test

import (
	"html"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/ostiary-auth/ostiary/web"
	"github.com/ostiary-auth/ostiary/web/webtest"
)

// hostile are words that foreign software may hand us.
var hostile = map[string]string{
	"HTML":            `<script>alert(1)</script><img src=x onerror=alert(1)>`,
	"attribute":       `" autofocus onfocus="alert(1)`,
	"bidi override":   "\u202eelbisrever\u202c\u2066x",
	"zero width":      "Qu\u200bi\u200cl\u200dl\ufeff",
	"control":         "a\x00b\x1bc\r\nd",
	"10 kB":           strings.Repeat("<b>", 3414),
	"right to left":   "קוויל",
	"template":        "{{.Txn}}{client}",
	"not UTF-8":       "\xff\xfe",
	"closing element": "</title></h1></main>",
}

func TestCS12HostileNamesStayInert(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	for name, s := range hostile {
		t.Run("CS-12 "+name, func(t *testing.T) {
			client := web.Client{Name: s}
			consent := webtest.Consent()
			consent.Client, consent.Server = client, s
			consent.Required[0].Title, consent.Required[0].Detail = s, s
			consent.Groups[0].Permissions[0].Title, consent.Groups[0].Permissions[0].Scope = "", s
			consent.ClientID, consent.RedirectURI, consent.Scopes = s, s, s
			consent.Warnings, consent.Doubtful = []web.Warning{web.WarningDifferentSite, web.WarningAddress}, s
			consent.GoesTo = web.Host{Before: s}
			more := web.StepUp{Consent: consent, Count: 2, Allowed: []web.Permission{{Scope: s}, {Title: s, Detail: s}}, NewScopes: s}
			for _, p := range []web.Page{consent, more,
				web.SignIn{Client: &client, Server: s, Email: s, Txn: "x"},
				web.Return{Client: client, Host: s, Spent: true},
				web.Account{Frame: web.Frame{Account: s, SignOut: "x"}, Apps: []web.ConnectedApp{{Key: "k", Client: client, Server: s, From: &web.Host{Before: s}, Goes: web.DestinationApp, Host: web.Host{Bold: s},
					AsksTxn: "x", AsksFor: []web.Permission{{Scope: s}, {Title: s}}}},
					Sessions: []web.Session{{Browser: s, IP: s}}},
				web.Error{Case: web.CaseRedirectURI, Client: &client, Code: s, Received: s, ClientID: s, From: &web.Host{Before: s}},
				web.Error{Case: web.CaseDocumentUnread, Host: s},
			} {
				body := write(t, rd, 200, p).Body.String()
				if strings.Contains(body, "<script") || strings.Contains(body, "<img") || strings.Contains(body, `" onfocus="`) ||
					strings.Count(body, "</main>") != 1 || strings.Contains(body, "<b><b>") {
					t.Errorf("%T: markup came through", p)
				}
				heading, _, _ := strings.Cut(body[strings.Index(body, "<h1>"):], "</h1>")
				for _, r := range heading {
					if unicode.In(r, unicode.Cc, unicode.Cf) {
						t.Errorf("%T: heading holds %U", p, r)
					}
				}
				if _, quoted, ok := strings.Cut(body, "<bdi>“"); ok {
					quoted, _, _ = strings.Cut(quoted, "”</bdi>")
					if n := len([]rune(html.UnescapeString(quoted))); n > 60 {
						t.Errorf("%T: name shown with %d characters, want at most 60", p, n)
					}
				}
			}
		})
	}
}

func TestAR19HostileLoginHintIsEscaped(t *testing.T) {
	t.Parallel()
	body := write(t, newRenderer(t), 200, web.SignIn{Txn: "x", Email: `"><script>alert(1)</script>`}).Body.String()
	if strings.Contains(body, "<script") || !strings.Contains(body, `value="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"`) {
		t.Errorf("AR-19: login_hint is not escaped: %s", body)
	}
}

func TestReturnLink(t *testing.T) {
	t.Parallel()
	rd := newRenderer(t)
	for _, tt := range []struct {
		url  string
		want bool
	}{
		{"https://app.example/cb?code=a&state=b", true},
		{"http://[::1]:9002/cb?code=a", true},
		{"cursor://anysphere.cursor-mcp/oauth/callback?code=a", true},
		{"com.example.app:/cb?code=a", true},
		{"javascript:alert(1)", false},
		{"JavaScript:alert(1)", false},
		{"data:text/html,x", false},
		{"vbscript:x", false},
		{"view-source:https://x", false},
		{"blob:https://x", false},
		{"/relative", false},
		{"//evil.example/", false},
		{`https://a.example/"onclick="x`, false},
		{"https://a.example/ x", false},
		{"https://a.example/\n", false},
		{"", false},
	} {
		w := httptest.NewRecorder()
		err := rd.Write(w, httptest.NewRequest("GET", "/", nil), 200, web.Return{Goes: web.DestinationWebsite, URL: tt.url})
		if (err == nil) != tt.want {
			t.Errorf("return to %q: error %v, want allowed %v", tt.url, err, tt.want)
		}
		if err != nil && (w.Body.Len() != 0 || len(w.Header()) != 0) {
			t.Errorf("return to %q: something was written before the error", tt.url)
		}
		if err == nil && !strings.Contains(w.Body.String(), `href="`+strings.ReplaceAll(tt.url, "&", "&amp;")+`"`) {
			t.Errorf("return to %q is not linked as it is:\n%s", tt.url, w.Body)
		}
	}
}

func FuzzClientName(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	rd, err := web.New(webtest.Options())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string) {
		body := write(t, rd, 200, web.Disconnect{Client: web.Client{Name: name}, Key: "k", Server: name, AccessMinutes: 10}).Body.String()
		if strings.Count(body, "<") != strings.Count(write(t, rd, 200, web.Disconnect{Client: web.Client{Name: "x"}, Key: "k", Server: "x", AccessMinutes: 10}).Body.String(), "<") {
			t.Errorf("name %q changes the page's elements", name)
		}
	})
}
