package metadata

// OpenIDConfiguration is the document that clients find at the
// openid-configuration path (OpenID Connect Discovery 1.0 §3). It is the
// authorization server's metadata with the members that such clients refuse to
// miss (A3); this server issues no ID tokens (D26).
type OpenIDConfiguration struct {
	AuthorizationServer
	// SubjectTypesSupported is subject_types_supported. REQUIRED.
	SubjectTypesSupported []string `json:"subject_types_supported"`
	// IDTokenSigningAlgValuesSupported is id_token_signing_alg_values_supported. REQUIRED.
	IDTokenSigningAlgValuesSupported []string `json:"id_token_signing_alg_values_supported"`
}

// NewOpenIDConfiguration returns the OpenID form of doc, whose tokens are signed
// with the given algorithms.
func NewOpenIDConfiguration(doc AuthorizationServer, algorithms ...string) OpenIDConfiguration {
	return OpenIDConfiguration{
		AuthorizationServer:              doc,
		SubjectTypesSupported:            []string{"public"},
		IDTokenSigningAlgValuesSupported: algorithms,
	}
}
