package web

import "time"

// state is one page as people may meet it.
type state struct {
	name   string
	status int
	page   Page
}

var testNow = time.Date(2026, time.November, 21, 10, 42, 7, 0, time.UTC)

func testClient() Client { return Client{Name: "Quill Desktop", Tag: TagNotVerified} }

func testConsent() Consent {
	return Consent{
		Frame: Frame{Account: "mina.okafor@fernhill.example"}, RequestID: "req-1", Txn: "opaque",
		Client: testClient(), FirstSeen: testNow, FirstSeenToday: true, SelfRegistered: true,
		Goes: DestinationLoopback, GoesTo: NewHost("http://127.0.0.1:53682/callback"),
		Server: "Team Calendar", ServerHost: NewHost("https://calendar.mcp.fernhill.example/mcp"), RunBy: true,
		Warning:  WarningLoopback,
		Required: []Permission{{Scope: "calendar:read", Title: "See your calendars and events", Detail: "Titles, times, guests and notes"}},
		Groups: []PermissionGroup{{Permissions: []Permission{
			{Scope: "calendar:write", Title: "Create and change events", Detail: "Can send invitations in your name", Checked: true},
			{Scope: "calendar:delete", Title: "Delete events", Permanent: true, OffAtFirst: true},
		}}},
		StayConnected: true, StayChecked: true,
		ClientID: "c_8Jt2mQv4", RedirectURI: "http://127.0.0.1:53682/callback",
		Resource: "https://calendar.mcp.fernhill.example/mcp", Scopes: "calendar:read calendar:write calendar:delete offline_access",
		AuthMethod: "none", Reference: "7Q4M-2KXD", SwitchURL: "/sign-in?request=req-1&switch=1",
	}
}

func testAccount() Account {
	perms := []Permission{{Scope: "calendar:read", Title: "See your calendars and events"}, {Scope: "calendar:odd"}}
	return Account{
		Frame: Frame{Account: "mina.okafor@fernhill.example", SignOut: "opaque"}, Now: testNow, Txn: "opaque", AccessMinutes: 10,
		Apps: []ConnectedApp{
			{Key: "a1", Client: Client{Name: "Atlas Assistant", Tag: TagVerified}, Goes: DestinationWebsite,
				Host: NewHost("https://app.atlas.example/cb"), Server: "Team Calendar", Permissions: perms,
				ConnectedAt: testNow.AddDate(0, 0, -18), LastUsedAt: testNow.Add(-2 * time.Hour), EndsAt: testNow.AddDate(0, 0, 30), Installations: 2},
			{Key: "a2", Client: testClient(), Goes: DestinationLoopback, Host: NewHost("http://127.0.0.1:1/"), Server: "Team Calendar",
				Permissions: perms[:1], ConnectedAt: testNow.Add(-time.Minute), Installations: 1},
			{Key: "a3", Client: Client{Name: "build-helper", Tag: TagRegisteredSelf}, Goes: DestinationApp, Host: Host{Bold: "cursor:"},
				Server: "Build Farm", ConnectedAt: testNow.AddDate(-1, 0, 0), LastUsedAt: testNow.AddDate(0, 0, -61), EndsAt: testNow.Add(30 * time.Hour), Installations: 1},
		},
		Sessions: []Session{
			{Key: "s1", Browser: "Firefox on Linux", IP: "192.0.2.24", SignedInAt: testNow.Add(-time.Minute), LastSeenAt: testNow, Current: true},
			{Key: "s2", Browser: "Safari on iPhone", IP: "198.51.100.7", SignedInAt: testNow.AddDate(0, 0, -12), LastSeenAt: testNow.AddDate(0, 0, -3)},
		},
	}
}

// with returns v changed by f, so that a state names only what it differs in.
func with[T any](v T, f func(*T)) T {
	f(&v)
	return v
}

// states are every page and state, the source of the golden files.
func states() []state {
	client := testClient()
	signIn := SignIn{RequestID: "req-1", Txn: "opaque", Client: &client, Server: "Team Calendar"}
	ret := Return{Frame: Frame{Account: "mina.okafor@fernhill.example"}, Client: client, Allowed: true, Goes: DestinationLoopback,
		Host: "127.0.0.1", URL: "http://127.0.0.1:53682/callback?code=abc&iss=http%3A%2F%2Flocalhost", Automatic: true}
	plain := NewHost("https://collect.quill-login.example/cb")
	all := []state{
		{"sign-in", 200, signIn},
		{"sign-in-account", 200, SignIn{Txn: "opaque"}},
		{"sign-in-credentials", 422, with(signIn, func(p *SignIn) { p.Problem, p.Email = ProblemCredentials, "mina.okafor@fernhill.example" })},
		{"sign-in-missing-email", 422, with(signIn, func(p *SignIn) { p.Problem = ProblemMissing })},
		{"sign-in-missing-password", 422, with(signIn, func(p *SignIn) { p.Problem, p.Email = ProblemMissing, "mina.okafor@fernhill.example" })},
		{"sign-in-too-many", 429, with(signIn, func(p *SignIn) { p.Problem, p.WaitMinutes = ProblemTooMany, 5 })},
		{"sign-in-disabled", 422, with(signIn, func(p *SignIn) { p.Problem = ProblemDisabled })},
		{"sign-in-confirm", 200, with(signIn, func(p *SignIn) { p.Confirm, p.Email = true, "mina.okafor@fernhill.example" })},
		{"consent", 200, testConsent()},
		{"consent-too-quick", 422, with(testConsent(), func(p *Consent) { p.TooQuick = true })},
		{"consent-website", 200, with(testConsent(), func(p *Consent) {
			p.Goes, p.GoesTo, p.Warning = DestinationWebsite, NewHost("https://app.atlas.example/cb"), WarningOtherSite
			p.RedirectURI, p.Others, p.FirstSeenToday, p.FirstSeen = "https://app.atlas.example/cb", 1, false, testNow.AddDate(-1, -2, 0)
		})},
		{"consent-scheme", 200, with(testConsent(), func(p *Consent) {
			p.Goes, p.GoesTo, p.Scheme, p.RedirectURI = DestinationApp, Host{}, "cursor", "cursor://anysphere.cursor-mcp/oauth/callback"
			p.SelfRegistered, p.Others = false, 7
		})},
		{"consent-verified", 200, with(testConsent(), func(p *Consent) {
			p.Client.Tag, p.Goes, p.GoesTo, p.Warning = TagVerified, DestinationWebsite, NewHost("https://app.atlas.example/cb"), ""
			p.RedirectURI, p.SelfRegistered, p.FirstSeenToday, p.FirstSeen, p.Others = "https://app.atlas.example/cb", false, false, testNow.AddDate(0, -1, 0), 12
			p.Groups[0].Permissions[0].Before = true
		})},
		{"consent-basic", 200, with(testConsent(), func(p *Consent) {
			p.Required, p.Groups, p.StayConnected, p.Basic, p.Scopes = nil, nil, false, true, ""
		})},
		{"consent-groups", 200, with(testConsent(), func(p *Consent) {
			p.Groups[0].Name = "Calendars"
			p.Groups = append(p.Groups, PermissionGroup{Name: "Rooms", Permissions: []Permission{{Scope: "rooms:book", Checked: true}, {Scope: "rooms:drop", OffAtFirst: true}}})
		})},
		{"return-loopback", 200, ret},
		{"return-website", 200, with(ret, func(p *Return) {
			p.Goes, p.Host, p.URL = DestinationWebsite, "app.atlas.example", "https://app.atlas.example/cb?code=abc"
		})},
		{"return-app", 200, with(ret, func(p *Return) {
			p.Goes, p.Host, p.URL = DestinationApp, "", "cursor://anysphere.cursor-mcp/oauth/callback?code=abc"
		})},
		{"return-again", 200, with(ret, func(p *Return) { p.Automatic = false })},
		{"return-spent", 410, with(ret, func(p *Return) { p.Spent, p.Automatic, p.URL = true, false, "" })},
		{"return-denied", 200, with(ret, func(p *Return) { p.Allowed, p.Automatic = false, false })},
		{"return-denied-automatic", 200, with(ret, func(p *Return) { p.Allowed = false })},
		{"account", 200, testAccount()},
		{"account-empty", 200, with(testAccount(), func(p *Account) { p.Apps, p.Sessions = nil, p.Sessions[:1] })},
		{"account-banners", 200, with(testAccount(), func(p *Account) {
			p.Disconnected, p.SessionsEnded, p.Apps = &Client{Name: "Draft Bot"}, true, p.Apps[:1]
			p.Reuse = []ReuseNotice{{Client: client, At: testNow.AddDate(0, 0, -2)}}
		})},
		{"disconnect", 200, Disconnect{Frame: testAccount().Frame, Key: "a2", Txn: "opaque", Client: client, Server: "Team Calendar", AccessMinutes: 10}},
		{"end-sessions", 200, EndSessions{Frame: testAccount().Frame, Txn: "opaque", Others: 2}},
		{"signed-out", 200, SignedOut{}},
		{"signed-out-ask", 200, SignedOut{Frame: testAccount().Frame, Ask: true, Txn: "opaque"}},
		{"setup-start", 200, SetupStart{Txn: "opaque", Link: "link"}},
		{"setup-account", 200, SetupAccount{Txn: "opaque", Link: "link"}},
		{"setup-account-problems", 422, SetupAccount{Txn: "opaque", Link: "link", Email: "mina", Name: "Mina", PlainHTTP: true,
			Problems: []FieldProblem{{"username", ProblemEmail}, {"name", "problem.unheard_of"}, {"password", ProblemPasswordShort}}}},
		{"setup-server", 200, SetupServer{Frame: testAccount().Frame, Txn: "opaque"}},
		{"setup-server-problems", 422, SetupServer{Frame: testAccount().Frame, Txn: "opaque", URL: "mcp", Name: "x",
			Problems: []FieldProblem{{"url", ProblemURL}, {"name", ProblemName}}}},
		{"setup-done", 200, SetupDone{Frame: testAccount().Frame, Issuer: "https://id.fernhill.example", Resource: "https://calendar.mcp.fernhill.example/mcp",
			WellKnown: []string{"https://id.fernhill.example/.well-known/oauth-authorization-server", "https://id.fernhill.example/.well-known/openid-configuration"}}},
		{"setup-done-skipped", 200, SetupDone{Issuer: "https://id.fernhill.example",
			WellKnown: []string{"https://id.fernhill.example/.well-known/oauth-authorization-server"}}},
		{"error-redirect_uri-facts", 400, Error{Case: CaseRedirectURI, Client: &client, AskedFor: &plain, Registered: []Host{NewHost("http://127.0.0.1/cb")},
			Reference: "7Q4M-2KXD", Code: "invalid_request: redirect_uri does not match a registered value", ClientID: "c_8Jt2mQv4",
			Received: "https://collect.quill-login.example/cb", At: testNow}},
		{"error-client_error-return", 400, Error{Case: CaseClientError, Client: &client, Reference: "7Q4M-2KXD", Code: "unsupported_response_type",
			ReturnURL: "http://127.0.0.1:53682/callback?error=unsupported_response_type", ReturnHost: "127.0.0.1"}},
		{"error-too_many-wait", 429, Error{Case: CaseTooMany, WaitSeconds: 30, Reference: "7Q4M-2KXD"}},
	}
	for _, c := range errorCases() {
		all = append(all, state{"error-" + string(c), 400, Error{Case: c, Reference: "7Q4M-2KXD", At: testNow}})
	}
	return all
}

func errorCases() []ErrorCase {
	return []ErrorCase{CaseRedirectURI, CaseClientUnknown, CaseClientURL, CaseClientDisabled, CaseRequest, CaseResource,
		CaseScope, CaseClientError, CaseExpired, CaseAnswered, CaseNoCookie, CaseForm, CaseSetupLink, CaseNotFound, CaseMethod,
		CaseMisdirected, CaseTooMany, CaseTooLarge, CaseUnavailable, CaseServer, CaseForbidden}
}
