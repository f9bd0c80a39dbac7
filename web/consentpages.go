package web

import "time"

// Consent is GET and POST /consent (pages.md 4.2).
type Consent struct {
	Frame
	RequestID, Txn string
	Client         Client
	// FirstSeen is when the client became known; Others is how many other people
	// allow it. FirstSeenToday chooses the words "First seen here today".
	FirstSeen      time.Time
	FirstSeenToday bool
	Others         int
	// SelfRegistered adds "The app registered itself … and gave no website we can check."
	SelfRegistered bool
	// From is the host of the client's metadata document, nil without one:
	// "Comes from" when FromProven, because the response goes to a website that
	// this document names, otherwise "Says it is from".
	From       *Host
	FromProven bool
	// Goes and GoesTo are the row "Access goes to"; Scheme is for DestinationApp.
	Goes   Destination
	GoesTo Host
	Scheme string
	// Server and ServerHost are the row "To use". RunBy adds "Run by {operator}".
	Server     string
	ServerHost Host
	RunBy      bool
	// Warnings are the sentences of the one amber box, worst first; none: no box.
	Warnings []Warning
	// ChangedSince is when the person last allowed it, for WarningChanged;
	// Doubtful is the host of WarningAddress.
	ChangedSince time.Time
	Doubtful     string
	// Required have no control; Groups hold the checkboxes; Basic shows "Use
	// {server} as you (basic access)" when there is no scope at all.
	Required []Permission
	Groups   []PermissionGroup
	Basic    bool
	// StayConnected shows that checkbox; StayChecked is its state.
	StayConnected, StayChecked bool
	// TooQuick shows "That was very quick. …" (D22), ChangedMeanwhile that the app
	// changed while the person looked at its page, AskedAnew that what it asks or
	// has did.
	TooQuick, ChangedMeanwhile, AskedAnew bool
	// Technical details, text only.
	ClientID, RedirectURI, Resource, Scopes, AuthMethod, Reference string
	// SwitchURL is "Use another account".
	SwitchURL string
}

// StepUp is GET and POST /consent of an app that asks for more than it was
// allowed (pages.md 4.3). Of the page it embeds, Required and Groups are what is
// new, and StayConnected shows a checkbox for it.
type StepUp struct {
	Consent
	// Count is how many permissions are new.
	Count int
	// StayNew says that "Stay connected" is one of them.
	StayNew bool
	// Allowed, and with AllowedStay "Stay connected", were allowed before, since
	// AllowedSince.
	Allowed      []Permission
	AllowedStay  bool
	AllowedSince time.Time
	// NewScopes are the new scopes in the technical details.
	NewScopes string
}

// AllowedCount is how many permissions the app has: basic access is one.
func (p StepUp) AllowedCount() int {
	n := max(1, len(p.Allowed))
	if p.AllowedStay {
		n++
	}
	return n
}

// PermissionGroup is a heading and its optional permissions.
type PermissionGroup struct {
	Name        string
	Permissions []Permission
}

// Warning names one sentence of the consent page's amber box.
type Warning string

// Warnings, worst first (pages.md 4.2, D32).
const (
	WarningLoopback      Warning = "loopback"       // loopback or private-use redirect
	WarningDifferentSite Warning = "different_site" // redirect on another site than the metadata document
	WarningOtherSite     Warning = "other_site"     // unverified client, https host not known
	WarningChanged       Warning = "changed"        // other metadata than at the last approval
	WarningAddress       Warning = "address"        // a host that can be mistaken for another
	WarningName          Warning = "name"           // a name that can be mistaken for another
)
