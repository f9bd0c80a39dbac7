package oauth

// TypeAccessToken is the typ of JWT access tokens (RFC 9068 §2.1).
const TypeAccessToken = "at+jwt"
