package endpoint

import "github.com/ostiary-auth/ostiary/web"

// PageError is an error a person sees as a page. A handler of pages returns it;
// Page writes it and logs Err.
type PageError struct {
	// Status is the HTTP status of the page.
	Status int
	// Page is what is shown; its Reference is filled in by Page.
	Page web.Error
	// Err is the cause, for the log only.
	Err error
}

// Error returns the case and the cause, for logs.
func (e *PageError) Error() string {
	s := "page " + string(e.Page.Case)
	if e.Page.Code != "" {
		s += ": " + e.Page.Code
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *PageError) Unwrap() error { return e.Err }
