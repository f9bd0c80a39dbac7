package doctor

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// examination is one examination: what is known so far.
type examination struct {
	o       Options
	target  *url.URL
	kind    Kind
	probe   *prober
	secrets redactor
	state   map[string]State // by the id of a check
	// deadline bounds it, without the time that a person takes.
	deadline *deadline
	facts
	made
}

func newExamination(o Options) *examination {
	if o.Now == nil {
		o.Now = time.Now
	}
	target, err := parseTarget(o.URL)
	if err != nil {
		panic(err) // Validate has read it
	}
	x := &examination{o: o, target: target, kind: o.Kind, probe: newProber(o, target), state: map[string]State{}}
	x.secrets.add(o.Token)
	return x
}

// recognise asks the URL what it is: who serves metadata of itself as an issuer
// and neither challenges nor describes itself as a resource is one.
func (x *examination) recognise(ctx context.Context) {
	if x.kind != "" {
		return
	}
	x.kind = KindServer
	if e := x.unauthorized(ctx); e.status == http.StatusUnauthorized || e.status == 0 {
		return // what does not answer is asked no more: it may take its time each time
	}
	for _, u := range resourceMetadataURLs(x.target) {
		if e := x.probe.ask(ctx, get(u.url, "Accept", "application/json")); e.status == http.StatusOK && e.isJSON() {
			return
		}
	}
	for _, f := range issuerForms(x.o.URL) {
		e := x.probe.ask(ctx, get(f.url, "Accept", "application/json"))
		// an MCP server may hand on its issuer's metadata, which names another host
		issuer, err := url.Parse(parseDocument(e.body).text("issuer"))
		if e.status == http.StatusOK && err == nil && issuer.Hostname() == x.target.Hostname() {
			x.kind = KindIssuer
			return
		}
	}
}

// run runs a check, unless what it needs is broken.
func (x *examination) run(ctx context.Context, c Check) Finding {
	out := x.outcome(ctx, c)
	if from := x.readFrom(c.Hop); from != nil && out.Asked == "" && (out.State == Broken || out.State == Warn) {
		out = out.on(from)
	}
	x.state[c.ID] = out.State
	f := Finding{ID: c.ID, Hop: c.Hop, Title: c.Title, State: out.State,
		Asked: x.secrets.clean(out.Asked), Came: x.secrets.clean(out.Came), Why: x.secrets.clean(out.Why)}
	if out.State != Broken && out.State != Warn {
		return f
	}
	f.Fix, f.Reference = x.secrets.clean(cmp.Or(out.Fix, statusFix(out.from), c.Fix)), c.Reference
	if out.rows == nil {
		out.rows = []string{c.ID}
	}
	for _, row := range out.rows {
		f.Clients = append(f.Clients, knowledge().affected(row, x.o.As)...)
	}
	f.Elsewhere = x.o.As != "" && len(f.Clients) == 0
	return f
}

// readFrom is the answer that a hop's findings are about when they name no other.
func (x *examination) readFrom(h Hop) *exchange {
	switch h {
	case HopResource:
		return x.resourceFrom
	case HopIssuer:
		return x.issuerFrom
	}
	return nil
}

func (x *examination) outcome(ctx context.Context, c Check) Outcome {
	for _, need := range c.Needs {
		switch x.state[need] {
		case Broken:
			return skipped("%s is broken", need)
		case Skipped:
			return skipped("%s was skipped", need)
		}
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	out := c.Run(ctx, x)
	if ctx.Err() != nil && out.State == Broken {
		return ended(ctx) // a request that we gave up says nothing of the server
	}
	return out
}

// ended says why an examination does not go on.
func ended(ctx context.Context) Outcome {
	if err := context.Cause(ctx); errors.Is(err, errTimeOver) {
		return skipped("%s", err)
	}
	return skipped("interrupted")
}

// finish counts, and lists what was left.
func (x *examination) finish(r *Report) {
	r.Issuer = x.secrets.clean(x.issuer)
	r.Requests = x.probe.sent
	for _, f := range r.Findings {
		if !f.Elsewhere || f.State != Broken {
			r.Counts[f.State]++
		}
	}
	for _, left := range x.left {
		r.Left = append(r.Left, x.secrets.clean(left))
	}
}

// Checks returns every check, in the order in which they run.
func Checks() []Check {
	return slices.Concat(
		networkChecks(serverPlace), at(HopChallenge, challengeChecks()), at(HopResource, resourceChecks()),
		networkChecks(issuerPlace), at(HopIssuer, issuerChecks()), at(HopBrowser, browserChecks()),
		at(HopRegistration, registrationChecks()), at(HopAuthorize, authorizeChecks()), at(HopToken, tokenChecks()),
		at(HopKeys, keyChecks()), at(HopAccess, accessChecks()))
}

// at places checks at their hop; the first three are an MCP server's alone.
func at(h Hop, checks []Check) []Check {
	for i := range checks {
		checks[i].Hop = h
		checks[i].Server = checks[i].Server || h == HopServerNetwork || h == HopChallenge || h == HopResource
	}
	return checks
}
