package doctor

import (
	_ "embed" // clients.json
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// clientsJSON is what was seen of real clients: read in their sources where they
// have one, otherwise in their documentation and issues (docs/clients.md).
//
//go:embed clients.json
var clientsJSON []byte

// Client is a row of the table of clients.
type Client struct {
	// ID is what --as takes.
	ID string `json:"id"`
	// Name is what people call it.
	Name string `json:"name"`
	// Like is the client on whose library it is built: its walk is that one's.
	Like string `json:"like"`
	// Walk is how it discovers.
	Walk walk `json:"walk"`
	// Registration is the order in which it gets a client_id, of cimd and dcr.
	Registration []string `json:"registration"`
	// Document is the URL of its client metadata document.
	Document string `json:"document"`
	// Redirects are redirect URIs that it uses.
	Redirects []string `json:"redirects"`
	// Redirect is the first of them.
	Redirect string `json:"-"`
}

// walk is how a client discovers: what it asks, what it accepts, when it stops.
type walk struct {
	// First is the method of its first request.
	First string `json:"first"`
	// Challenge is "first" when it reads the first scheme alone, else "parsed".
	Challenge string `json:"challenge"`
	// Named says which resource_metadata it takes: "any" or "same origin".
	Named string `json:"named"`
	// Places are where it looks for resource metadata: named, path, root.
	Places []string `json:"places"`
	// Passes are the statuses after which it tries the next place.
	Passes []string `json:"passes"`
	// Identity is how resource is compared: exact, parent or none.
	Identity string `json:"identity"`
	// NamedAlone is set when it looks nowhere else once a place is named.
	NamedAlone bool `json:"named_alone"`
	// Without is what it does without resource metadata: stop, or take the MCP
	// server's origin for the authorization server.
	Without string `json:"without"`
	// Fails is what it does when a place fails after which it does not go on to the
	// next: the same two, default stop.
	Fails string `json:"fails"`
	// Forms are the forms of authorization server metadata that it tries.
	Forms []string `json:"forms"`
	// FormPasses are the statuses after which it tries the next form.
	FormPasses []string `json:"form_passes"`
	// Issuer is how issuer is compared: exact, slash (but for one) or none.
	Issuer string `json:"issuer"`
	// PKCE is required, "when listed" or no.
	PKCE string `json:"pkce"`
}

// effect is how a group of clients breaks on a finding.
type effect struct {
	// Who are their ids, "*" for all.
	Who []string `json:"who"`
	// Others are further ones, in words, or who else notices.
	Others string `json:"others"`
	How    string `json:"how"`
}

// Rows of the table that are no check: a part of one, and what may decide any.
const (
	pkceAbsent  = "metadata-pkce, absent"
	rateLimited = "rate limit"
)

// table is what the file holds.
type table struct {
	Clients []Client            `json:"clients"`
	Breaks  map[string][]effect `json:"breaks"`
}

// knowledge is the table of clients, read once: it is part of the program.
var knowledge = sync.OnceValue(func() *table {
	t, err := readTable(clientsJSON)
	if err != nil {
		panic(err) // a test reads it too
	}
	return t
})

func readTable(b []byte) (*table, error) {
	var t table
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("clients.json: %w", err)
	}
	for i := range t.Clients {
		c := &t.Clients[i]
		if len(c.Redirects) > 0 {
			c.Redirect = c.Redirects[0]
		}
		if c.Like == "" {
			continue
		}
		model, found := t.Client(c.Like)
		if !found || model.Like != "" {
			return nil, fmt.Errorf("clients.json: %s is like %q, which has no walk", c.ID, c.Like)
		}
		c.Walk = model.Walk
	}
	return &t, nil
}

// Client finds a client by its id.
func (t *table) Client(id string) (Client, bool) {
	i := slices.IndexFunc(t.Clients, func(c Client) bool { return c.ID == id })
	if i < 0 {
		return Client{}, false
	}
	return t.Clients[i], true
}

// affected lists who breaks on a finding, in words: everybody, or the client of
// this id alone.
func (t *table) affected(check, only string) []Affected {
	var list []Affected
	for _, e := range t.Breaks[check] {
		switch {
		case only == "":
			list = append(list, Affected{Name: t.names(e), How: e.How})
		case slices.Contains(e.Who, "*") || slices.Contains(e.Who, only):
			list = append(list, Affected{Name: t.names(effect{Who: []string{only}}), How: e.How})
		}
	}
	return list
}

func (t *table) names(e effect) string {
	if slices.Contains(e.Who, "*") {
		return "every client"
	}
	var names []string
	for _, id := range e.Who {
		c, _ := t.Client(id)
		names = append(names, c.Name)
	}
	if e.Others != "" {
		names = append(names, e.Others)
	}
	return strings.Join(names, ", ")
}

// ClientIDs returns the ids that Options.As takes.
func ClientIDs() []string {
	var ids []string
	for _, c := range knowledge().Clients {
		ids = append(ids, c.ID)
	}
	return ids
}

// client is the one of Options.As.
func (x *examination) client() Client {
	c, _ := knowledge().Client(x.o.As)
	return c
}
