package account

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/grant"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// How long the page remembers what happened to an app.
const (
	bannerFor = 10 * time.Minute
	reuseFor  = 30 * 24 * time.Hour
)

// app is one entry of Connected apps: what one client may do at one resource.
type app struct {
	key      string
	clientID string
	resource string
	grants   []grant.Grant
}

// appKey names a group in a URL. It is looked up among the person's own groups
// only, so somebody else's key finds nothing.
func appKey(subject, clientID, resource string) string {
	return opaque("app", subject, clientID, resource)
}

func opaque(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// groupApps groups grants by client and resource, in their order.
func groupApps(grants []grant.Grant) []app {
	var apps []app
	for _, g := range grants {
		key := appKey(g.Subject, g.ClientID, g.Resource)
		i := slices.IndexFunc(apps, func(a app) bool { return a.key == key })
		if i < 0 {
			apps = append(apps, app{key: key, clientID: g.ClientID, resource: g.Resource})
			i = len(apps) - 1
		}
		apps[i].grants = append(apps[i].grants, g)
	}
	return apps
}

// liveApps returns what the person has connected now.
func (h *Handler) liveApps(ctx context.Context, subject string) ([]app, error) {
	grants, err := h.o.Grants.ListGrants(ctx, grant.Filter{Subject: subject, LiveAt: h.o.Now()})
	if err != nil {
		return nil, err
	}
	return groupApps(grants), nil
}

// findApp returns the person's connected app of that key.
func (h *Handler) findApp(ctx context.Context, subject, key string) (app, error) {
	apps, err := h.liveApps(ctx, subject)
	if err != nil {
		return app{}, err
	}
	for _, a := range apps {
		if a.key == key {
			return a, nil
		}
	}
	return app{}, notFound("connected app")
}

// describe turns a group into what the page shows.
func (h *Handler) describe(ctx context.Context, a app) (web.ConnectedApp, error) {
	client, err := h.client(ctx, a.clientID)
	if err != nil {
		return web.ConnectedApp{}, err
	}
	newest := a.grants[0]
	shown := web.ConnectedApp{Key: a.key, Client: client, Installations: len(a.grants), ConnectedAt: newest.CreatedAt}
	shown.Goes, shown.Host, _ = registration.DescribeRedirect(newest.RedirectURI)
	if registration.IsClientURL(a.clientID) { // of a removed client, too
		from := web.NewHost(a.clientID)
		shown.From = &from
	}
	var scopes []string
	for _, g := range a.grants {
		shown.ConnectedAt = earlier(shown.ConnectedAt, g.CreatedAt)
		shown.LastUsedAt = later(shown.LastUsedAt, g.AdvancedAt)
		shown.EndsAt = later(shown.EndsAt, endOf(g))
		scopes = append(scopes, g.Scopes...)
	}
	shown.Server, shown.Permissions, err = h.permissions(ctx, a.resource, scopes)
	return shown, err
}

// client describes a client that may have been removed meanwhile.
func (h *Handler) client(ctx context.Context, id string) (web.Client, error) {
	c, err := h.o.Clients.GetClient(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return web.Client{Name: registration.NormalizeName(id), Unnamed: true, Tag: web.TagNotVerified}, nil
	}
	if err != nil {
		return web.Client{}, err
	}
	shown := registration.Describe(&c)
	if c.Kind == registration.KindDynamic && !c.Trusted() {
		shown.Tag = web.TagRegisteredSelf
	}
	return shown, nil
}

// permissions returns the MCP server's name and the scopes in its words, in its
// order; scopes it does not declare follow as they are.
func (h *Handler) permissions(ctx context.Context, identifier string, scopes []string) (string, []web.Permission, error) {
	name := web.NewHost(identifier).String()
	canonical, err := oauth.CanonicalResource(identifier)
	if err != nil {
		canonical = identifier
	}
	res, err := h.o.Resources.GetResource(ctx, canonical)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", nil, err
	}
	if err == nil {
		name = res.Name
	}
	var shown []web.Permission
	for _, s := range res.Scopes {
		if slices.Contains(scopes, s.Name) {
			shown = append(shown, web.Permission{Scope: s.Name, Title: s.Title, Detail: s.Detail})
		}
	}
	for _, s := range scopes {
		if !slices.ContainsFunc(shown, func(p web.Permission) bool { return p.Scope == s }) {
			shown = append(shown, web.Permission{Scope: s})
		}
	}
	return name, shown, nil
}

// endOf is when the grant ends by itself.
func endOf(g grant.Grant) time.Time {
	if g.RefreshExpiresAt.IsZero() || g.ExpiresAt.Before(g.RefreshExpiresAt) {
		return g.ExpiresAt
	}
	return g.RefreshExpiresAt
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// askDisconnect serves GET /account/apps/{key}/disconnect.
func (h *Handler) askDisconnect(w http.ResponseWriter, r *http.Request, s *flow.Session) error {
	a, err := h.findApp(r.Context(), s.Subject, r.PathValue("key"))
	if err != nil {
		return err
	}
	shown, err := h.describe(r.Context(), a)
	if err != nil {
		return err
	}
	return h.o.Pages.Write(w, r, http.StatusOK, web.Disconnect{Frame: h.frame(s), Key: a.key,
		Txn: h.o.Forms.Token(s, purposeDisconnect, a.key), Client: shown.Client, Server: shown.Server,
		AccessMinutes: h.accessMinutes()})
}

// disconnect serves POST /account/apps/{key}/disconnect: every grant of the
// group ends and what was remembered is forgotten, at once or not at all (D10,
// CS-14). A group that is gone already is not found.
func (h *Handler) disconnect(w http.ResponseWriter, r *http.Request, s *flow.Session) error {
	key := r.PathValue("key")
	if err := h.checkForm(r, s, purposeDisconnect, key); err != nil {
		return err
	}
	err := h.o.Tx.InTx(r.Context(), func(ctx context.Context) error {
		a, err := h.findApp(ctx, s.Subject, key)
		if err != nil {
			return err
		}
		return h.end(ctx, s.Subject, a)
	})
	if err != nil {
		return err
	}
	return h.redirect(w, r, "/account?disconnected="+key)
}

func (h *Handler) end(ctx context.Context, subject string, a app) error {
	now := h.o.Now()
	group := grant.Filter{Subject: subject, ClientID: a.clientID, Resource: a.resource}
	n, err := grant.EndAll(ctx, h.o.Consents, h.o.Grants, group, grant.ReasonDisconnected, now)
	if err != nil {
		return err
	}
	return h.o.Audit.Append(ctx, audit.New(ctx, now, audit.Event{Name: "grant.ended", Actor: subject, Subject: subject,
		ClientID: a.clientID, Resource: a.resource,
		Detail: map[string]string{"reason": grant.ReasonDisconnected, "count": strconv.Itoa(n)}}))
}

// disconnected returns the client of the banner: the group of that key, if it
// was disconnected a moment ago. The link alone makes no banner.
func (h *Handler) disconnected(ctx context.Context, ended []grant.Grant, key string) (*web.Client, error) {
	for _, g := range ended {
		if g.EndReason != grant.ReasonDisconnected || h.o.Now().Sub(g.EndedAt) > bannerFor ||
			appKey(g.Subject, g.ClientID, g.Resource) != key {
			continue
		}
		c, err := h.client(ctx, g.ClientID)
		return &c, err
	}
	return nil, nil
}

// reused lists the apps that were disconnected because a token came twice, each
// once with its last time: an app that repeats itself must not fill the page.
func (h *Handler) reused(ctx context.Context, ended []grant.Grant) ([]web.ReuseNotice, error) {
	ended = slices.DeleteFunc(slices.Clone(ended), func(g grant.Grant) bool {
		return g.EndReason != grant.ReasonRefreshReuse && g.EndReason != grant.ReasonCodeReuse || h.o.Now().Sub(g.EndedAt) > reuseFor
	})
	slices.SortStableFunc(ended, func(a, b grant.Grant) int { return b.EndedAt.Compare(a.EndedAt) })
	var notices []web.ReuseNotice
	for _, a := range groupApps(ended) {
		client, err := h.client(ctx, a.clientID)
		if err != nil {
			return nil, err
		}
		server, _, err := h.permissions(ctx, a.resource, nil)
		if err != nil {
			return nil, err
		}
		notices = append(notices, web.ReuseNotice{Client: client, Server: server, At: a.grants[0].EndedAt})
	}
	return notices, nil
}

// endedOnly drops the grants that still live.
func endedOnly(grants []grant.Grant) []grant.Grant {
	return slices.DeleteFunc(grants, func(g grant.Grant) bool { return g.EndedAt.IsZero() })
}
