package web

import "time"

// Page is one page with everything its template shows; the template has the
// page's name. Pages hold values, never HTML: templates escape.
type Page interface{ template() string }

// Frame is what every page shares; each page struct embeds it. The zero Frame
// is a page for nobody in particular.
type Frame struct {
	// Account is the signed-in person's e-mail address, "" for none.
	Account string
	// SignOut is the txn of the sign-out form in the header; "" hides the form.
	SignOut string
}

// Host is a host plate: a fact, in monospace, the registrable domain in bold.
type Host struct {
	// Before, Bold and After make up the shown host: "calendar.mcp." +
	// "fernhill.example" + ":8443". NewHost splits a URL.
	Before, Bold, After string
	// Letters is the name as browsers may show it, when the plate has its punycode
	// form; "" otherwise.
	Letters string
}

// Client is how an app is shown: its name is a claim, shown in quotation marks.
type Client struct {
	// Name is already normalised and cut (registration.DisplayName); "" shows the client_id.
	Name string
	// Unnamed says that Name is the client_id, since the app gave none.
	Unnamed bool
	// Tag is one of the Tag constants.
	Tag ClientTag
}

// ClientTag says how far an app is known.
type ClientTag string

// Tags of an app.
const (
	TagNotVerified    ClientTag = "not_verified"
	TagRegisteredSelf ClientTag = "registered_itself"
	TagVerified       ClientTag = "verified"
)

// Permission is one scope as people read it.
type Permission struct {
	// Scope is the scope-token, the checkbox's value.
	Scope string
	// Title is the sentence; "" shows the scope as code with a note that the
	// server gives no description.
	Title, Detail string
	// Permanent shows the "Permanent" tag.
	Permanent bool
	// Checked is the checkbox's state; OffAtFirst adds the reason why it is off.
	Checked, OffAtFirst bool
	// Before tags a permission "Allowed before".
	Before bool
}

// Destination says where access goes.
type Destination string

// Destinations of a redirect URI.
const (
	DestinationLoopback Destination = "loopback" // http on localhost, 127.0.0.1, [::1]
	DestinationWebsite  Destination = "website"  // https
	DestinationApp      Destination = "app"      // private-use scheme
)

// SignIn is GET and POST /sign-in (pages.md 4.1).
type SignIn struct {
	Frame
	// RequestID and Txn are the form's hidden fields; RequestID may be "".
	RequestID, Txn string
	// Client and Server say what comes after; Client nil: "Manage your connected apps."
	Client *Client
	Server string
	// Email is what was typed, or the fixed address when Confirm.
	Email string
	// Confirm makes it "Confirm it's you" (prompt=login).
	Confirm bool
	// Problem is what went wrong, one of the SignInProblem constants; "" for nothing.
	Problem SignInProblem
	// WaitMinutes belongs to ProblemTooMany.
	WaitMinutes int
}

// SignInProblem is what the error summary of the sign-in page says.
type SignInProblem string

// Problems of a sign-in.
const (
	ProblemCredentials SignInProblem = "credentials"
	ProblemTooMany     SignInProblem = "too_many"
	ProblemDisabled    SignInProblem = "disabled"
	ProblemMissing     SignInProblem = "missing"
)

// Return is GET /return/{once} (pages.md 4.4).
type Return struct {
	Frame
	Client  Client
	Allowed bool
	Goes    Destination
	// Host is the host people read ("127.0.0.1", "app.example").
	Host string
	// URL is where the button leads: built only from a matched redirect URI.
	URL string
	// Automatic says that the Refresh header was sent with this answer.
	Automatic bool
	// Spent says that the code is used or expired: no button, no URL.
	Spent bool
}

// ConnectedApp is one entry of the account page: live grants of one client at
// one resource, grouped.
type ConnectedApp struct {
	// Key names the group in the disconnect form: opaque, URL-safe.
	Key    string
	Client Client
	// From is the host of the app's metadata document, nil without one; Goes and
	// Host say where access went.
	From        *Host
	Goes        Destination
	Host        Host
	Server      string
	Permissions []Permission
	ConnectedAt time.Time
	// LastUsedAt is zero when it was not used yet.
	LastUsedAt time.Time
	// EndsAt is when it disconnects by itself.
	EndsAt time.Time
	// Installations counts the grants of the group.
	Installations int
	// AsksFor is what it asked for again and again and the person is not asked
	// about for a while, since they refused it; AsksStay adds "Stay connected".
	AsksFor  []Permission
	AsksStay bool
	// AsksTxn is for the form "Let it ask"; "" shows nothing of all this.
	AsksTxn string
}

// Session is one entry of "Where you are signed in".
type Session struct {
	Key        string
	Browser    string // "Firefox on Linux"
	IP         string
	SignedInAt time.Time
	LastSeenAt time.Time
	Current    bool
}

// Account is GET /account (pages.md 4.7).
type Account struct {
	Frame
	Now      time.Time
	Apps     []ConnectedApp
	Sessions []Session
	// Txn is for the forms of this page.
	Txn string
	// Disconnected names the client of the banner after a disconnect; nil for none.
	Disconnected *Client
	// AccessMinutes is how long access tokens live.
	AccessMinutes int
	// SessionsEnded shows the banner after "Sign out everywhere else".
	SessionsEnded bool
	// Reuse lists apps disconnected because their access may have been copied.
	Reuse []ReuseNotice
}

// ReuseNotice is the red note of pages.md 4.7.
type ReuseNotice struct {
	Client Client
	// Server is the MCP server's name.
	Server string
	// At is when the app was last disconnected for it.
	At time.Time
}

// Disconnect is the confirmation page of an app's Disconnect button.
type Disconnect struct {
	Frame
	Key, Txn      string
	Client        Client
	Server        string
	AccessMinutes int
}

// EndSessions is the confirmation page of "Sign out everywhere else".
type EndSessions struct {
	Frame
	Txn    string
	Others int
}

// SignedOut is shown after sign-out (pages.md 4.6); with Ask it is the question
// "Sign out of {operator}?".
type SignedOut struct {
	Frame
	Ask bool
	Txn string
}

// SetupStart is the page the set-up link opens: a button, so that link scanners
// do not spend it (pages.md 4.8).
type SetupStart struct {
	Frame
	Txn string
	// Link is the one-time token, a hidden field.
	Link string
}

// SetupAccount is step 1: create the administrator.
type SetupAccount struct {
	Frame
	Txn, Link   string
	Email, Name string
	// Problems are field name → message key; empty for none.
	Problems []FieldProblem
	// PlainHTTP warns that the connection is not encrypted.
	PlainHTTP bool
}

// SetupServer is step 2: the first MCP server, skippable.
type SetupServer struct {
	Frame
	Txn      string
	URL      string
	Name     string
	Problems []FieldProblem
}

// SetupDone is the end of set-up.
type SetupDone struct {
	Frame
	Issuer string
	// Resource is the MCP server that was added, "" when skipped.
	Resource string
	// WellKnown are the two metadata URLs.
	WellKnown []string
}

// FieldProblem is one mistake in a form.
type FieldProblem struct {
	// Field is the input's name; Message a catalogue key.
	Field, Message string
}

// Error is any stop (pages.md 4.10).
type Error struct {
	Frame
	// Case is the catalogue's key: "error.<Case>.title", ".text", ".advice1" ….
	Case ErrorCase
	// Client, when set, is named in quotation marks.
	Client *Client
	// Host is the host the sentence names; Server the MCP server's name.
	Host   string
	Server string
	// AskedFor, Registered are the fact rows of the redirect case.
	AskedFor   *Host
	Registered []Host
	// From is the row "Says it is from": the host of the client's metadata document,
	// nil without one.
	From *Host
	// ReturnURL and ReturnHost make the button "Return to {host}" (D14).
	ReturnURL, ReturnHost string
	// WaitSeconds belongs to too_many, unavailable and document_unread.
	WaitSeconds int
	// Reference is what to tell a help desk; also in the log and X-Request-Id.
	Reference string
	// Technical details: the OAuth error, the client ID, the received value, as text.
	Code, ClientID, Received string
	At                       time.Time
}

// ErrorCase names one stop of pages.md 4.10.
type ErrorCase string

// The stops. Each has its sentences in the catalogue.
const (
	CaseRedirectURI    ErrorCase = "redirect_uri"    // redirect URI not registered
	CaseClientUnknown  ErrorCase = "client_unknown"  // unknown or deleted client, with reset hint
	CaseClientURL      ErrorCase = "client_url"      // client_id is a URL that this server does not accept
	CaseClientDisabled ErrorCase = "client_disabled" // blocked or switched off by the operator
	CaseRequest        ErrorCase = "request"         // request malformed before any redirect is proven
	CaseResource       ErrorCase = "resource"        // resource missing, unknown or two different
	CaseScope          ErrorCase = "scope"           // scope invalid or nothing grantable
	CaseClientError    ErrorCase = "client_error"    // any other error of an unapproved client (D14)
	CaseExpired        ErrorCase = "expired"         // the page has expired
	CaseAnswered       ErrorCase = "answered"        // already answered
	CaseNoCookie       ErrorCase = "no_cookie"
	CaseForm           ErrorCase = "form"        // form token or Origin refused
	CaseSetupLink      ErrorCase = "setup_link"  // link used or expired
	CaseNotFound       ErrorCase = "not_found"   // 404
	CaseMethod         ErrorCase = "method"      // 405
	CaseMisdirected    ErrorCase = "misdirected" // 421, with the line to change
	CaseTooMany        ErrorCase = "too_many"    // 429
	CaseTooLarge       ErrorCase = "too_large"   // 413
	CaseUnavailable    ErrorCase = "unavailable" // 503
	CaseServer         ErrorCase = "server"      // 500
	CaseForbidden      ErrorCase = "forbidden"   // 403, request of another browser session

	// The stops of apps known by a metadata document; Host is the document's.
	CaseClientDenied    ErrorCase = "client_denied"    // the operator accepts no apps from the host
	CaseClientWaiting   ErrorCase = "client_waiting"   // the operator must verify the app first
	CaseDocumentUnread  ErrorCase = "document_unread"  // the document could not be read
	CaseDocumentInvalid ErrorCase = "document_invalid" // the document breaks a rule
)

func (SignIn) template() string       { return "sign-in" }
func (Consent) template() string      { return "consent" }
func (StepUp) template() string       { return "step-up" }
func (Return) template() string       { return "return" }
func (Account) template() string      { return "account" }
func (Disconnect) template() string   { return "disconnect" }
func (EndSessions) template() string  { return "end-sessions" }
func (SignedOut) template() string    { return "signed-out" }
func (SetupStart) template() string   { return "setup-start" }
func (SetupAccount) template() string { return "setup-account" }
func (SetupServer) template() string  { return "setup-server" }
func (SetupDone) template() string    { return "setup-done" }
func (Error) template() string        { return "error" }
