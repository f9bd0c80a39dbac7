package endpoint

import (
	"net/http"
	"slices"

	"github.com/ostiary-auth/ostiary/internal/oauth"
)

// Form reads the form that one of our pages posted. No field may repeat but
// those named: which of two values counts must not depend on who reads them.
func Form(r *http.Request, mayRepeat ...string) (oauth.Params, error) {
	params, err := oauth.FormParams(r)
	if err != nil {
		return nil, err
	}
	for _, name := range params.Repeated() {
		if !slices.Contains(mayRepeat, name) {
			return nil, oauth.InvalidRequest("a form field is repeated")
		}
	}
	return params, nil
}
