package endpoint

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/ostiary-auth/ostiary/internal/audit"
	"github.com/ostiary-auth/ostiary/internal/flow"
	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/web"
)

// Page makes a handler of a page for people: an error it returns becomes an
// error page. A *PageError chooses the page; any other error gets the page that
// its kind calls for, and never its text.
func (e *Edge) Page(fn HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec, r := record(w, r)
		noStore(rec.Header())
		err := run(fn, rec, r)
		if err == nil {
			return
		}
		pe := e.pageError(err)
		e.logFailure(r, pe.Status, err)
		if !rec.started() {
			e.writePage(rec, r, pe)
		}
	})
}

// writePage writes an error page. When even that fails there is plain text, so
// that nobody is left with an empty window.
func (e *Edge) writePage(w *recorder, r *http.Request, pe *PageError) {
	page := pe.Page
	page.Reference = audit.SourceFrom(r.Context()).RequestID
	page.At = e.now()
	if page.WaitSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(page.WaitSeconds))
	}
	err := e.pages.Write(w, r, pe.Status, page)
	if err == nil {
		return
	}
	e.logFailure(r, http.StatusInternalServerError, err)
	if !w.started() {
		http.Error(w, "Something went wrong here. Reference: "+page.Reference, pe.Status)
	}
}

// pageError returns the page for err.
func (e *Edge) pageError(err error) *PageError {
	var pe *PageError
	var oe *oauth.Error
	switch {
	case errors.As(err, &pe):
		chosen := *pe
		if chosen.Status == 0 {
			chosen.Status = http.StatusBadRequest
		}
		return &chosen
	case errors.As(err, &oe):
		return pageOf(oe)
	case errors.Is(err, flow.ErrFormToken):
		return newPageError(http.StatusForbidden, web.CaseForm, err)
	case isTooLarge(err):
		return newPageError(http.StatusRequestEntityTooLarge, web.CaseTooLarge, err)
	case e.isUnavailable(err):
		return pageOf(oauth.Unavailable(retryAfter, err))
	}
	return newPageError(http.StatusInternalServerError, web.CaseServer, err)
}

func newPageError(status int, c web.ErrorCase, err error) *PageError {
	return &PageError{Status: status, Page: web.Error{Case: c}, Err: err}
}

// pageOf shows an OAuth error to a person: there is no client to tell.
func pageOf(oe *oauth.Error) *PageError {
	pe := newPageError(oe.HTTPStatus(), web.CaseRequest, oe)
	pe.Page.WaitSeconds = wholeSeconds(oe.RetryAfter)
	switch status := oe.HTTPStatus(); {
	case status == http.StatusServiceUnavailable:
		pe.Page.Case = web.CaseUnavailable
	case status == http.StatusTooManyRequests:
		pe.Page.Case = web.CaseTooMany
	case status == http.StatusRequestEntityTooLarge:
		pe.Page.Case = web.CaseTooLarge
	case status >= 500:
		pe.Page.Case = web.CaseServer
	default:
		pe.Page.Code = oe.Code
		if oe.Description != "" {
			pe.Page.Code += ": " + describe(oe.Description)
		}
	}
	return pe
}

func isTooLarge(err error) bool {
	var tooLarge *http.MaxBytesError
	return errors.As(err, &tooLarge)
}
