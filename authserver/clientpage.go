package authserver

import (
	"errors"
	"net/http"

	"github.com/ostiary-auth/ostiary/internal/endpoint"
	"github.com/ostiary-auth/ostiary/internal/store"
	"github.com/ostiary-auth/ostiary/registration"
	"github.com/ostiary-auth/ostiary/web"
)

// clientPage is the stop for a client_id that names no client that may be used.
// Nothing is sent to anybody: where to is not known (AR-02, A20).
func clientPage(id string, err error) error {
	var fromURL *registration.ClientURLError
	switch {
	case errors.As(err, &fromURL):
		return clientURLPage(id, fromURL)
	case errors.Is(err, store.ErrNotFound):
		return &endpoint.PageError{Status: http.StatusBadRequest, Page: web.Error{Case: web.CaseClientUnknown, ClientID: id}, Err: err}
	}
	return err
}

// clientURLPage says what is wrong with a client_id that is a URL, so far as the
// app's developer may know (CI-15).
func clientURLPage(id string, e *registration.ClientURLError) error {
	page := web.Error{ClientID: id, Host: e.Host}
	if e.Detail != "" {
		page.Code = "invalid_client: " + e.Detail
	}
	status := http.StatusBadRequest
	switch e.Problem {
	case registration.ProblemDenied:
		status, page.Case = http.StatusForbidden, web.CaseClientDenied
	case registration.ProblemWaiting:
		status, page.Case = http.StatusForbidden, web.CaseClientWaiting
	case registration.ProblemUnread:
		status, page.Case, page.WaitSeconds = http.StatusServiceUnavailable, web.CaseDocumentUnread, int(e.Wait.Seconds())
	case registration.ProblemInvalid:
		page.Case = web.CaseDocumentInvalid
	default:
		page.Case = web.CaseClientURL
	}
	return &endpoint.PageError{Status: status, Page: page, Err: e}
}
