package authserver

import (
	"context"
	"errors"
	"slices"

	"github.com/ostiary-auth/ostiary/consent"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/resource"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
)

// recall decides a request that has no answer by what the person answered this
// client before (D11). What that does not decide, they are asked.
func (s *Server) recall(ctx context.Context, req *flow.AuthorizationRequest, c *registration.Client, sess *flow.Session) (nextStep, error) {
	ask := nextStep{page: s.pageURL(pathConsent, req.ID)}
	if !consent.MayRemember(c, req.RedirectURI) {
		return ask, nil
	}
	row, res, err := s.remembered(ctx, s.o.Consents.GetConsent, req, sess)
	if errors.Is(err, store.ErrNotFound) {
		return ask, nil
	}
	if err != nil {
		return nextStep{}, err
	}
	asked := askedOf(req, c, sess)
	if row.Covers(res, asked) && !slices.Contains(req.Prompt, "consent") {
		return nextStep{issue: true, scopes: req.Scopes, stayConnected: row.StayConnected}, nil
	}
	refused, err := s.refusedBefore(ctx, &row, res, c, asked)
	if err != nil {
		return nextStep{}, err
	}
	if refused {
		return nextStep{refusal: s.refusedAgain()}, nil
	}
	return ask, nil
}

// holdRemembered holds the consent that recall found, unless it is gone or does
// not cover the request any more.
func (s *Server) holdRemembered(ctx context.Context, req *flow.AuthorizationRequest, c *registration.Client, sess *flow.Session) error {
	row, res, err := s.remembered(ctx, s.o.Consents.HoldConsent, req, sess)
	if errors.Is(err, store.ErrNotFound) || err == nil && !row.Covers(res, askedOf(req, c, sess)) {
		return errConsentGone
	}
	return err
}

// remembered reads what the person allowed the client of req before, by one of the
// consent store's methods, and the resource that it is about; store.ErrNotFound
// when either is not there.
func (s *Server) remembered(ctx context.Context, read func(ctx context.Context, subject, clientID, redirectURI, resource string) (consent.Consent, error),
	req *flow.AuthorizationRequest, sess *flow.Session) (consent.Consent, resource.Resource, error) {
	row, err := read(ctx, sess.Subject, req.ClientID, req.RedirectURI, req.Resource)
	if err != nil {
		return consent.Consent{}, resource.Resource{}, err
	}
	res, err := s.o.Resources.ByIdentifier(ctx, req.Resource)
	return row, res, err
}

// askedOf is what the client of req asks of the person, as consents compare it.
func askedOf(req *flow.AuthorizationRequest, c *registration.Client, sess *flow.Session) consent.Request {
	return consent.Request{Subject: sess.Subject, ClientID: c.ID, RedirectURI: req.RedirectURI, Resource: req.Resource,
		Scopes: req.Scopes, StayConnected: wantsRefresh(req, c), DocumentHash: c.DocumentHash}
}
