package authserver

import (
	"errors"

	"github.com/ory/fosite"
	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// fromFosite turns an error that crossed fosite into ours. An *oauth.Error of
// our own handlers passes unchanged; fosite's keeps its code alone: its
// description and hint can repeat what the client sent (LG-03).
func fromFosite(err error) error {
	var own *oauth.Error
	if errors.As(err, &own) {
		return own
	}
	var e *fosite.RFC6749Error
	if !errors.As(err, &e) || e.CodeField >= 500 {
		if cause := errors.Unwrap(err); cause != nil && e != nil {
			return cause
		}
		return err
	}
	switch e.ErrorField {
	case fosite.ErrInvalidClient.ErrorField:
		return errClient(false).With(err)
	case fosite.ErrUnsupportedResponseType.ErrorField:
		return oauth.UnsupportedResponseType("response_type must be code").With(err)
	case fosite.ErrUnsupportedResponseMode.ErrorField:
		return oauth.InvalidRequest("response_mode is not supported; leave it out").With(err)
	}
	return &oauth.Error{Code: e.ErrorField, Description: "the request was refused", Status: e.CodeField, Err: err}
}
