package doctor

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Bounds of a clock's error: receivers tolerate a minute at most.
const (
	clockWarn   = 30 * time.Second
	clockBroken = 2 * time.Minute
)

// marks are what firewalls and bot protections leave in an answer.
var marks = []struct{ name, header, value, body string }{
	{name: "Cloudflare's challenge", header: "Cf-Mitigated", value: "challenge"},
	{name: "Cloudflare", body: "cdn-cgi/challenge-platform"},
	{name: "Cloudflare", header: "Cf-Ray"},
	{name: "AWS WAF", header: "X-Amzn-Waf-Action"},
	{name: "AWS WAF", body: "awswaf.com"},
	{name: "Akamai", body: "errors.edgesuite.net"},
	{name: "Akamai", header: "Server", value: "AkamaiGHost"},
	{name: "Imperva", header: "X-Iinfo"},
	{name: "Imperva", body: "_incapsula_resource"},
	{name: "Sucuri", header: "X-Sucuri-Id"},
	{name: "DataDome", header: "X-Datadome"},
	{name: "Vercel's challenge", header: "X-Vercel-Mitigated"},
	{name: "Azure Front Door", header: "X-Azure-Ref"},
	{name: "F5", body: "the requested url was rejected. please consult with your administrator"},
	{name: "a captcha", body: "captcha"},
	{name: "a script's challenge", body: "enable javascript"},
}

// firewall names what answered in the server's place: a page or an empty refusal
// where a program was expected to answer. Marks alone mean nothing; a CDN leaves
// them on good answers too.
func firewall(e *exchange) (string, bool) {
	switch e.status {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusOK, http.StatusNotAcceptable, http.StatusTeapot:
	default:
		return "", false
	}
	named := e.marked()
	challenge := e.header.Get("Cf-Mitigated") == "challenge" || e.header.Get("X-Amzn-Waf-Action") != "" || e.header.Get("X-Vercel-Mitigated") != ""
	switch {
	case challenge, e.isHTML() && e.status != http.StatusOK:
	case e.isHTML() && named != "" && e.header.Get("Cf-Ray") == "":
	case e.status == http.StatusForbidden && named != "" && !e.isJSON():
	default:
		return "", false
	}
	if named == "" {
		named = "a proxy or firewall in front"
	}
	return named, true
}

func (e *exchange) marked() string {
	body := strings.ToLower(string(e.body))
	for _, m := range marks {
		switch {
		case m.body != "" && strings.Contains(body, m.body):
			return m.name
		case m.header != "" && m.value == "" && e.header.Get(m.header) != "":
			return m.name
		case m.header != "" && m.value != "" && strings.EqualFold(e.header.Get(m.header), m.value):
			return m.name
		}
	}
	return ""
}

const (
	challengeFix = "Exempt these paths from bot protection and challenges: clients are programs and cannot solve them."
	nameFix      = "Remove the rule that refuses this User-Agent: hosted clients say no more than the name of their HTTP library."
)

// tlsWanted is what servers say on a port for TLS to who speaks none: nginx's and
// Go's words.
var tlsWanted = regexp.MustCompile(`(?i)HTTP request (was sent )?to (an )?HTTPS (port|server)`)

// answer looks whether what a client sends first has an answer at all.
func (p place) answer(ctx context.Context, x *examination) Outcome {
	if p.shared(x) {
		return sameAsServer
	}
	var answers []*exchange
	if p.hop == HopServerNetwork {
		answers = append(answers, x.unauthorized(ctx)) // recognise has waited for it
	}
	if len(answers) == 0 || answers[0].err == nil {
		answers = append(answers, p.first(ctx, x))
	}
	for _, e := range answers {
		switch {
		case e.err != nil:
			return broken("%s", plainError(e.err)).on(e)
		case e.status == http.StatusBadRequest && tlsWanted.Match(e.body):
			return broken("the URL says http, and this port speaks https").on(e).fix("Use the URL with https.")
		}
	}
	return ok("%s", statuses(answers))
}

// firewall looks at what the place answers to programs that bring no cookies.
func (p place) firewall(ctx context.Context, x *examination) Outcome {
	if p.shared(x) {
		return sameAsServer
	}
	asked := []*exchange{p.first(ctx, x)}
	if p.hop == HopServerNetwork {
		asked = append(asked, x.unauthorized(ctx))
	}
	for _, e := range asked {
		if e.err != nil {
			return broken("%s", plainError(e.err)).on(e)
		}
		if who, found := firewall(e); found {
			out := broken("%s answered, not the server: status %d with a %s body", who, e.status, mediaName(e)).on(e)
			if e.status == http.StatusServiceUnavailable && e.marked() != "" {
				out = out.fix(challengeFix) // a challenge, not a server that is away
			}
			return out
		}
	}
	return ok("no page, no challenge").on(asked[0])
}

func mediaName(e *exchange) string {
	if e.isHTML() {
		return "HTML"
	}
	if t := e.mediaType(); t != "" {
		return t
	}
	return "nameless"
}

// userAgentsOf are what clients call themselves; hosted ones say the name of a
// library.
var userAgentsOf = []string{"Claude-User", "python-httpx/0.28.1", "node", "Go-http-client/2.0", "openai-mcp/1.0.0", "reqwest/0.12", "Cursor/2.0"}

// userAgents asks the same again under each client's name.
func (p place) userAgents(ctx context.Context, x *examination) Outcome {
	if p.shared(x) {
		return sameAsServer
	}
	plain := p.first(ctx, x)
	if plain.status == http.StatusTooManyRequests {
		return skipped("429 for every name")
	}
	var refused []string
	var last *exchange
	for _, ua := range userAgentsOf {
		q := plain.query
		q.header = q.header.Clone()
		q.header.Set("User-Agent", ua)
		e := x.probe.ask(ctx, q)
		if e.err == nil && e.status == plain.status {
			continue
		}
		if limiting(e) && x.probe.send(ctx, plain.query).status == e.status {
			return warn("%d after %d requests, whoever asks: a rate limit, so nothing can be said of names", e.status, x.probe.sent).
				on(e).breaks(rateLimited).fix(limitFix)
		}
		refused, last = append(refused, fmt.Sprintf("%s (%s)", ua, short(e))), e
	}
	if len(refused) > 0 {
		return broken("%s for others, but not for %s", short(plain), strings.Join(refused, ", ")).on(last).fix(nameFix)
	}
	return ok("%s for each of %d", short(plain), len(userAgentsOf))
}

// short is an exchange in a word.
func short(e *exchange) string {
	if e.err != nil {
		return plainError(e.err)
	}
	return fmt.Sprint(e.status)
}

func (p place) clock(ctx context.Context, x *examination) Outcome {
	e := p.first(ctx, x)
	if p.shared(x) {
		return sameAsServer
	}
	if e.err != nil {
		return broken("%s", plainError(e.err)).on(e)
	}
	date, err := http.ParseTime(e.header.Get("Date"))
	if err != nil {
		return skipped("the answer has no Date")
	}
	// the header counts whole seconds, and the answer was on its way
	off := date.Sub(e.at).Abs() - time.Second - e.took
	switch {
	case off > clockBroken:
		return broken("the server says %s, this machine %s", date.UTC().Format(time.RFC3339), e.at.UTC().Format(time.RFC3339)).on(e)
	case off > clockWarn:
		return warn("the server says %s, this machine %s", date.UTC().Format(time.RFC3339), e.at.UTC().Format(time.RFC3339)).on(e)
	}
	return ok("within %s", clockWarn)
}
