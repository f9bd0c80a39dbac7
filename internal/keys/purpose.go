package keys

// Purpose names what a derived key is for. Its value is the HKDF info string,
// so two purposes never share a key. A value must never change: what was made
// with it could no longer be verified.
type Purpose string

// Purposes of derived keys (D2).
const (
	// PurposeCode tags authorization codes (D29).
	PurposeCode Purpose = "ostiary v1 code"
	// PurposeRefresh tags refresh tokens (D29).
	PurposeRefresh Purpose = "ostiary v1 refresh"
	// PurposeCheck makes the value by which a database knows its secret.
	PurposeCheck Purpose = "ostiary v1 check"
	// PurposeSeal encrypts what is stored sealed.
	PurposeSeal Purpose = "ostiary v1 seal"
	// PurposeForm tags the hidden value of forms (pages.md §3).
	PurposeForm Purpose = "ostiary v1 form"
	// PurposeReturn derives the last segment of a request's return URL (D15).
	PurposeReturn Purpose = "ostiary v1 return"
)

// purposes lists every Purpose, to derive all keys once.
func purposes() []Purpose {
	return []Purpose{PurposeCode, PurposeRefresh, PurposeCheck, PurposeSeal, PurposeForm, PurposeReturn}
}
