package resourceserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// ErrInvalidToken is what an error of Verify wraps when the token is at fault.
var ErrInvalidToken = errors.New("the access token is not valid")

// Verify checks an access token as Protect does, for a program that has its own
// way of taking the token from a request and of refusing one. An error that is
// not ErrInvalidToken means that the issuer could not be asked: answer 503 then,
// never 401, which sends every client to sign in again (M8). Its text is fit for
// the client. Scopes are for the caller to check: see Allows.
func (s *Server) Verify(ctx context.Context, token string) (*Token, error) {
	if len(token) > maxToken {
		return nil, fmt.Errorf("%w: it is larger than %d bytes", ErrInvalidToken, maxToken)
	}
	t, err := s.verify(ctx, token)
	var e *refusal
	switch {
	case err == nil:
		return t, nil
	case errors.As(err, &e) && e.status == http.StatusUnauthorized:
		return nil, fmt.Errorf("%w: %s", ErrInvalidToken, e.description)
	case errors.As(err, &e):
		return nil, errors.New(e.description)
	}
	return nil, errors.New("the access token could not be checked")
}
