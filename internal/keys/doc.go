// Package keys owns the server's secrets: the state secret from which every
// symmetric key is derived (decision D2), the sealing of what must be stored and
// read back, and the signing keys of access tokens with their rotation
// (decision D28; RFC 7517 for the published set, RFC 7515 for signatures). It
// decides when a key signs and with which algorithm; what is signed is the caller's business.
package keys
