// Package webtest holds one sample of every page in every state, for tests: the
// golden files of package web and the screenshots of test/e2e are made of them.
package webtest

import (
	"time"

	"github.com/ostiary-auth/ostiary/web"
)

// State is one page as people may meet it.
type State struct {
	// Name is the golden file's.
	Name   string
	Status int
	Page   web.Page
}

// Now is the time at which every sample is shown.
func Now() time.Time {
	return time.Date(2026, time.November, 21, 10, 42, 7, 0, time.UTC)
}

// Options are those of the operator whose pages the samples are.
func Options() web.Options {
	return web.Options{Operator: "Fernhill", Issuer: "https://id.fernhill.example", HelpURL: "https://help.fernhill.example/",
		PrivacyURL: "https://fernhill.example/privacy", HelpContact: "help@fernhill.example", Now: Now}
}

// documentID is the client_id of an app that has a metadata document.
const documentID = "https://quill.example/oauth/client.json"

func client() web.Client { return web.Client{Name: "Quill Desktop", Tag: web.TagNotVerified} }

// Consent is the page of an app that registered itself and waits on this computer.
func Consent() web.Consent {
	now := Now()
	return web.Consent{
		Frame: web.Frame{Account: "mina.okafor@fernhill.example"}, RequestID: "req-1", Txn: "opaque",
		Client: client(), FirstSeen: now, FirstSeenToday: true, SelfRegistered: true,
		Goes: web.DestinationLoopback, GoesTo: web.NewHost("http://127.0.0.1:53682/callback"),
		Server: "Team Calendar", ServerHost: web.NewHost("https://calendar.mcp.fernhill.example/mcp"), RunBy: true,
		Warnings: []web.Warning{web.WarningLoopback},
		Required: []web.Permission{{Scope: "calendar:read", Title: "See your calendars and events", Detail: "Titles, times, guests and notes"}},
		Groups: []web.PermissionGroup{{Permissions: []web.Permission{
			{Scope: "calendar:write", Title: "Create and change events", Detail: "Can send invitations in your name", Checked: true},
			{Scope: "calendar:delete", Title: "Delete events", Permanent: true, OffAtFirst: true},
		}}},
		StayConnected: true, StayChecked: true,
		ClientID: "c_8Jt2mQv4", RedirectURI: "http://127.0.0.1:53682/callback",
		Resource: "https://calendar.mcp.fernhill.example/mcp", Scopes: "calendar:read calendar:write calendar:delete offline_access",
		AuthMethod: "none", Reference: "7Q4M-2KXD", SwitchURL: "/sign-in?request=req-1&switch=1",
	}
}

// Document is the page of an app known by its metadata document, which waits on
// this computer (pages.md 4.2).
func Document() web.Consent {
	return with(Consent(), func(p *web.Consent) {
		from := web.NewHost(documentID)
		p.From, p.SelfRegistered, p.ClientID = &from, false, documentID
	})
}

// website is Document for an app on the web.
func website(p *web.Consent) {
	p.FromProven, p.Goes, p.GoesTo, p.RedirectURI = true, web.DestinationWebsite, web.NewHost("https://quill.example/cb"), "https://quill.example/cb"
	p.Warnings = []web.Warning{web.WarningOtherSite}
}

// more is the page of a verified app on the web that asks for one more permission.
func more() web.StepUp {
	atlas, to := web.NewHost("https://app.atlas.example/.well-known/mcp-client.json"), web.NewHost("https://app.atlas.example/oauth/callback")
	return web.StepUp{
		Consent: with(Consent(), func(p *web.Consent) {
			p.Client, p.From, p.FromProven, p.SelfRegistered = web.Client{Name: "Atlas Assistant", Tag: web.TagVerified}, &atlas, true, false
			p.FirstSeen, p.FirstSeenToday, p.Others = Now().AddDate(0, -1, 0), false, 12
			p.Goes, p.GoesTo, p.Warnings = web.DestinationWebsite, to, nil
			p.Required = []web.Permission{{Scope: "calendar:write", Title: "Create and change events", Detail: "Can send invitations in your name"}}
			p.Groups, p.StayConnected, p.StayChecked = nil, false, false
			p.ClientID, p.RedirectURI = "https://app.atlas.example/.well-known/mcp-client.json", "https://app.atlas.example/oauth/callback"
			p.Scopes = "calendar:read calendar:write"
		}),
		Count: 1, NewScopes: "calendar:write", AllowedStay: true, AllowedSince: Now().AddDate(0, 0, -18),
		Allowed: []web.Permission{{Scope: "calendar:read", Title: "See your calendars and events"}},
	}
}

// several makes more ask for several permissions, each with a checkbox.
func several(p *web.StepUp) {
	p.Required, p.Groups = nil, []web.PermissionGroup{{Permissions: []web.Permission{
		{Scope: "calendar:write", Title: "Create and change events", Detail: "Can send invitations in your name", Checked: true},
		{Scope: "calendar:delete", Title: "Delete events", Permanent: true, Checked: true},
		{Scope: "calendar:odd", Checked: true},
	}}}
	p.StayNew, p.StayConnected, p.StayChecked, p.AllowedStay = true, true, true, false
	p.Count, p.NewScopes = 4, "calendar:write calendar:delete calendar:odd"
}

func account() web.Account {
	now, quill, borealis := Now(), web.NewHost(documentID), web.NewHost("https://borealis.example/client.json")
	perms := []web.Permission{{Scope: "calendar:read", Title: "See your calendars and events"}, {Scope: "calendar:odd"}}
	return web.Account{
		Frame: web.Frame{Account: "mina.okafor@fernhill.example", SignOut: "opaque"}, Now: now, Txn: "opaque", AccessMinutes: 10,
		Apps: []web.ConnectedApp{
			{Key: "a1", Client: web.Client{Name: "Atlas Assistant", Tag: web.TagVerified}, Goes: web.DestinationWebsite,
				Host: web.NewHost("https://app.atlas.example/cb"), Server: "Team Calendar", Permissions: perms,
				ConnectedAt: now.AddDate(0, 0, -18), LastUsedAt: now.Add(-2 * time.Hour), EndsAt: now.AddDate(0, 0, 30), Installations: 2},
			{Key: "a2", Client: client(), Goes: web.DestinationLoopback, Host: web.NewHost("http://127.0.0.1:1/"), Server: "Team Calendar",
				Permissions: perms[:1], ConnectedAt: now.Add(-time.Minute), Installations: 1},
			{Key: "a4", Client: client(), From: &quill, Goes: web.DestinationLoopback, Host: web.NewHost("http://127.0.0.1:53682/"), Server: "Team Calendar",
				Permissions: perms[:1], ConnectedAt: now.AddDate(0, 0, -3), LastUsedAt: now.Add(-time.Hour), EndsAt: now.AddDate(0, 0, 29), Installations: 1},
			{Key: "a5", Client: web.Client{Name: "Borealis", Tag: web.TagNotVerified}, From: &borealis, Goes: web.DestinationWebsite,
				Host: web.NewHost("https://login.aurora.example/cb"), Server: "Team Calendar", ConnectedAt: now.AddDate(0, 0, -2), Installations: 1},
			{Key: "a3", Client: web.Client{Name: "build-helper", Tag: web.TagRegisteredSelf}, Goes: web.DestinationApp, Host: web.Host{Bold: "cursor:"},
				Server: "Build Farm", ConnectedAt: now.AddDate(-1, 0, 0), LastUsedAt: now.AddDate(0, 0, -61), EndsAt: now.Add(30 * time.Hour), Installations: 1},
		},
		Sessions: []web.Session{
			{Key: "s1", Browser: "Firefox on Linux", IP: "192.0.2.24", SignedInAt: now.Add(-time.Minute), LastSeenAt: now, Current: true},
			{Key: "s2", Browser: "Safari on iPhone", IP: "198.51.100.7", SignedInAt: now.AddDate(0, 0, -12), LastSeenAt: now.AddDate(0, 0, -3)},
		},
	}
}

// with returns v changed by f, so that a state names only what it differs in.
func with[T any](v T, f func(*T)) T {
	f(&v)
	return v
}

// States returns every page in every state.
func States() []State {
	now, client := Now(), client()
	signIn := web.SignIn{RequestID: "req-1", Txn: "opaque", Client: &client, Server: "Team Calendar"}
	ret := web.Return{Frame: web.Frame{Account: "mina.okafor@fernhill.example"}, Client: client, Allowed: true, Goes: web.DestinationLoopback,
		Host: "127.0.0.1", URL: "http://127.0.0.1:53682/callback?code=abc&iss=http%3A%2F%2Flocalhost", Automatic: true}
	plain, quill := web.NewHost("https://collect.quill-login.example/cb"), web.NewHost(documentID)
	all := []State{
		{"sign-in", 200, signIn},
		{"sign-in-account", 200, web.SignIn{Txn: "opaque"}},
		{"sign-in-credentials", 422, with(signIn, func(p *web.SignIn) { p.Problem, p.Email = web.ProblemCredentials, "mina.okafor@fernhill.example" })},
		{"sign-in-missing-email", 422, with(signIn, func(p *web.SignIn) { p.Problem = web.ProblemMissing })},
		{"sign-in-missing-password", 422, with(signIn, func(p *web.SignIn) { p.Problem, p.Email = web.ProblemMissing, "mina.okafor@fernhill.example" })},
		{"sign-in-too-many", 429, with(signIn, func(p *web.SignIn) { p.Problem, p.WaitMinutes = web.ProblemTooMany, 5 })},
		{"sign-in-disabled", 422, with(signIn, func(p *web.SignIn) { p.Problem = web.ProblemDisabled })},
		{"sign-in-confirm", 200, with(signIn, func(p *web.SignIn) { p.Confirm, p.Email = true, "mina.okafor@fernhill.example" })},
		{"consent", 200, Consent()},
		{"consent-too-quick", 200, with(Consent(), func(p *web.Consent) { p.TooQuick = true })},
		{"consent-website", 200, with(Consent(), func(p *web.Consent) {
			p.Goes, p.GoesTo, p.Warnings = web.DestinationWebsite, web.NewHost("https://app.atlas.example/cb"), []web.Warning{web.WarningOtherSite}
			p.RedirectURI, p.Others, p.FirstSeenToday, p.FirstSeen = "https://app.atlas.example/cb", 1, false, now.AddDate(-1, -2, 0)
		})},
		{"consent-scheme", 200, with(Consent(), func(p *web.Consent) {
			p.Goes, p.GoesTo, p.Scheme, p.RedirectURI = web.DestinationApp, web.Host{}, "cursor", "cursor://anysphere.cursor-mcp/oauth/callback"
			p.SelfRegistered, p.Others = false, 7
		})},
		{"consent-verified", 200, with(Consent(), func(p *web.Consent) {
			p.Client.Tag, p.Goes, p.GoesTo, p.Warnings = web.TagVerified, web.DestinationWebsite, web.NewHost("https://app.atlas.example/cb"), nil
			p.RedirectURI, p.SelfRegistered, p.FirstSeenToday, p.FirstSeen, p.Others = "https://app.atlas.example/cb", false, false, now.AddDate(0, -1, 0), 12
			p.Groups[0].Permissions[0].Before = true
			p.Groups[0].Permissions[1].Checked, p.Groups[0].Permissions[1].OffAtFirst = true, false
		})},
		{"consent-basic", 200, with(Consent(), func(p *web.Consent) {
			p.Required, p.Groups, p.StayConnected, p.Basic, p.Scopes = nil, nil, false, true, ""
		})},
		{"consent-groups", 200, with(Consent(), func(p *web.Consent) {
			p.Groups[0].Name = "Calendars"
			p.Groups = append(p.Groups, web.PermissionGroup{Name: "Rooms", Permissions: []web.Permission{{Scope: "rooms:book", Checked: true}, {Scope: "rooms:drop", OffAtFirst: true}}})
		})},
		{"consent-document", 200, Document()},
		{"consent-document-app", 200, with(Document(), func(p *web.Consent) {
			p.Goes, p.Scheme, p.RedirectURI, p.Others = web.DestinationApp, "com.example.quill", "com.example.quill:/cb", 7
		})},
		{"consent-document-website", 200, with(with(Document(), website), func(p *web.Consent) { p.FirstSeen, p.FirstSeenToday, p.Others = now.AddDate(0, -2, 0), false, 3 })},
		{"consent-document-known", 200, with(with(Document(), website), func(p *web.Consent) { p.Warnings, p.Others = nil, 12 })},
		{"consent-document-different-site", 200, with(with(Document(), website), func(p *web.Consent) {
			p.GoesTo, p.RedirectURI = web.NewHost("https://login.borealis.example/cb"), "https://login.borealis.example/cb"
			p.Warnings = []web.Warning{web.WarningDifferentSite}
		})},
		{"consent-document-changed", 200, with(Document(), func(p *web.Consent) {
			p.Warnings, p.ChangedSince = []web.Warning{web.WarningLoopback, web.WarningChanged}, now.AddDate(0, 0, -18)
			p.FirstSeen, p.FirstSeenToday = now.AddDate(0, -1, 0), false
		})},
		{"consent-document-changed-meanwhile", 200, with(Document(), func(p *web.Consent) { p.ChangedMeanwhile = true })},
		{"consent-document-changed-known", 200, with(with(Document(), website), func(p *web.Consent) {
			p.Warnings, p.ChangedSince = []web.Warning{web.WarningChanged}, now.Add(-time.Hour)
		})},
		{"consent-document-lookalike", 200, with(Document(), func(p *web.Consent) {
			from := web.NewHost("https://xn--fernhll-vog.example/client.json")
			p.From, p.ClientID, p.Doubtful = &from, "https://xn--fernhll-vog.example/client.json", "xn--fernhll-vog.example"
			p.Warnings = []web.Warning{web.WarningLoopback, web.WarningAddress, web.WarningName}
		})},
		{"consent-document-everything", 200, with(with(Document(), website), func(p *web.Consent) {
			from := web.NewHost("https://claude.ai.evil.example/client.json")
			p.From, p.ClientID, p.Doubtful, p.Client.Name = &from, "https://claude.ai.evil.example/client.json", "claude.ai.evil.example", "Claude Code"
			p.GoesTo, p.RedirectURI = web.NewHost("https://login.xn--80ak6aa92e.example:8443/cb"), "https://login.xn--80ak6aa92e.example:8443/cb"
			p.Warnings = []web.Warning{web.WarningDifferentSite, web.WarningChanged, web.WarningAddress, web.WarningName}
			p.ChangedSince = now.AddDate(0, 0, -2)
		})},
		{"consent-document-verified", 200, with(with(Document(), website), func(p *web.Consent) {
			p.Client.Tag, p.Warnings, p.FirstSeen, p.FirstSeenToday, p.Others = web.TagVerified, nil, now.AddDate(0, -1, 0), false, 41
			p.Groups[0].Permissions[1].Checked, p.Groups[0].Permissions[1].OffAtFirst = true, false
		})},
		{"consent-document-wider", 200, with(with(Document(), website), func(p *web.Consent) {
			p.Required[0].Before, p.Groups[0].Permissions[0].Before, p.FirstSeen, p.FirstSeenToday = true, true, now.AddDate(0, -2, 0), false
		})},
		{"consent-document-unnamed", 200, with(Document(), func(p *web.Consent) { p.Client.Name, p.Client.Unnamed = p.ClientID, true })},
		{"step-up", 200, more()},
		{"step-up-several", 200, with(more(), several)},
		{"step-up-required", 200, with(with(more(), several), func(p *web.StepUp) {
			p.Required, p.Count = []web.Permission{{Scope: "calendar:share", Title: "See who shares a calendar"}}, 5
		})},
		{"step-up-stay", 200, with(more(), func(p *web.StepUp) { p.Required, p.StayNew, p.AllowedStay, p.NewScopes = nil, true, false, "" })},
		{"step-up-basic", 200, with(more(), func(p *web.StepUp) { p.Allowed, p.AllowedStay = nil, false })},
		{"step-up-too-quick", 200, with(more(), func(p *web.StepUp) { p.TooQuick = true })},
		{"step-up-anew", 200, with(with(more(), several), func(p *web.StepUp) { p.AskedAnew = true })},
		{"step-up-loopback", 200, with(more(), func(p *web.StepUp) {
			p.From, p.FromProven, p.Warnings = nil, false, []web.Warning{web.WarningLoopback}
			p.Goes, p.GoesTo, p.RedirectURI = web.DestinationLoopback, web.NewHost("http://127.0.0.1:53682/callback"), "http://127.0.0.1:53682/callback"
		})},
		{"step-up-document", 200, with(more(), func(p *web.StepUp) {
			p.Client.Tag, p.Required[0].Permanent = web.TagNotVerified, true
		})},
		{"consent-anew", 200, with(Consent(), func(p *web.Consent) { p.AskedAnew = true })},
		{"return-loopback", 200, ret},
		{"return-website", 200, with(ret, func(p *web.Return) {
			p.Goes, p.Host, p.URL = web.DestinationWebsite, "app.atlas.example", "https://app.atlas.example/cb?code=abc"
		})},
		{"return-app", 200, with(ret, func(p *web.Return) {
			p.Goes, p.Host, p.URL = web.DestinationApp, "", "cursor://anysphere.cursor-mcp/oauth/callback?code=abc"
		})},
		{"return-again", 200, with(ret, func(p *web.Return) { p.Automatic = false })},
		{"return-spent", 410, with(ret, func(p *web.Return) { p.Spent, p.Automatic, p.URL = true, false, "" })},
		{"return-denied", 200, with(ret, func(p *web.Return) { p.Allowed, p.Automatic = false, false })},
		{"return-denied-automatic", 200, with(ret, func(p *web.Return) { p.Allowed = false })},
		{"account", 200, account()},
		{"account-asks-again", 200, with(account(), func(p *web.Account) {
			p.Apps = p.Apps[:2]
			p.Apps[0].AsksTxn, p.Apps[0].AsksStay, p.Apps[0].AsksFor = "opaque", true, []web.Permission{
				{Scope: "calendar:write", Title: "Create and change events"}, {Scope: "calendar:other"}}
		})},
		{"account-empty", 200, with(account(), func(p *web.Account) { p.Apps, p.Sessions = nil, p.Sessions[:1] })},
		{"account-banners", 200, with(account(), func(p *web.Account) {
			p.Disconnected, p.SessionsEnded, p.Apps = &web.Client{Name: "Draft Bot"}, true, p.Apps[:1]
			p.Reuse = []web.ReuseNotice{{Client: client, Server: "Team Calendar", At: now.AddDate(0, 0, -2)}}
		})},
		{"disconnect", 200, web.Disconnect{Frame: account().Frame, Key: "a2", Txn: "opaque", Client: client, Server: "Team Calendar", AccessMinutes: 10}},
		{"end-sessions", 200, web.EndSessions{Frame: account().Frame, Txn: "opaque", Others: 2}},
		{"signed-out", 200, web.SignedOut{}},
		{"signed-out-ask", 200, web.SignedOut{Frame: account().Frame, Ask: true, Txn: "opaque"}},
		{"setup-start", 200, web.SetupStart{Txn: "opaque", Link: "link"}},
		{"setup-account", 200, web.SetupAccount{Txn: "opaque", Link: "link"}},
		{"setup-account-problems", 422, web.SetupAccount{Txn: "opaque", Link: "link", Email: "mina", Name: "Mina", PlainHTTP: true,
			Problems: []web.FieldProblem{{Field: "username", Message: web.ProblemEmail}, {Field: "name", Message: "problem.unheard_of"}, {Field: "password", Message: web.ProblemPasswordShort}}}},
		{"setup-server", 200, web.SetupServer{Frame: account().Frame, Txn: "opaque"}},
		{"setup-server-problems", 422, web.SetupServer{Frame: account().Frame, Txn: "opaque", URL: "mcp", Name: "x",
			Problems: []web.FieldProblem{{Field: "url", Message: web.ProblemURL}, {Field: "name", Message: web.ProblemName}}}},
		{"setup-done", 200, web.SetupDone{Frame: account().Frame, Issuer: "https://id.fernhill.example", Resource: "https://calendar.mcp.fernhill.example/mcp",
			WellKnown: []string{"https://id.fernhill.example/.well-known/oauth-authorization-server", "https://id.fernhill.example/.well-known/openid-configuration"}}},
		{"setup-done-skipped", 200, web.SetupDone{Issuer: "https://id.fernhill.example",
			WellKnown: []string{"https://id.fernhill.example/.well-known/oauth-authorization-server"}}},
		{"error-redirect_uri-facts", 400, web.Error{Case: web.CaseRedirectURI, Client: &client, AskedFor: &plain, Registered: []web.Host{web.NewHost("http://127.0.0.1/cb")},
			From: &quill, Reference: "7Q4M-2KXD", Code: "invalid_request: redirect_uri does not match a registered value", ClientID: documentID,
			Received: "https://collect.quill-login.example/cb", At: now}},
		{"error-client_error-return", 400, web.Error{Case: web.CaseClientError, Client: &client, Reference: "7Q4M-2KXD", Code: "unsupported_response_type",
			ReturnURL: "http://127.0.0.1:53682/callback?error=unsupported_response_type", ReturnHost: "127.0.0.1"}},
		{"error-too_many-wait", 429, web.Error{Case: web.CaseTooMany, WaitSeconds: 30, Reference: "7Q4M-2KXD"}},
	}
	for _, c := range ErrorCases() {
		all = append(all, State{"error-" + string(c), 400, stop(c)})
	}
	return all
}

// stop is an error page as people meet it.
func stop(c web.ErrorCase) web.Error {
	page := web.Error{Case: c, Reference: "7Q4M-2KXD", At: Now()}
	switch c {
	case web.CaseClientDenied, web.CaseClientWaiting:
		page.Host, page.ClientID = "quill.example", documentID
	case web.CaseDocumentUnread:
		page.Host, page.ClientID, page.WaitSeconds = "quill.example", documentID, 60
	case web.CaseDocumentInvalid:
		page.Host, page.ClientID, page.Code = "quill.example", documentID, "invalid_client: client_id must be the URL of the document"
	}
	return page
}

// ErrorCases returns every stop.
func ErrorCases() []web.ErrorCase {
	return []web.ErrorCase{web.CaseRedirectURI, web.CaseClientUnknown, web.CaseClientURL, web.CaseClientDisabled, web.CaseRequest, web.CaseResource,
		web.CaseScope, web.CaseClientError, web.CaseExpired, web.CaseAnswered, web.CaseNoCookie, web.CaseForm, web.CaseSetupLink, web.CaseNotFound, web.CaseMethod,
		web.CaseMisdirected, web.CaseTooMany, web.CaseTooLarge, web.CaseUnavailable, web.CaseServer, web.CaseForbidden,
		web.CaseClientDenied, web.CaseClientWaiting, web.CaseDocumentUnread, web.CaseDocumentInvalid}
}
